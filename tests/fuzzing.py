"""Attacks the readers with very many damaged files: a program of its own.

Run as ``python fuzzing.py COUNT FOLDER [FORMAT ...]``. Files of every format are made and read in
rounds until each has had COUNT; what was done is kept in FOLDER, so that it may be stopped and
started again. Memory is capped, so that a file that asks for too much of it fails at once.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hostile_files import SEEDS, Maker
from symnmf.errors import InputError
from symnmf.readers import MatrixFile, read_labels, read_matrix, text

MEMORY = 64 * 2**20
"""Most bytes reading one of these small files may hold at any moment."""


@dataclass
class Tally:
    """What a run of the fuzzer saw."""

    read: int = 0
    refused: int = 0
    peak: int = 0


def check_result(result: MatrixFile | np.ndarray) -> None:
    if isinstance(result, np.ndarray):
        assert result.ndim == 1
        assert result.size > 0
        return
    if result.kind == "hypergraph":
        assert np.isfinite(result.data.weights).all()
        assert len(result.data.names) == result.data.shape[0]
        return
    values = result.data if isinstance(result.data, np.ndarray) else result.data.data
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    if result.kind == "graph":
        # small ones are compared as dense arrays, which is ten times as fast
        graph = result.data.toarray() if result.data.shape[0] < 200 else result.data
        assert not (graph != graph.T).sum()
    for column in (result.names, result.labels):
        assert column is None or len(column) == result.data.shape[0]


def _check_sentence(text: str, name: str) -> None:
    assert "file '" in text
    assert name in text
    assert text.endswith(".")
    assert text.isprintable()
    assert "more memory" not in text
    assert len(text) < 1000


@contextmanager
def capped_memory() -> Iterator[None]:
    """Let the process grow by ``MEMORY`` and no more, so that a larger request fails at once."""
    import resource  # not every system has it

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def attempt(path: Path, data: bytes, tally: Tally) -> None:
    """Read one damaged file; an error carries the bytes that broke a promise."""
    with open(path, "wb") as file:
        file.write(data)
    read = read_labels if path.name.startswith("labels") else read_matrix
    try:
        try:
            check_result(read(path))
            tally.read += 1
        except InputError as error:
            _check_sentence(str(error), path.name)
            tally.refused += 1
    except Exception as error:
        error.add_note(f"reading {data!r}")
        raise


#: The files of each format; ``.gz`` on top makes no format of its own.
FORMATS: dict[str, list[str]] = {}
for _name in SEEDS:
    _ending = _name.removesuffix(".gz").partition(".")[2]
    _format = "edges" if _name.startswith(("weighted", "words")) else _ending
    FORMATS.setdefault(_format, []).append(_name)

ROUND = 10_000


def warm(folder: Path) -> None:
    """Compile and import once whatever comes late, before memory is capped."""
    (folder / "warm.edges").write_bytes(SEEDS["weighted.edges"] * 9)
    read_matrix(folder / "warm.edges")
    for name, seed in SEEDS.items():
        attempt(folder / name, seed, Tally())


def one_round(format: str, number: int, count: int, folder: Path) -> Tally:
    """Read ``count`` files of a format, in turn of each of its kinds."""
    tally, rng = Tally(), random.Random(f"{format} {number}")
    makers = [(folder / name, Maker(rng, name)) for name in FORMATS[format]]
    for place in range(count):
        path, maker = makers[place % len(makers)]
        attempt(path, maker(), tally)
    return tally


def main(count: int, folder: Path, formats: list[str]) -> None:
    done = folder / "fuzzing.json"
    seen = json.loads(done.read_text()) if done.exists() else {}
    text.BLOCK = 64  # so that compiled code has a part in small files too
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", ".*parallel edges")  # summed, which is said
    warm(folder)
    with capped_memory():
        for number in range(-(-count // ROUND)):
            for format in formats or FORMATS:
                so_far = seen.get(format, {"rounds": 0, "read": 0, "refused": 0})
                if number < so_far["rounds"]:
                    continue
                tally = one_round(format, number, min(ROUND, count - number * ROUND), folder)
                seen[format] = {
                    "rounds": number + 1,
                    "read": so_far["read"] + tally.read,
                    "refused": so_far["refused"] + tally.refused,
                }
                done.write_text(json.dumps(seen, indent=1))
    for format, tallied in seen.items():
        print(format, tallied["read"] + tallied["refused"], tallied, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])

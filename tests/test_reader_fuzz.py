"""Damaged files: whatever the bytes, a reader returns sound data or raises ``InputError``."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from conftest import long_count
from hostile_files import SEEDS, grow, make
from symnmf.errors import InputError
from symnmf.readers import MatrixFile, edges, read_labels, read_matrix, text

MEMORY = 64 * 2**20
"""Most bytes reading one of these small files may hold at any moment."""


@dataclass
class Tally:
    """What a run of the fuzzer saw."""

    read: int = 0
    refused: int = 0
    peak: int = 0


def _check_result(result: MatrixFile | np.ndarray) -> None:
    if isinstance(result, np.ndarray):
        assert result.ndim == 1
        assert result.size > 0
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
    assert text.startswith("file '")
    assert name in text
    assert text.endswith(".")
    assert text.isprintable()
    assert "more memory" not in text
    assert len(text) < 1000


@contextmanager
def traced_memory(tally: Tally) -> Iterator[None]:
    """Fail when what is allocated inside exceeds ``MEMORY``; exact, and slow."""
    tracemalloc.start()
    try:
        yield
        tally.peak = max(tally.peak, tracemalloc.get_traced_memory()[1])
        assert tally.peak <= MEMORY
    finally:
        tracemalloc.stop()


@contextmanager
def capped_memory() -> Iterator[None]:
    """Let the process grow by ``MEMORY`` and no more, so that a larger request fails at once."""
    resource = pytest.importorskip("resource", reason="the system has no address-space limit")
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("the system does not tell the size of the address space in /proc")
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def attempt(path: Path, data: bytes, tally: Tally) -> None:
    """Read one damaged file; an error carries the bytes that broke a promise."""
    path.write_bytes(data)
    read = read_labels if path.name.startswith("labels") else read_matrix
    try:
        try:
            _check_result(read(path))
            tally.read += 1
        except InputError as error:
            _check_sentence(str(error), path.name)
            tally.refused += 1
    except Exception as error:
        error.add_note(f"reading {data!r}")
        raise


@pytest.mark.parametrize("name", SEEDS)
def test_undamaged_seeds_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SEEDS[name])
    _check_result((read_labels if name.startswith("labels") else read_matrix)(tmp_path / name))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compiled reader of edges have a part in small files, all but their first lines."""
    monkeypatch.setattr(text, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_raise_only_input_errors(name: str, tmp_path: Path) -> None:
    rng, tally = random.Random(f"short {name}"), Tally()
    for _ in range(300):
        data = make(rng, name)
        with traced_memory(tally):
            attempt(tmp_path / name, data, tally)
    # Both ends are reached, so the files are neither harmless nor caught at the door.
    assert tally.read > 0
    assert tally.refused > 0


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEEDS)
def test_very_many_damaged_files(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rng, tally = random.Random(f"long {name}"), Tally()
    # what is compiled or imported late is so once, before memory is capped
    read_matrix(_written(tmp_path / "warm.edges", SEEDS["weighted.edges"] * 9))
    attempt(tmp_path / name, SEEDS[name], Tally())
    with capped_memory():
        for _ in range(long_count("SYMNMF_FUZZ", 100_000)):
            attempt(tmp_path / name, make(rng, name), tally)
    record_property("read", tally.read)
    record_property("refused", tally.refused)
    assert tally.read > 0
    assert tally.refused > 0


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.usefixtures("small_blocks")
def test_compiled_and_general_reading_of_edges_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, used = random.Random(5), 0
    for place in range(400):
        path = _written(tmp_path / f"{place}.edges", grow(rng, "weighted.edges"))
        answers = []
        for compiled in (True, False):
            with monkeypatch.context() as patch:
                if not compiled:
                    patch.setattr(edges._Plain, "parse", lambda *_: None)
                try:
                    read = read_matrix(path)
                except InputError as error:
                    answers.append(str(error))
                else:
                    matrix = read.data
                    names = None if read.names is None else read.names.tolist()
                    rows = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
                    answers.append((names, rows))
                    used += 1
        assert answers[0] == answers[1], path.read_bytes()
    assert used > 100


@pytest.mark.parametrize("weight", ["0.1", "1e22", "123456789012345", "-7.25e-3", "+.5", "5.", "0"])
def test_weights_are_the_nearest_floats(tmp_path: Path, weight: str) -> None:
    lines = "".join(f"{k} {k + 1} {weight}\n" for k in range(60_000))  # more than one block
    data = read_matrix(_written(tmp_path / "a.edges", lines.encode())).data
    assert set(data.data.tolist()) == ({float(weight)} if float(weight) else set())

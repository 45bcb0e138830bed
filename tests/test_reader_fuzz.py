"""Damaged files: whatever the bytes, a reader returns sound data or raises ``InputError``."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import long_count
from fuzzing import FORMATS, MEMORY, Tally, attempt, check_result
from hostile_files import SEEDS, Maker, grow
from symnmf.errors import InputError
from symnmf.readers import edges, read_labels, read_matrix, text


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


@pytest.mark.parametrize("name", SEEDS)
def test_undamaged_seeds_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SEEDS[name])
    check_result((read_labels if name.startswith("labels") else read_matrix)(tmp_path / name))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compiled reader of edges have a part in small files, all but their first lines."""
    monkeypatch.setattr(text, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("error", "ignore:.*parallel edges")
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_raise_only_input_errors(name: str, tmp_path: Path) -> None:
    make, tally = Maker(random.Random(f"short {name}"), name), Tally()
    for _ in range(300):
        data = make()
        with traced_memory(tally):
            attempt(tmp_path / name, data, tally)
    # Both ends are reached, so the files are neither harmless nor refused at once.
    assert tally.read > 0
    assert tally.refused > 0


@pytest.mark.long
@pytest.mark.parametrize("format", FORMATS)
def test_very_many_damaged_files(
    format: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not tell the size of the address space in /proc")
    count = long_count("SYMNMF_FUZZ", 100_000)
    program = Path(__file__).with_name("fuzzing.py")
    done = subprocess.run(
        [sys.executable, program, str(count), tmp_path, format],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith(f"{format} {count} ")
    record_property("seen", done.stdout)


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

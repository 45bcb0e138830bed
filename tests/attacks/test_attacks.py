"""A sample of each attack, and at length with ``make test-long``; each is a program of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import long_count

HERE = Path(__file__).parent
POSIX = pytest.mark.skipif(sys.platform != "linux", reason="limits and owners are Linux's")


def run(program: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / f"{program}.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user gets to; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="symnmf-outputs-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@POSIX
def test_some_outputs(open_folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "written" in run("output_places", 8, 0, open_folder)


@POSIX
def test_some_runs_that_are_short_of_something() -> None:
    assert "done" in run("short_of", 12, 0)


@pytest.mark.long
@POSIX
def test_very_many_outputs(open_folder: Path) -> None:
    run("output_places", long_count("SYMNMF_OUTPUTS", 1000), 0, open_folder)


@pytest.mark.long
@POSIX
def test_very_many_runs_that_are_short_of_something() -> None:
    run("short_of", long_count("SYMNMF_LIMITS", 500), 0)

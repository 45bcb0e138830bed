"""Programs that kill runs and damage their files, in processes of their own: nothing is lost."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import long_count


def run_program(name: str, count: int, folder: Path) -> str:
    """What one of the programs beside this file prints; a crash of it fails the test."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(name), str(count), "12", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def corruptions(count: int, folder: Path) -> dict[str, int]:
    seen = ast.literal_eval(run_program("corruptions.py", count, folder))
    assert sum(seen.values()) == count
    assert seen["refused"] > count // 2
    assert seen["harmless"] > 0
    return seen


def kills(count: int, folder: Path) -> str:
    if not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    said = run_program("kills.py", count, folder)
    assert int(said.split()[0]) == count
    return said


def test_damaged_checkpoints_and_results_are_refused_or_harmless(tmp_path: Path) -> None:
    corruptions(150, tmp_path / "files")


@pytest.mark.long
def test_very_many_damaged_checkpoints_and_results(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    count = long_count("SYMNMF_CORRUPTIONS", 100_000)
    record_property("seen", corruptions(count, tmp_path / "files"))


def test_killed_runs_go_on_bit_for_bit(tmp_path: Path) -> None:
    kills(3, tmp_path / "runs")


@pytest.mark.long
def test_a_thousand_kills(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property("kills", kills(long_count("SYMNMF_KILLS", 1000), tmp_path / "runs"))

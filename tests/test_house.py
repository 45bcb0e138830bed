"""The rooms of the house stay separate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import symnmf

SOURCE = Path(symnmf.__file__).parent


@pytest.mark.parametrize("path", sorted((SOURCE / "solvers").glob("*.py")), ids=lambda p: p.name)
def test_solvers_do_not_know_where_X_lives(path):
    found = re.findall(
        r"scipy\.sparse|matrices\.(?:dense|sparse|lowrank)|\.toarray\(", path.read_text()
    )
    assert not found


def test_there_is_one_loop():
    """Only ``run/loop.py`` drives solvers: nobody else calls ``step`` on one."""
    callers = [
        path.name
        for path in SOURCE.rglob("*.py")
        if re.search(r"(?:solver|method)\.step\(", path.read_text())
    ]
    assert callers == ["loop.py"]

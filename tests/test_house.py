"""Modules stay within the layers of the architecture."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import symnmf

SOURCE = Path(symnmf.__file__).parent


@pytest.mark.parametrize("path", sorted((SOURCE / "solvers").glob("*.py")), ids=lambda p: p.name)
def test_solvers_do_not_depend_on_the_storage_of_X(path):
    found = re.findall(
        r"scipy\.sparse|storage\.(?:dense|sparse|lowrank)|\.toarray\(", path.read_text()
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


def test_every_module_belongs_to_a_layer():
    """The layers of import-linter are complete: a new module must be added to them."""
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    layers = {name.strip() for layer in contracts[0]["layers"] for name in layer.split("|")}
    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {f"symnmf.{name}" for name in modules if not name.startswith("_")} == layers


def test_solvers_know_neither_threads_nor_kernels():
    for path in (SOURCE / "solvers").glob("*.py"):
        assert not re.search(r"symnmf\.(?:kernels|parallel)|\.threads\b|numba", path.read_text())


def test_only_the_command_imports_the_experiments():
    importers = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if re.search(r"(?:from|import) symnmf(?:\.| import )experiments", path.read_text())
    }
    assert importers <= {"cli", "experiments"}


@pytest.mark.parametrize(
    "line",
    ["import numpy; symnmf.factorize(numpy.ones((4, 4)), 1)", "import symnmf.readers"],
    ids=["factorize", "readers"],
)
def test_neither_a_factorization_nor_a_reader_imports_scikit_learn(line):
    code = (
        f"import sys, symnmf; {line};"
        "print({'sklearn', 'pandas', 'matplotlib', 'torch', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_only_the_command_and_two_backends_change_warning_filters():
    """The filters belong to the process: a run in a thread would change them for its caller."""
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"catch_warnings|simplefilter|filterwarnings", path.read_text())
    }
    assert found <= {"cli/app.py", "storage/workers.py", "storage/torch_matrix.py"}

"""What authors of solvers need is public: the solvers of CONTRIBUTING.md, run as it prints them."""

from __future__ import annotations

import re
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

import symnmf

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def printed():
    """The names that the code blocks of the page define."""
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    module = types.ModuleType("printed")
    sys.modules["printed"] = module  # dataclasses look their module up
    for block in blocks:
        exec(compile(textwrap.dedent(block), str(PAGE), "exec"), vars(module))
    yield vars(module), "\n".join(blocks)
    del sys.modules["printed"]


def test_only_public_modules_are_imported(printed):
    imported = set(re.findall(r"from (symnmf\.\w+(?:\.\w+)*) import", printed[1]))
    assert imported
    for name in imported:
        assert name.removeprefix("symnmf.") in symnmf.__all__
    for module, names in re.findall(r"from (symnmf\.\w+) import (.+)", printed[1]):
        public = getattr(symnmf, module.removeprefix("symnmf.")).__all__
        assert set(names.split(", ")) <= set(public)


@pytest.mark.parametrize("name", ["GradientStep", "HeavyBall"])
@pytest.mark.parametrize("options", [{}, {"ignore_diagonal": True}, {"l1": 0.01, "ridge": 0.02}])
def test_the_solvers_of_the_page_run_on_every_objective_they_ask_for(printed, name, options):
    X, _ = symnmf.datasets.synthetic(40, 3, 0.05, random_state=0)
    run = {"random_state": 0, "init": "scaled-random", **options}
    reference = symnmf.factorize(X, 3, **run)
    begin = reference.U + 0.1 * np.random.default_rng(1).random(reference.U.shape)
    near = {**run, "init": begin, "tol": 0, "max_iter": 2000}
    found = symnmf.factorize(X, 3, solver=printed[0][name](), **near)
    values = found.history["value"]
    assert values[0] > 1.5 * reference.value
    assert found.value == pytest.approx(reference.value, rel=0.02)


def test_the_term_of_the_page_is_l1(printed):
    """Down to the certificate: a zero column that would cost more than it brings is no saddle."""
    B = np.random.default_rng(0).random((40, 3))
    X = B @ B.T  # nearly of rank one, so the term puts two columns to zero
    f = symnmf.objectives.Frobenius(symnmf.storage.as_symmetric(X))
    problem = symnmf.Problem.around(f.with_terms(printed[0]["L1"](2.0)))
    for solver in ("auto", "a-symhals"):
        found = symnmf.factorize(problem, 3, solver=solver, random_state=0)
        ours = symnmf.factorize(X, 3, l1=2.0, solver=solver, random_state=0)
        np.testing.assert_allclose(found.U, ours.U, rtol=1e-9, atol=1e-12)
        assert len(found.dead_columns)
        assert found.certificate().verdict == ours.certificate().verdict
    assert found.certificate(symnmf.Problem(X, l1=2.0)).objective == ours.certificate().objective

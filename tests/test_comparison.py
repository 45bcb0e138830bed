from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.comparison import compare
from symnmf.parallel import Threads
from symnmf.plots import convergence
from symnmf.solvers import SymHALS
from symnmf.storage import DenseMatrix

X = synthetic_problem(30, 3, 0.05)


@pytest.fixture(scope="module")
def comparison():
    return compare(X, 3, ["a-symhals", "pgd"], n_init=3, max_iter=8, tol=0, random_state=0)


def test_the_table_holds_every_history(comparison):
    assert tuple(comparison) == ("solver", "run", *symnmf.History.columns, "elapsed")
    assert {len(comparison[column]) for column in comparison} == {2 * 3 * 9}
    mine = (comparison["solver"] == "pgd") & (comparison["run"] == 2)
    history = comparison.results["pgd", 2].history
    for column in symnmf.History.columns:
        np.testing.assert_array_equal(comparison[column][mine], history[column])


def test_all_solvers_set_out_from_the_same_points(comparison):
    first = comparison["iteration"] == 0
    errors = {
        solver: comparison["error"][first & (comparison["solver"] == solver)]
        for solver in ("a-symhals", "pgd")
    }
    # to rounding: V of a split method lies elsewhere in memory, which BLAS may sum otherwise
    np.testing.assert_allclose(errors["a-symhals"], errors["pgd"], rtol=1e-13)
    assert len(set(errors["pgd"])) == 3


def test_a_run_of_a_comparison_is_a_run_of_factorize(comparison):
    alone = symnmf.factorize(X, 3, solver="pgd", random_state=0, tol=0.0, max_iter=8)
    np.testing.assert_array_equal(comparison.results["pgd", 0].U, alone.U)


@dataclass(frozen=True)
class Interrupted(SymHALS):
    """Presses Ctrl-C in its 70th iteration, further than what is done before a run."""

    def step(self, X, state):
        super().step(X, state)
        if state.iteration == 69:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_keeps_what_was_finished():
    table = compare(
        X, 3, ["a-symhals", ("cut", Interrupted()), "pgd"], n_init=2, max_iter=80, tol=0
    )
    assert table.interrupted
    assert "interrupted" in repr(table)
    assert list(table.results) == [("a-symhals", 0), ("cut", 0)]
    assert [result.status for result in table.results.values()] == ["max_iter", "stopped"]
    assert table.results["cut", 0].n_iter == 70


class ProductsOnly(DenseMatrix):
    entries = None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solvers": []}, "solvers must be a list with at least one solver"),
        ({"solvers": "pgd"}, "solvers must be a list"),
        ({"solvers": ["pgd", "pgdd"]}, "solver 'pgdd' is not known"),
        ({"solvers": ["pgd", "pgd"]}, "two entries called 'pgd'"),
        ({"solvers": [(3, "pgd")]}, "labelled by strings, got 3"),
        ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
        ({"n_init": 2, "init": np.ones((30, 3))}, "init is one given start"),
        ({"rank": 31}, "rank must be a whole number from 1 to the 30"),
        ({"max_iter": -1}, "max_iter must be"),
        ({"coupling": "rubust"}, "coupling 'rubust' is not known"),
        ({"init": "rundom"}, "init 'rundom' is not known"),
        ({"X": ProductsOnly(X, Threads(1)), "solvers": ["pgd", "cd"]}, "needs the entries of X"),
    ],
)
def test_mistakes_are_found_before_the_first_run(change, message, monkeypatch):
    monkeypatch.setattr("symnmf.comparison.solve", lambda *_, **__: pytest.fail("a run began"))
    with pytest.raises(symnmf.InputError, match=message):
        compare(**{"X": X, "rank": 3, **change})


# --- the picture


def test_a_curve_per_solver_and_a_band_per_spread(comparison):
    figure = convergence(comparison)
    (ax,) = figure.axes
    assert ax.get_yscale() == "log"
    curves = {line.get_label(): line for line in ax.lines}
    assert set(curves) == {"a-symhals", "pgd"}
    assert len(ax.collections) == 2
    mine = comparison["solver"] == "pgd"
    by_run = comparison["error"][mine].reshape(3, 9)
    np.testing.assert_allclose(curves["pgd"].get_ydata(), np.median(by_run, axis=0))
    band = ax.collections[1].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(by_run.min())
    assert band.max() == pytest.approx(by_run.max())

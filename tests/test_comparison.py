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
from symnmf.run.result import History
from symnmf.solvers import SymHALS
from symnmf.storage import DenseMatrix

X = synthetic_problem(30, 3, 0.05)


@pytest.fixture(scope="module")
def comparison():
    return compare(X, 3, ["a-symhals", "pgd"], n_init=3, max_iter=8, tol=0, random_state=0)


def test_the_table_holds_every_history(comparison):
    assert tuple(comparison) == ("solver", "run", *History.columns, "elapsed")
    assert {len(comparison[column]) for column in comparison} == {2 * 3 * 9}
    mine = (comparison["solver"] == "pgd") & (comparison["run"] == 2)
    history = comparison.results["pgd", 2].history
    for column in History.columns:
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
        ({"solvers": []}, "solvers must name at least one"),
        ({"solvers": "pgd"}, "solvers must be a sequence"),
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


def test_a_line_per_run_and_a_name_per_solver(comparison):
    figure = convergence(comparison)
    (ax,) = figure.axes
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a-symhals", "pgd"]
    mine = comparison["solver"] == "pgd"
    drawn = np.concatenate([line.get_ydata() for line in ax.lines[3:]])
    np.testing.assert_array_equal(drawn, comparison["error"][mine])

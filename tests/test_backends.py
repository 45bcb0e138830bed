"""The contract of every backend with every solver that it supports.

A new backend joins with one line in ``BACKENDS``: a name and what makes it from a dense array.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from strict_backend import StrictMatrix
from symnmf.coupling import COUPLINGS
from symnmf.ops import Hals
from symnmf.parallel import Threads
from symnmf.run.interrupts import Interrupt
from symnmf.run.loop import Run
from symnmf.run.settings import Settings
from symnmf.run.state import Point, State
from symnmf.solvers import SOLVERS, Solver, SplitSolver, as_solver
from symnmf.storage import DenseMatrix, LowRank, SymmetricMatrix, as_symmetric, on_device
from symnmf.storage.observing import by_observed, hide
from symnmf.storage.shared import SharedReading


def seated(X):
    """Return the one seat of a shared reading, taken for as long as the matrix lives."""
    seat = SharedReading(as_symmetric(X), 1).seat(0)
    matrix = seat.__enter__()
    matrix.held = seat  # type: ignore[attr-defined]
    return matrix


BACKENDS = {
    "dense": lambda X: X,
    "dense, three threads": lambda X: DenseMatrix(X, Threads(3)),
    "dense, no entries": lambda X: WithoutEntries(X, Threads(1)),
    "sparse": sp.csr_array,
    "low rank": lambda X: LowRank(np.linalg.eigh(X)[1], np.diag(np.linalg.eigvalsh(X))),
    "a seat of a shared reading": lambda X: seated(X),
    "a foreign array": StrictMatrix,
    "all pairs observed": lambda X: by_observed(X, sp.csr_array(np.ones_like(X)), Threads(1)),
    "no pair hidden": lambda X: hide(as_symmetric(X), *np.zeros((2, 0), dtype=int)),
}
if importlib.util.find_spec("torch"):
    import torch

    torch.set_num_threads(1)  # on a busy machine its own threads mostly wait for one another
    BACKENDS |= {
        "torch": lambda X: on_device(X, "cpu"),
        "torch, sparse": lambda X: on_device(sp.csr_array(X), "cpu"),
    }


class WithoutEntries(DenseMatrix):
    """The dense backend without single entries: some methods begin otherwise then."""

    entries = None

    def scaled(self, factor):
        return WithoutEntries(factor * self.array, self.threads)


X = synthetic_problem(40, 3, 0.2, seed=0)
U0 = np.random.default_rng(1).random((40, 3))

every_backend = pytest.mark.parametrize("backend", BACKENDS)


def supported(backend: str, solver: str) -> bool:
    try:
        as_solver(solver).check(as_symmetric(BACKENDS[backend](X)))
    except symnmf.InputError:
        return False
    return True


PAIRS = [(backend, solver) for backend in BACKENDS for solver in SOLVERS]
OFFERED = [pair for pair in PAIRS if supported(*pair)]
every_pair = pytest.mark.parametrize(("backend", "solver"), OFFERED)


def like(backend: str) -> str:
    """Return the backend that another one is held against."""
    return (
        "dense" if as_symmetric(BACKENDS[backend](X)).entries is not None else "dense, no entries"
    )


def run(backend: str, solver: str, **options: object) -> symnmf.Result:
    settings = {"init": U0, "tol": 0.0, "max_iter": 8, **options}
    return symnmf.factorize(BACKENDS[backend](X), 3, solver=solver, **settings)


@pytest.mark.parametrize(("backend", "solver"), [pair for pair in PAIRS if pair not in OFFERED])
def test_what_a_home_cannot_do_is_refused_by_name(backend, solver):
    with pytest.raises(symnmf.InputError, match=f"solver '{solver}'"):
        run(backend, solver)


@every_pair
def test_iterates_are_those_of_the_dense_home(backend, solver):
    here, dense = run(backend, solver), run(like(backend), solver)
    # L-BFGS magnifies rounding, since scipy builds its pairs anew from every point
    near = 1e-3 if solver == "lbfgs" else 1e-7
    np.testing.assert_allclose(here.U, dense.U, rtol=near, atol=near * dense.U.max())
    np.testing.assert_allclose(here.V, dense.V, rtol=near, atol=near * dense.U.max())
    np.testing.assert_allclose(here.history["error"], dense.history["error"], rtol=10 * near)
    np.testing.assert_allclose(
        here.history["stationarity"], dense.history["stationarity"], rtol=1e-2, atol=1e-6
    )


@every_pair
def test_after_every_step_the_state_tells_the_truth(backend, solver):
    matrix, method = as_symmetric(BACKENDS[backend](X)), as_solver(solver)
    state = method.start(matrix, matrix.ops.put(U0))
    if method.has_coupling:
        state.coupling = 0.5
    for _ in range(12):
        method.step(matrix, state)
        state.iteration += 1
        for point in (state.U, state.V):
            values = matrix.ops.get(point.values)
            assert values.shape == U0.shape
            np.testing.assert_allclose(point.gram, values.T @ values, rtol=1e-9)
            if point.known_product is not None:
                product = matrix.ops.get(point.known_product)
                np.testing.assert_allclose(product, X @ values, rtol=1e-8, atol=1e-8)
        assert matrix.ops.get(state.U.values).min() >= 0.0


@every_pair
def test_a_resumed_run_is_the_uninterrupted_one(backend, solver, tmp_path):
    whole = run(backend, solver)
    file = tmp_path / "run.npz"
    run(backend, solver, max_iter=3, checkpoint=file)
    rest = run(backend, solver, checkpoint=file)
    np.testing.assert_array_equal(rest.U, whole.U)
    np.testing.assert_array_equal(rest.V, whole.V)
    np.testing.assert_array_equal(rest.history["error"], whole.history["error"])


@every_backend
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_couplings_are_those_of_the_dense_home(backend, coupling):
    if (backend, coupling) == ("low rank", "kuang-fixed"):
        return  # the largest entry of a low-rank X is not known, only a bound
    here, dense = (run(name, "a-symhals", coupling=coupling) for name in (backend, "dense"))
    np.testing.assert_allclose(here.history["coupling"], dense.history["coupling"], rtol=1e-5)


@every_backend
@pytest.mark.parametrize("solver", ["auto", "a-symhals"])
def test_the_certificate_is_that_of_the_dense_home(backend, solver):
    ended = run("dense", solver, tol=1e-4, max_iter=3000)
    here, dense = (ended.certificate(BACKENDS[name](X), tol=1e-4) for name in (backend, "dense"))
    assert here.certified
    assert dense.certified
    assert here.stationarity == pytest.approx(dense.stationarity, rel=1e-3)


@pytest.mark.parametrize("backend", [backend for backend in BACKENDS if backend != "low rank"])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_units_come_back_in_the_callers_units(backend, scale):
    scaled, plain = (
        symnmf.factorize(BACKENDS[backend](factor * X), 3, tol=0.0, max_iter=5, random_state=0)
        for factor in (scale, 1.0)
    )
    assert scaled.error == pytest.approx(plain.error, rel=1e-6)


@dataclass(frozen=True)
class GradientStep(Solver):
    """A method on the original problem, written by a stranger from CONTRIBUTING alone."""

    name: ClassVar[str] = "gradient-step"
    summary: ClassVar[str] = "projected gradient with a fixed step"
    cost: ClassVar[str] = "1 product"
    takes_weights: ClassVar[bool] = True

    relative_step: float = 0.1

    def step(self, X: SymmetricMatrix, state: State) -> None:
        U = state.U
        slope = X.ops.gradient(U.values, U.product(X), U.gram)
        state.moved(X.ops.descend(U.values, slope, self.relative_step / X.norm))


@dataclass(frozen=True)
class MirroredHals(SplitSolver):
    """A split method by a stranger: U by a sweep, then V averaged with it, nothing else said."""

    name: ClassVar[str] = "mirrored-hals"
    summary: ClassVar[str] = "a sweep over U, then V halfway to it"
    cost: ClassVar[str] = "1 product"

    @property
    def rows(self) -> Hals:
        return Hals(1)

    def step(self, X: SymmetricMatrix, state: State) -> None:
        V = state.V
        U, _ = X.update(self.rows, state.U.values, V.values, lambda: V.gram, state.coupling)
        state.U = Point(X.ops, U)
        state.V = Point(X.ops, X.ops.combine((0.5, U), (0.5, V.values)))


@every_backend
@pytest.mark.parametrize("solver", [GradientStep(), MirroredHals()], ids=lambda s: s.name)
def test_a_strangers_solver_reports_true_errors_at_every_backend(backend, solver):
    result = run(backend, solver, max_iter=30)
    truth = np.sum((X - result.U @ result.U.T) ** 2) / np.sum(X**2)
    assert result.error == pytest.approx(truth, rel=1e-9)
    assert result.error < result.history["error"][0]


def test_a_home_that_lacks_an_operation_refuses_before_any_product():
    matrix = StrictMatrix(X)
    matrix.matmul = lambda *_: pytest.fail("a product before the refusal")
    for solver in ("symanls", "admm", "cd", "newton"):
        with pytest.raises(symnmf.InputError, match=f"solver '{solver}'"):
            symnmf.factorize(matrix, 3, solver=solver)


def test_the_loop_takes_a_clock():
    matrix = as_symmetric(X)
    ticks = iter(range(1000))
    clock = lambda: float(next(ticks))  # noqa: E731
    counted = Run(matrix, Settings.of("cd", tol=0.0, max_iter=5, clock=clock))
    counted.begin(U0.copy())
    result = counted.loop(Interrupt())
    np.testing.assert_array_equal(np.diff(result.history["seconds"]), 1.0)

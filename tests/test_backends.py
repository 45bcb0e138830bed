"""The contract of every storage backend with every solver that it supports.

A new backend joins with one line in ``BACKENDS``: a name and what makes it from a dense array. One
that holds matrices of some structure only says with ``like`` which array it is made from.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import toeplitz

import symnmf
from conftest import synthetic_problem
from strict_backend import StrictMatrix, put
from symnmf.coupling import COUPLINGS
from symnmf.objectives import Frobenius, MatrixObjective, Objective
from symnmf.objectives.terms import TERMS
from symnmf.ops import Hals, HostOps
from symnmf.parallel import Threads
from symnmf.run import solving
from symnmf.run.loop import Run
from symnmf.run.settings import Settings
from symnmf.run.start import STARTS, named_start
from symnmf.solvers import SOLVERS, HalsNewton, Solver, SplitSolver, as_solver
from symnmf.state import Point, State
from symnmf.storage import (
    Blocks,
    DenseMatrix,
    LowRank,
    SymmetricMatrix,
    as_symmetric,
    on_device,
)

X = synthetic_problem(40, 3, 0.2, seed=0)
U0 = np.random.default_rng(1).random((40, 3))


@dataclass(frozen=True)
class Backend:
    """What makes a backend from a dense array, and the array that it is made from here."""

    make: Callable[[np.ndarray], Any]
    like: Callable[[], np.ndarray] = lambda: X


def stored(X: np.ndarray) -> Blocks:
    """Return X on disk, in blocks of ten rows; the file goes with the folder."""
    folder = tempfile.TemporaryDirectory()
    np.save(Path(folder.name) / "X.npy", X)
    matrix = Blocks(Path(folder.name) / "X.npy", memory=3 * 10 * X.itemsize * len(X))
    matrix.held = folder  # type: ignore[attr-defined]
    return matrix


class Toeplitz(SymmetricMatrix):
    """A stranger's backend: x_ij depends on |i - j| alone, and products are made by FFT."""

    def __init__(self, column: np.ndarray, threads: Threads) -> None:
        super().__init__(len(column), column.dtype, HostOps(threads))
        self.size = 2 * len(column) - 1
        self.spectrum = np.fft.rfft(np.r_[column, column[:0:-1]])[:, None]

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        image = np.fft.irfft(self.spectrum * np.fft.rfft(V, self.size, axis=0), self.size, axis=0)
        return np.ascontiguousarray(image[: len(V)], self.dtype)

    def cost(self, rank: int) -> float:
        return 10.0 * self.size * np.log2(self.size) * rank / 1e9


def falling() -> np.ndarray:
    """Similarities that fall with the distance on a line."""
    return toeplitz(np.exp(-np.arange(40.0) / 5.0))


def in_short(*case: str, needed: bool) -> Any:
    """Return a case that is run every time, or by ``make test-long`` only."""
    return pytest.param(*case, marks=[] if needed else pytest.mark.long)


BACKENDS = {
    "dense": Backend(lambda X: X),
    "dense, three threads": Backend(lambda X: DenseMatrix(X, Threads(3))),
    "dense, no entries": Backend(lambda X: WithoutEntries(X, Threads(1))),
    "sparse": Backend(sp.csr_array),
    "low rank": Backend(lambda X: LowRank(np.linalg.eigh(X)[1], np.diag(np.linalg.eigvalsh(X)))),
    "a foreign array": Backend(StrictMatrix),
    "Toeplitz": Backend(lambda X: Toeplitz(X[0].copy(), Threads(2)), falling),
    "blocks on disk": Backend(stored),
}
if importlib.util.find_spec("torch"):
    import torch

    torch.set_num_threads(1)  # on a busy machine its own threads mostly wait for one another
    BACKENDS |= {
        "torch": Backend(lambda X: on_device(X, "cpu")),
        "torch, sparse": Backend(lambda X: on_device(sp.csr_array(X), "cpu")),
    }
MASKED = list(BACKENDS)
if importlib.util.find_spec("dask"):
    import dask.array as da

    # a product is a graph, so with all solvers it would take minutes: masks only
    DASK = {"dask": Backend(lambda X: da.from_array(X, chunks=16))}
    MASKED += list(DASK)
else:
    DASK = {}


class WithoutEntries(DenseMatrix):
    """The dense backend without single entries: some methods begin otherwise then."""

    entries = None


every_backend = pytest.mark.parametrize("backend", BACKENDS)


def problem(backend: str, factor: float = 1.0, **options: Any) -> symnmf.Problem:
    chosen = (BACKENDS | DASK)[backend]
    return symnmf.Problem(chosen.make(factor * chosen.like()), **options)


def supported(backend: str, solver: str) -> bool:
    try:
        as_solver(solver).check(problem(backend).objective)
    except symnmf.InputError:
        return False
    return True


PAIRS = [(backend, solver) for backend in BACKENDS for solver in SOLVERS]
OFFERED = [pair for pair in PAIRS if supported(*pair)]
#: Backends and methods that stand for the others; all of them: ``make test-long``.
QUICK = {"dense", "dense, no entries", "sparse", "a foreign array", "Toeplitz", "torch, sparse"}
TYPICAL = {"auto", "a-symhals", "symanls", "lbfgs"}
every_pair = pytest.mark.parametrize(
    ("backend", "solver"),
    [in_short(*pair, needed=pair[0] in QUICK or pair[1] in TYPICAL) for pair in OFFERED],
)


def like(backend: str, **options: Any) -> symnmf.Problem:
    """Return the dense problem that another one is held against."""
    X = (BACKENDS | DASK)[backend].like()
    if options:
        return symnmf.Problem(X, **options)
    whole = problem(backend).objective.entries is not None
    return symnmf.Problem(X if whole else WithoutEntries(X, Threads(1)))


def fit(given: symnmf.Problem, solver: str | Solver, **options: object) -> symnmf.Result:
    settings = {"init": U0, "tol": 0.0, "max_iter": 8, **options}
    return symnmf.factorize(given, 3, solver=solver, **settings)


def run(backend: str, solver: str | Solver, **options: object) -> symnmf.Result:
    return fit(problem(backend), solver, **options)


@pytest.mark.parametrize(("backend", "solver"), [pair for pair in PAIRS if pair not in OFFERED])
def test_what_a_backend_cannot_do_is_refused_by_name(backend, solver):
    with pytest.raises(symnmf.InputError, match=f"solver '{solver}'"):
        run(backend, solver)


@every_pair
def test_iterates_are_those_of_the_dense_backend(backend, solver):
    here, dense = run(backend, solver), fit(like(backend), solver)
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
    f, method = problem(backend).objective, as_solver(solver)
    X, ops = BACKENDS[backend].like(), f.ops
    state = method.start(f, ops.put(U0))
    if method.has_coupling:
        state.coupling = 0.5
    for _ in range(12):
        method.step(f, state)
        state.iteration += 1
        for point in (state.U, state.V):
            values = ops.get(point.values)
            assert values.shape == U0.shape
            np.testing.assert_allclose(point.gram, values.T @ values, rtol=1e-9)
            if point.known_product is not None:
                product = ops.get(point.known_product)
                np.testing.assert_allclose(product, X @ values, rtol=1e-8, atol=1e-8)
        assert ops.get(state.U.values).min() >= 0.0


@every_backend
@pytest.mark.parametrize("solver", ["auto", "a-symhals"])  # all of them: test_checkpoint
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
def test_couplings_are_those_of_the_dense_backend(backend, coupling):
    if (backend, coupling) == ("low rank", "kuang-fixed"):
        return  # the largest entry of a low-rank X is not known, only a bound
    here = run(backend, "a-symhals", coupling=coupling)
    dense = fit(like(backend), "a-symhals", coupling=coupling)
    np.testing.assert_allclose(here.history["coupling"], dense.history["coupling"], rtol=1e-5)


@every_backend
@pytest.mark.parametrize("solver", ["auto", "a-symhals"])
def test_the_certificate_is_that_of_the_dense_backend(backend, solver):
    ended = fit(like(backend), solver, tol=1e-4, max_iter=3000)
    here, dense = ended.certificate(problem(backend), tol=1e-4), ended.certificate(tol=1e-4)
    assert here.certified
    assert dense.certified
    assert here.stationarity == pytest.approx(dense.stationarity, rel=1e-3)


# --- masks, weights and added terms: the same at every backend


def half() -> np.ndarray:
    rng = np.random.default_rng(5)
    mask = rng.random((40, 40)) < 0.5
    return np.triu(mask) | np.triu(mask, 1).T


def few() -> np.ndarray:
    mask = np.ones((40, 40), dtype=bool)
    mask[3, 9] = mask[9, 3] = mask[20, 20] = False
    return mask


TOLD: dict[str, Callable[[], dict[str, Any]]] = {
    "half hidden": lambda: {"mask": half()},
    "few hidden": lambda: {"mask": few()},
    "few observed": lambda: {"mask": sp.csr_array(half() & (half() ^ np.roll(half(), 1)))},
    "weights": lambda: {"weights": np.where(half(), 1.0, 0.3)},
    "no diagonal": lambda: {"ignore_diagonal": True},
    "weights and no diagonal": lambda: {"weights": 0.2 + half(), "ignore_diagonal": True},
    **{name: lambda name=name: {name: 0.5} for name in TERMS if name != "links"},
    "ridge and a mask": lambda: {"ridge": 0.7, "l1": 0.1, "mask": half()},
    "links": lambda: {"links": sp.csr_array(few() ^ np.roll(np.roll(few(), 2, 0), 2, 1))},
}


@pytest.mark.filterwarnings("ignore:.*fewer observed entries")
@pytest.mark.parametrize(
    "backend", [in_short(name, needed=name in QUICK | {"dask"}) for name in MASKED]
)
@pytest.mark.parametrize("told", TOLD)
def test_masks_weights_and_terms_are_those_of_the_dense_backend(backend, told):
    if (told, backend) == ("links", "a foreign array"):
        return  # links are put where torch and the host work
    options = TOLD[told]()
    if told == "few observed":  # a sparse mask must be symmetric
        options["mask"] = options["mask"].maximum(options["mask"].T)
    given, dense = problem(backend, **options), like(backend, **options)
    solvers = ("auto",) if backend == "dask" else ("auto", "a-symhals", "symanls", "pgd", "lbfgs")
    for solver in solvers:
        try:
            as_solver(solver).check(given.objective)
        except symnmf.InputError:
            continue
        here, there = fit(given, solver, coupling=None), fit(dense, solver, coupling=None)
        near = 1e-3 if solver == "lbfgs" else 1e-6
        np.testing.assert_allclose(here.U, there.U, rtol=near, atol=near * there.U.max())
        np.testing.assert_allclose(here.history["value"], there.history["value"], rtol=10 * near)
        np.testing.assert_allclose(here.history["error"], there.history["error"], rtol=10 * near)


@pytest.mark.filterwarnings("ignore:.*fewer observed entries")
def test_a_mask_on_a_foreign_device_is_looked_at_there():
    there = fit(symnmf.Problem(StrictMatrix(X), mask=put(half())), "a-symhals", coupling=None)
    here = fit(symnmf.Problem(X, mask=half()), "a-symhals", coupling=None)
    np.testing.assert_allclose(there.U, here.U, rtol=1e-6, atol=1e-6)
    with pytest.raises(symnmf.InputError, match="mask is not symmetric"):
        symnmf.Problem(StrictMatrix(X), mask=put(np.triu(half())))


@pytest.mark.filterwarnings("ignore:.*fewer observed entries")
@pytest.mark.parametrize("backend", [name for name in BACKENDS if "sparse" in name])
@pytest.mark.parametrize("told", TOLD)
def test_runs_that_begin_in_float32_end_at_a_critical_point(monkeypatch, backend, told):
    """Masks, weights and terms have a form in float32, or the run is in float64."""
    options = TOLD[told]()
    if told == "few observed":
        options["mask"] = options["mask"].maximum(options["mask"].T)
    given = problem(backend, **options)
    limits = {"tol": 1e-4, "max_iter": 3000}
    monkeypatch.setattr(solving, "LOOSE_FROM", 0)
    short = fit(given, HalsNewton(), coupling=None, **limits)
    monkeypatch.setattr(solving, "LOOSE_FROM", 10**9)
    whole = fit(given, HalsNewton(), coupling=None, **limits)
    assert short.status == whole.status == "converged"
    assert short.U.dtype == np.float64
    assert short.certificate(given, tol=1e-4).stationarity <= 1e-4
    assert short.value == pytest.approx(whole.value, rel=1e-2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_take_factors_of_any_layout_and_type(backend, dtype):
    chosen = BACKENDS[backend]
    X = chosen.like().astype(dtype)
    stored = as_symmetric(chosen.make(X))
    if not isinstance(stored.ops, HostOps):
        return  # a tensor has one layout
    V = np.random.default_rng(0).random((40, 3))
    near = 1e-5 if dtype == np.float32 else 1e-12
    for given in (
        np.asfortranarray(V),
        np.repeat(V, 2, axis=1)[:, ::2],
        V[::-1],
        V.astype(np.float32),
        (10 * V).astype(int),
        V.astype(stored.dtype),
    ):
        np.testing.assert_allclose(stored.matmul(given), X @ given, rtol=max(near, 1e-6))


@every_backend
def test_what_products_alone_say_of_X_is_what_the_backend_says(backend):
    whole = BACKENDS[backend].like()
    X = as_symmetric(BACKENDS[backend].make(whole))
    assert SymmetricMatrix.compute_sqnorm(X) == pytest.approx(X.sqnorm)
    assert SymmetricMatrix.compute_largest(X) == pytest.approx(np.abs(whole).max())
    for columns in (SymmetricMatrix.columns(X, 3, 9), X.columns(3, 9)):
        np.testing.assert_allclose(X.ops.get(columns), whole[:, 3:9], atol=1e-12)
    again = np.zeros_like(whole)
    for square, block in SymmetricMatrix.parts(X):
        rows, columns = slice(*square[:2]), slice(*square[2:])
        again[rows, columns] = X.ops.get(block)
        again[columns, rows] = again[rows, columns].T
    np.testing.assert_allclose(again, whole, atol=1e-12)
    assert SymmetricMatrix.digest(X) == SymmetricMatrix.digest(X)


def test_a_run_begins_where_products_of_the_backend_say_that_it_pays():
    """A product by FFT costs far more than one with a sketch, and eigenvectors take forty."""
    X, columns = Toeplitz(np.exp(-np.arange(3000.0) / 50.0), Threads(1)), []
    matmul = X.matmul

    def counted(V, out=None):
        columns.append(V.shape[1])
        return matmul(V, out)

    assert X.sqnorm > 0.0  # from products too, which every start needs
    X.matmul = counted
    f = Frobenius(X)
    assert named_start("auto", f, 5) == "sketch"
    STARTS["spectral"](f, 5, 0)
    from_eigenvectors = sum(columns)
    columns.clear()
    STARTS["sketch"](f, 5, 0)
    assert sum(columns) < from_eigenvectors / 2


@dataclass(frozen=True)
class GradientStep(Solver):
    """A method on the original problem, written by a stranger from CONTRIBUTING alone."""

    name: ClassVar[str] = "gradient-step"
    summary: ClassVar[str] = "projected gradient with a fixed step"
    cost: ClassVar[str] = "1 product"
    requires: ClassVar[tuple[str, ...]] = ("along",)

    relative_step: float = 0.1

    def step(self, f: Objective, state: State) -> None:
        U = state.U
        slope = f.ops.gradient(U.values, U.product(f), U.gram)
        state.moved(f.ops.descend(U.values, slope, self.relative_step / f.norm))


@dataclass(frozen=True)
class MirroredHals(SplitSolver):
    """A split method by a stranger: U by a sweep, then V averaged with it, nothing else said."""

    name: ClassVar[str] = "mirrored-hals"
    summary: ClassVar[str] = "a sweep over U, then V halfway to it"
    cost: ClassVar[str] = "1 product"

    @property
    def rows(self) -> Hals:
        return Hals(1)

    def step(self, f: Objective, state: State) -> None:
        assert isinstance(f, MatrixObjective)
        V = state.V
        U, _ = f.update(self.rows, state.U.values, V.values, V.gram, state.coupling)
        state.U = Point(f.ops, U)
        state.V = Point(f.ops, f.ops.combine((0.5, U), (0.5, V.values)))


@every_backend
@pytest.mark.parametrize("solver", [GradientStep(), MirroredHals()], ids=lambda s: s.name)
def test_a_strangers_solver_reports_true_errors_at_every_backend(backend, solver):
    result, X = run(backend, solver, max_iter=30), BACKENDS[backend].like()
    truth = np.sum((X - result.U @ result.U.T) ** 2) / np.sum(X**2)
    assert result.error == pytest.approx(truth, rel=1e-9)
    assert result.error < result.history["error"][0]


def test_a_backend_that_lacks_an_operation_refuses_before_any_product():
    matrix = StrictMatrix(X)
    matrix.matmul = lambda *_: pytest.fail("a product before the refusal")
    for solver in ("symanls", "admm", "cd", "newton"):
        with pytest.raises(symnmf.InputError, match=f"solver '{solver}'"):
            symnmf.factorize(matrix, 3, solver=solver)


def test_the_loop_takes_a_clock():
    ticks = iter(range(1000))
    clock = lambda: float(next(ticks))  # noqa: E731
    counted = Run(symnmf.Problem(X), Settings.of("cd", tol=0.0, max_iter=5, clock=clock))
    counted.begin(U0.copy())
    result = counted.result(counted.iterate())
    np.testing.assert_array_equal(np.diff(result.history["seconds"]), 1.0)

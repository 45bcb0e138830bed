"""Factors as torch tensors: the same contract as on the host, on whatever device there is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch", reason="torch is not installed: make install-torch")

import symnmf
from conftest import synthetic_problem
from symnmf.bounds.squares import all_eigenvalues, by_sampling
from symnmf.ops import HostOps
from symnmf.ops.torch_ops import device_ops
from symnmf.parallel import Threads
from symnmf.run.result import Snapshot
from symnmf.state import Point
from symnmf.steps.second_order import lowest_curvature
from symnmf.storage import as_symmetric, on_device

# on a busy machine torch's own threads wait for one another for most of the time
torch.set_num_threads(1)

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES)
def device(request):
    return torch.device(request.param)


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return np.dtype(request.param)


class Both:
    """The host's operations and the device's, on the same random factors."""

    def __init__(self, device, dtype, n=700, r=7, seed=0):
        self.host, self.device = HostOps(Threads(1)), device_ops(device)
        self.rng, self.shape, self.dtype = np.random.default_rng(seed), (n, r), dtype
        self.close = 1e-10 if dtype == np.float64 else 2e-4

    def factor(self, *, signed=False, sparse=False):
        values = self.rng.standard_normal(self.shape)
        values = values if signed else np.abs(values)
        return np.ascontiguousarray(
            np.where(self.rng.random(self.shape) < 0.4, 0, values) if sparse else values,
            dtype=self.dtype,
        )

    def check(self, name, *arguments):
        """Call an operation in both backends, each on copies of its own, and compare all of it."""
        mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        theirs = [
            self.device.put(a) if isinstance(a, np.ndarray) and a.shape[-2:] == self.shape else a
            for a in arguments
        ]
        self.same(getattr(self.host, name)(*mine), getattr(self.device, name)(*theirs))
        return mine, theirs

    def same(self, expected, found):
        if isinstance(expected, tuple):
            for one, other in zip(expected, found, strict=True):
                self.same(one, other)
            return
        found = self.device.get(found) if isinstance(found, torch.Tensor) else np.asarray(found)
        scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=self.close * scale)


@pytest.fixture
def both(device, dtype):
    return Both(device, dtype)


def test_sums_and_entrywise_operations_equal_the_hosts(both):
    U, V, P = both.factor(), both.factor(sparse=True), both.factor(signed=True)
    gram = both.host.gram(V)
    for name, arguments in {
        "inner": (U, P), "gram": (U,), "cross": (U, P), "column_sums": (P,), "apart": (U, V),
        "natural_residual": (U, P, gram, 0.01), "clip": (P,), "times": (U, gram),
        "multiplied": (V, U, gram, 1.0, 0.9),
    }.items():  # fmt: skip
        both.check(name, *arguments)
    both.check("multiplied", V, U, gram, 1 / 3, 1.0)
    both.same(
        both.host.combine((0.5, U), (1.0, V), (-2.0, P)),
        both.device.combine(*((w, both.device.put(T)) for w, T in ((0.5, U), (1.0, V), (-2.0, P)))),
    )


# --- matrices


def problem(kind, dtype):
    X = synthetic_problem(150, 4, 0.2, seed=3).astype(dtype)
    if kind == "sparse":
        X = np.where(np.quantile(X, 0.7) < X, X, 0)
        return sp.csr_array(X)
    return X


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_matrix_says_the_same_of_itself_in_both_homes(device, dtype, kind):
    X = problem(kind, dtype)
    host, there = as_symmetric(X), on_device(X, device)
    close = 1e-12 if dtype == np.float64 else 1e-5
    assert there.sqnorm == pytest.approx(host.sqnorm, rel=close)
    assert there.largest() == host.largest()
    assert there.digest() == host.digest()
    U = np.abs(np.random.default_rng(0).standard_normal((150, 3))).astype(dtype)
    image = there.ops.get(there.matmul(there.ops.put(U)))
    np.testing.assert_allclose(image, host.matmul(U), rtol=20 * close)
    T = there.ops.put(U)
    assert there.residual_sqnorm(T, T) == pytest.approx(host.residual_sqnorm(U, U), rel=20 * close)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_default_converges_on_the_device(device, dtype, kind):
    X = on_device(problem(kind, dtype), device)
    result = symnmf.factorize(X, 4, random_state=0, tol=1e-4)
    assert result.status == "converged"
    assert result.certificate(X, tol=2e-4).certified  # in float32 it is measured a little anew
    assert np.all(np.diff(result.history["objective"]) <= 1e-5 * result.history["objective"][0])


@pytest.mark.parametrize("options", [{}, {"ridge": 0.3}, {"ignore_diagonal": True}])
def test_curvature_and_eigenvalues_are_those_of_the_host(device, options):
    rng = np.random.default_rng(0)
    X = problem("dense", np.float64)
    U = np.where(rng.random((150, 4)) < 0.7, rng.random((150, 4)), 0.0)
    host, there = (symnmf.Problem(X, **options).objective for X in (X, on_device(X, device)))
    mine, theirs = (lowest_curvature(f, Point(f.ops, f.ops.put(U))) for f in (host, there))
    assert mine is not None
    assert theirs is not None
    assert theirs.lowest == pytest.approx(mine.lowest, rel=1e-9)
    np.testing.assert_allclose(theirs.direction, mine.direction, atol=1e-5)


def test_leading_eigenvalues_are_found_on_the_device(device):
    X = problem("dense", np.float64)
    matrix, size = on_device(X, device), float(np.linalg.norm(X))
    found = by_sampling(matrix.matmul, len(X), 4, size, 1e-13 * size, ops=matrix.ops)
    exact = all_eigenvalues(X, 4).total
    assert exact * (1 - 1e-12) <= found.total <= exact + 1e-5 * size**2


# --- the public interface


def test_tensors_in_tensors_out(device):
    X = torch.from_numpy(problem("dense", np.float64)).to(device)
    result = symnmf.factorize(X, 4, random_state=0)
    assert isinstance(result.U, torch.Tensor)
    assert result.U.device == X.device
    assert result.V is result.U
    assert result.labels.tolist() == result.U.argmax(1).tolist()
    assert torch.allclose(result.membership.sum(1), torch.ones(150, dtype=X.dtype, device=device))
    assert result.certificate(X).certified
    misfit = float(torch.linalg.norm(X - result.U @ result.U.T) ** 2 / torch.linalg.norm(X) ** 2)
    assert result.error == pytest.approx(misfit, rel=1e-9)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[:3], "must be square"),
        (lambda X: X[0], "1 dimension"),
        (lambda X: X - 1, "negative entries"),
        (lambda X: X + X.new_tensor(float("nan")), "NaN or infinite"),
        (lambda X: X + torch.arange(150, device=X.device), "not symmetric"),
        (lambda X: X.to(torch.complex64), "must be real"),
    ],
)
def test_a_tensor_is_checked_where_it_lives(device, spoil, message):
    X = spoil(torch.from_numpy(problem("dense", np.float64)).to(device))
    with pytest.raises(symnmf.InputError, match=message):
        on_device(X, device)


def test_devices_that_are_not_there_are_refused_before_any_work():
    X = problem("dense", np.float64)
    with pytest.raises(symnmf.InputError, match="device must be None"):
        symnmf.factorize(X, 4, device="gpu please")
    with pytest.raises(symnmf.InputError, match=r"out of range|sees no CUDA device"):
        symnmf.factorize(X, 4, device="cuda:99")
    with pytest.raises(symnmf.InputError, match="not supported"):
        symnmf.SymNMF(2, device="meta").fit(X)
    low = symnmf.storage.LowRank(np.eye(5, 2))
    with pytest.raises(symnmf.InputError, match="LowRank"):
        on_device(low, "cpu")


def test_a_checkpoint_goes_on_in_the_other_home(device, tmp_path):
    X = problem("dense", np.float64)
    there, path = on_device(X, device), tmp_path / "run.npz"
    settings = {"random_state": 0, "tol": 0.0, "solver": "a-symhals"}
    symnmf.factorize(there, 4, max_iter=4, checkpoint=path, **settings)
    resumed = symnmf.factorize(X, 4, max_iter=9, checkpoint=path, **settings)
    whole = symnmf.factorize(X, 4, max_iter=9, **settings)
    np.testing.assert_allclose(resumed.history["error"], whole.history["error"], rtol=1e-8)
    symnmf.factorize(X, 4, max_iter=12, checkpoint=path, **settings)
    back = symnmf.factorize(there, 4, max_iter=14, checkpoint=path, **settings)
    assert back.n_iter == 14


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_each_of_several_starts_ends_as_it_would_alone(device, kind):
    from symnmf.run.multistart import Plan
    from symnmf.run.settings import Settings

    X = on_device(problem(kind, np.float64), device)
    ends: dict[int, Snapshot] = {}
    settings = Settings.of(tol=1e-4)
    best = Plan(4, settings, n_init=4, random_state=0, progress=ends.__setitem__).search(X).best
    assert best.status == "converged"
    for now in ends.values():
        assert now.stationarity <= 1e-4
        assert best.error <= now.error * (1 + 1e-9)
    assert best.certificate(X, tol=2e-4).certified


def test_streamed_rows_give_the_same_products(device):
    from symnmf.storage.streamed_rows import StreamedRows
    from symnmf.storage.torch_matrix import TorchDense

    X = problem("dense", np.float64)
    rows = StreamedRows(torch.from_numpy(X), device, resident=20)
    rows.step = 32
    rows.buffers = [buffer[:32] for buffer in rows.buffers]
    streamed, whole = TorchDense(rows, device), on_device(X, device)
    V = whole.ops.put(np.random.default_rng(0).random((150, 4)))
    for _ in range(2):
        assert torch.allclose(streamed.matmul(V), whole.matmul(V), rtol=1e-13)
    assert streamed.sqnorm == pytest.approx(whole.sqnorm, rel=1e-14)
    assert streamed.digest() == whole.digest()
    assert streamed.residual_sqnorm(V, V) == pytest.approx(whole.residual_sqnorm(V, V), rel=1e-12)
    result = symnmf.factorize(streamed, 4, random_state=0)
    assert result.error == pytest.approx(symnmf.factorize(whole, 4, random_state=0).error, rel=1e-6)

"""No U >= 0 comes below the bound, and where it should be tight it is."""

import dataclasses
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from strict_backend import StrictMatrix
from symnmf.bounds import best_bound, dual_search, frobenius, squares, weighted
from symnmf.bounds.bound import Bound, percent, rounded_down
from symnmf.bounds.dual_search import admm, decrease
from symnmf.bounds.groups import between_groups
from symnmf.bounds.target import explained_at_a_price, observed_block
from symnmf.run.bounding import target_of
from symnmf.storage import LowRank, as_symmetric


def misfit(X: np.ndarray, U: np.ndarray) -> float:
    return 0.5 * float(((X - U @ U.T) ** 2).sum())


def bound_of(X, U, **options):
    """The bound of an array, with the objective computed apart from the library."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    return best_bound(
        frobenius(as_symmetric(X, allow_negative=True)), U, misfit(dense, U), **options
    )


def random_matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    kind = rng.integers(4)
    A = rng.random((n, n))
    if kind == 0:
        A = rng.standard_normal((n, n))
    elif kind == 1:
        A *= rng.random((n, n)) < 0.3
    elif kind == 2:
        B = rng.random((n, int(rng.integers(1, n + 1))))
        A = B @ B.T
    return 0.5 * (A + A.T) * 10.0 ** rng.uniform(-15, 15)


def good_factor(X: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
    """Projected gradient steps from a random start, without the library: some U >= 0."""
    size = np.linalg.norm(X)
    U = rng.random((len(X), rank))
    scale = max(np.vdot(X @ U, U), 0.0) / max(np.linalg.norm(U.T @ U) ** 2, 1e-300)
    U *= np.sqrt(scale) if scale > 0 else np.sqrt(size) / np.linalg.norm(U)
    for _ in range(60):
        U = np.maximum(U - (U @ (U.T @ U) - X @ U) / (2 * size + 1e-300), 0.0)
    return U


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 4))
def test_no_factor_comes_below_it(seed: int, n: int, rank: int) -> None:
    """Any sign of X, thirty orders of scale, every way that leads to a bound."""
    rng = np.random.default_rng(seed)
    rank = min(rank, n)
    X = random_matrix(rng, n)
    U = good_factor(X, rank, rng)
    bound = bound_of(X, U, max_time=0.02)
    assert bound.known
    assert bound.value <= min(misfit(X, U), 0.5 * np.linalg.norm(X) ** 2) * (1 + 1e-12)
    assert bound.gap >= 0.0


@pytest.mark.parametrize("sign", [1, -1])
def test_brute_force_on_two_rows(sign: int) -> None:
    """n = 2, r = 1: the best error over a fine grid, and the bound is that."""
    X = np.array([[1.0, 0.6 * sign], [0.6 * sign, 0.5]])
    grid = np.linspace(0, 1.3, 261)
    a, b = np.meshgrid(grid, grid)
    all_errors = (X[0, 0] - a * a) ** 2 + 2 * (X[0, 1] - a * b) ** 2 + (X[1, 1] - b * b) ** 2
    best = np.unravel_index(all_errors.argmin(), all_errors.shape)
    bound = bound_of(X, np.array([[a[best]], [b[best]]]))
    assert bound.value <= 0.5 * all_errors.min()
    assert bound.value == pytest.approx(0.5 * all_errors.min(), rel=1e-3)


@pytest.mark.parametrize("kind", ["dense", "sparse", "low-rank", "float32", "blocks"])
def test_an_exact_factorization_is_the_best_possible(kind: str, tmp_path) -> None:
    rng = np.random.default_rng(1)
    B = rng.random((400, 5)) * (rng.random((400, 5)) < 0.5)
    X, U = B @ B.T, B
    if kind == "float32":
        U = B.astype(np.float32)
        X = (U @ U.T).astype(np.float32)
    given_as = {"sparse": sp.csr_array(X), "low-rank": LowRank(B)}.get(kind, X)
    if kind == "blocks":
        np.save(tmp_path / "X.npy", X)
        given_as = symnmf.storage.Blocks(tmp_path / "X.npy")
    result = symnmf.factorize(given_as, 5, init=U, tol=1e-12, max_iter=3)
    target = frobenius(as_symmetric(given_as))
    bound = best_bound(target, U.astype(float), misfit(X.astype(float), U.astype(float)))
    assert bound.proved_global
    assert bound.error <= 1e-12 + (1e-6 if kind == "float32" else 0)
    assert bound.value <= result.error * target.unit + 1e-12 * target.unit


def copies(graph: np.ndarray, count: int) -> sp.csr_array:
    return sp.csr_array(sp.block_diag([graph] * count))


@pytest.mark.parametrize("method", ["proved", "sampled"])
def test_copies_of_a_component_are_all_counted(method: str, monkeypatch) -> None:
    """Repeated eigenvalues: Lanczos from one vector loses copies, and its bound is too high."""
    rng = np.random.default_rng(0)
    A = rng.random((9, 9))
    monkeypatch.setattr(squares, "ALL_UP_TO", 100)
    X = copies(A + A.T, 50)
    rank = 5
    exact = np.repeat(np.linalg.eigvalsh(A + A.T)[::-1], 50)[:rank]
    target = frobenius(as_symmetric(X))
    found = target.squares(rank) if method == "proved" else target.sampled(rank)
    total = float((np.maximum(exact, 0) ** 2).sum())
    assert total <= found.total <= total * (1 + (1e-8 if method == "proved" else 0.01))
    assert (found.failure == 0.0) == (method == "proved")


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(12, 60), st.integers(1, 6), st.booleans())
def test_sums_of_squares_are_never_too_small(seed: int, n: int, rank: int, repeated: bool) -> None:
    """By each of the three ways, for spectra with ties, gaps, and a large negative end."""
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
    if repeated:
        spectrum = np.round(spectrum / np.abs(spectrum).max() * 3)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (Q * spectrum) @ Q.T
    A = 0.5 * (A + A.T)
    exact = float((np.maximum(np.sort(spectrum)[::-1][:rank], 0) ** 2).sum())
    size = float(np.linalg.norm(A))
    ways = [
        squares.all_eigenvalues(A, rank),
        squares.by_sampling(lambda V: A @ V, n, rank, size, n * squares.EPS * size),
    ]
    for found in ways:
        assert found.total >= exact * (1 - 1e-13)
    assert ways[0].total <= exact + 1e-9 * size**2


def test_the_cholesky_proof_refuses_what_is_not_so() -> None:
    """With the second eigenvector left out, nothing proves that the first is all there is."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    A = (Q * np.linspace(-1, 2, 50)) @ Q.T
    A = 0.5 * (A + A.T)
    values, vectors = np.linalg.eigh(A)
    kept, skipped = vectors[:, -1:], vectors[:, -2:-1]
    edge = values[-3] + 1e-9
    assert squares._proved_below(A, np.hstack([kept, skipped]), values[[-1, -2]], edge) is not None
    assert squares._proved_below(A, kept, values[-1:], edge) is None


def test_large_matrices_are_proved_by_factoring(monkeypatch) -> None:
    monkeypatch.setattr(squares, "ALL_UP_TO", 100)
    rng = np.random.default_rng(3)
    X = sp.random_array((300, 300), density=0.02, rng=rng)
    X = sp.csr_array(X + X.T)
    found = frobenius(as_symmetric(X)).squares(4)
    exact = np.linalg.eigvalsh(X.toarray())[-4:]
    assert found.how == "factoring"
    assert found.failure == 0.0
    total = float((exact**2).sum())
    assert total <= found.total <= total * (1 + 1e-7)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_the_proximal_map_minimises(seed: int, rank: int) -> None:
    """Against random moves around it, in the eigenvalues, where the problem is separable."""
    rng = np.random.default_rng(seed)
    values = np.sort(np.round(rng.standard_normal(8), 1))[::-1]
    rho = 10.0 ** rng.uniform(-1, 1)

    def objective(w: np.ndarray) -> float:
        top = np.sort(w)[::-1][:rank]
        return float((np.maximum(top, 0) ** 2).sum() + 0.5 * rho * ((w - values) ** 2).sum())

    best = values - decrease(values, rank, rho)
    for _ in range(200):
        moved = best + rng.standard_normal(8) * 10.0 ** rng.uniform(-5, 0)
        assert objective(best) <= objective(moved) + 1e-9


@pytest.mark.parametrize(
    ("name", "rank", "error", "gap"),
    [
        ("karate", 2, 0.699324, 1e-6),
        ("dolphins", 2, 0.835654, 1e-6),
        ("polbooks", 3, 0.789948, 1e-6),
        ("football", 12, 0.426915, 1.62e-3),
    ],
)
def test_small_graphs(name: str, rank: int, error: float, gap: float) -> None:
    """Proved to be global minima, but for football, where the bound itself ends at 0.159%."""
    try:
        data = symnmf.datasets.load(name)
    except symnmf.InputError as absent:
        pytest.skip(str(absent))
    scale = 1 / np.sqrt(np.asarray(data.data.sum(axis=1)).ravel())
    X = sp.csr_array(data.data * scale[:, None] * scale)
    found = min(
        (symnmf.factorize(X, rank, init="spectral"), symnmf.factorize(X, rank, random_state=0)),
        key=lambda result: result.error,
    )
    bound = bound_of(X, found.U, max_time=60)
    assert found.error == pytest.approx(error, abs=1e-6)
    assert bound.error <= found.error
    assert bound.gap <= gap
    if name != "football":
        assert bound.proved_global
        assert "global minimum" in str(bound)
    else:
        assert not bound.proved_global
        # the maximum over N is known: Z >= 0 positive semidefinite of rank 12 attains it
        assert bound.error <= 0.42623656


@pytest.mark.parametrize("all_up_to", [600, 50])
def test_a_search_for_n_raises_the_bound(all_up_to: int, monkeypatch) -> None:
    """With all eigenpairs in float64, and with a block of them in float32."""
    monkeypatch.setattr(dual_search, "ALL_UP_TO", all_up_to)
    X = block_model(90, 5)
    U = symnmf.factorize(X, 5, random_state=0).U
    alone, searched = bound_of(X, U, max_time=0), bound_of(X, U, max_time=60)
    assert alone.how == "eigenvalues"
    assert searched.how == "prices"
    assert searched.gap < 0.25 * alone.gap


def test_an_n_between_groups_raises_the_bound() -> None:
    X = block_model(90, 5)
    U = symnmf.factorize(X, 5, random_state=0).U
    target = frobenius(as_symmetric(X))
    found = target.squares(5)
    grouped = between_groups(target, 5, U, found.vectors, 60.0)
    assert grouped is not None
    N, _ = grouped
    assert (N.C >= 0).all()
    assert (N.H >= 0).all()
    full = X.toarray() + N.H @ N.C @ N.H.T
    assert squares.all_eigenvalues(full, 5).total < found.total
    assert N.size == pytest.approx(np.linalg.norm(N.H @ N.C @ N.H.T))


def test_a_matrix_too_large_for_any_n(monkeypatch) -> None:
    """The whole path of a large matrix: sampled eigenvalues, and an N between groups."""
    monkeypatch.setattr("symnmf.bounds.target.DENSE_UP_TO", 50)
    X = block_model(90, 5)
    U = symnmf.factorize(X, 5, random_state=0).U
    bound = bound_of(X, U, max_time=60)
    assert bound.failure == squares.FAILURE
    assert bound.gap < 0.01
    assert "with probability" in str(bound)


def block_model(n: int, rank: int) -> sp.csr_array:
    rng = np.random.default_rng(0)
    member = rng.integers(rank, size=n)
    dense = rng.random((n, n)) < np.where(member[:, None] == member, 0.5, 0.1)
    X = np.triu(dense, 1).astype(float)
    return sp.csr_array(X + X.T)


def test_every_n_of_the_search_is_symmetric_and_nonnegative() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((30, 30))
    X = X + X.T
    for step, Y in enumerate(admm(X, rng.random((30, 3)))):
        assert (Y >= X).all()
        np.testing.assert_allclose(Y, Y.T, atol=1e-12)
        if step == 20:
            break


def test_a_float32_matrix_is_proved_as_precisely_as_a_float64_one(monkeypatch) -> None:
    """Residuals are those of the entries given, and no product in float32 blurs them."""
    monkeypatch.setattr(squares, "ALL_UP_TO", 100)
    rng = np.random.default_rng(0)
    B = rng.random((240, 3))
    X = (B @ B.T + 0.05).astype(np.float32)
    X = 0.5 * (X + X.T)
    exact = float((np.linalg.eigvalsh(X.astype(float))[-3:] ** 2).sum())
    found = frobenius(as_symmetric(X)).squares(3)
    assert found.how == "factoring"
    assert exact * (1 - 1e-13) <= found.total <= exact * (1 + 1e-8)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 8), st.integers(1, 3))
def test_ridge_and_links(seed: int, n: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    X, rank = np.abs(random_matrix(rng, n)), min(rank, n)
    X /= np.linalg.norm(X) + 1e-300
    ridge = float(rng.random())
    Q = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.3)
    Q = Q + Q.T
    links = as_symmetric(sp.csr_array(Q), allow_negative=True)
    target = frobenius(as_symmetric(X), ridge=ridge, links=(links,))
    for _ in range(4):
        U = good_factor(X - Q / 2 - ridge / 2 * np.eye(n), rank, rng)
        value = misfit(X, U) + 0.5 * ridge * (U**2).sum() + 0.5 * np.trace(U.T @ Q @ U)
        bound = best_bound(target, U, value, plain=False, max_time=0.02)
        assert bound.value <= value + 1e-12 * (1 + abs(value))
        assert np.isnan(bound.error)


@pytest.mark.parametrize("seed", range(8))
def test_factors_that_cancel_leave_a_bound(seed: int) -> None:
    """X = B C B^T is the difference of terms 10^8 times as large; its entries are exact here."""
    rng = np.random.default_rng(seed)
    Q = 1e4 * rng.random((10, 2))
    B, signs = np.hstack([Q, Q + 1e-4 * rng.random((10, 2))]), [1, 1, -1, -1]
    rows = [[Fraction(float(entry)) for entry in row] for row in B]
    X = np.array(
        [
            [float(sum(s * a * b for s, a, b in zip(signs, u, v, strict=True))) for v in rows]
            for u in rows
        ]
    )
    largest = np.maximum(np.linalg.eigvalsh(X)[-2:], 0.0)
    target = frobenius(as_symmetric(LowRank(B, np.diag(signs).astype(float)), allow_negative=True))
    exact = 0.5 * float((X**2).sum() - (largest**2).sum())
    found = target.value(target.squares(2))
    assert exact - 1e-4 * target.unit <= found <= exact


def test_a_ridge_on_a_low_rank_matrix() -> None:
    B = np.random.default_rng(0).random((60, 4))
    targets = [frobenius(as_symmetric(X), ridge=0.7) for X in (B @ B.T, LowRank(B))]
    totals = [target.squares(3).total for target in targets]
    assert totals[0] == pytest.approx(totals[1], rel=1e-10)
    assert totals[0] < frobenius(as_symmetric(B @ B.T)).squares(3).total


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(3, 9), st.booleans())
def test_weights(seed: int, n: int, hidden: bool) -> None:
    rng = np.random.default_rng(seed)
    X = np.abs(random_matrix(rng, n))
    X /= np.linalg.norm(X) + 1e-300
    W = rng.uniform(0.2, 1.0, (n, n))
    if hidden:
        W *= rng.random((n, n)) < 0.8
    W = np.triu(W) + np.triu(W, 1).T
    anywhere = rng.random((n, 2)) * np.sqrt(X.max())
    target = weighted(X, W, anywhere)
    U = good_factor(X, 2, rng)
    value = 0.5 * float((W * (X - U @ U.T) ** 2).sum())
    bound = best_bound(target, U, value, max_time=0.02)
    assert not bound.known or bound.value <= value * (1 + 1e-12)
    if not hidden:
        assert bound.known


def test_the_bound_with_weights_uses_them() -> None:
    """More than c times the plain bound, at the U it was made for."""
    rng = np.random.default_rng(0)
    X = rng.random((20, 20))
    X += X.T
    W = np.where(rng.random((20, 20)) < 0.5, 1.0, 0.2)
    W = np.triu(W) + np.triu(W, 1).T
    U = symnmf.factorize(X, 2, weights=W, random_state=0).U
    target = weighted(X, W, U)
    assert target is not None
    plain = frobenius(as_symmetric(X))
    assert target.value(target.squares(2)) > 1.3 * 0.2 * plain.value(plain.squares(2))


def test_rows_whose_pairs_are_all_observed() -> None:
    rng = np.random.default_rng(0)
    observed = rng.random((30, 30)) < 0.97
    observed &= observed.T
    rows = observed_block(observed)
    assert observed[np.ix_(rows, rows)].all()
    assert len(rows) >= 10
    assert not len(observed_block(~np.eye(5, dtype=bool)))


def test_no_bound_is_an_answer() -> None:
    U = np.ones((5, 2))
    bound = best_bound(None, U, 1.0)
    assert not bound.known
    assert not bound.proved_global
    assert np.isnan(bound.gap)
    assert str(bound) == "No bound on the best possible error is known for this problem."


def test_what_is_printed_is_true() -> None:
    """A bound is rounded down and a distance up."""
    assert rounded_down(0.924069, 5) == "0.92406"
    assert rounded_down(1234.56, 3) == "1.23e+03"
    assert percent(0.0000412) == "0.0042%"
    assert percent(0.00540001) == "0.55%"
    assert percent(0.5) == "50%"


def test_a_result_has_its_bound() -> None:
    X = block_model(60, 3).toarray()
    result = symnmf.factorize(X, 3, random_state=0)
    bound = result.bound(X)
    assert isinstance(bound, symnmf.Bound)
    assert bound.error <= result.error
    assert bound.reached_error == result.error
    assert bound.gap == pytest.approx((result.error - bound.error) / result.error, rel=1e-9)
    huge = symnmf.factorize(1e20 * X, 3, init=1e10 * result.U, max_iter=0)
    assert huge.bound(1e20 * X).error == pytest.approx(bound.error, rel=1e-3)


@pytest.mark.parametrize("power", [-28, 28])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_bounds_follow_the_scale_of_X(power: int, ridge: float) -> None:
    X, unit = block_model(40, 3).toarray(), 10.0**power
    result = symnmf.factorize(X * unit, 3, ridge=ridge * unit, random_state=0, max_iter=20)
    plain = symnmf.factorize(X, 3, ridge=ridge, random_state=0, max_iter=20)
    bound, expected = result.bound(max_time=0), plain.bound(max_time=0)
    assert bound.gap == pytest.approx(expected.gap, rel=1e-3)
    assert bound.gap > 1e-3
    assert not bound.proved_global
    assert result.certificate().bound.gap > 0.0
    if not ridge:
        assert bound.error == pytest.approx(expected.error, rel=1e-6)


@pytest.mark.parametrize("kind", ["dense", "sparse", "low rank"])
def test_nothing_fits_zero_better_than_zero(kind: str) -> None:
    zero = np.zeros((60, 60))
    forms = {"dense": zero, "sparse": sp.csr_array(zero), "low rank": LowRank(np.zeros((60, 2)))}
    result = symnmf.factorize(forms[kind], 2, random_state=0)
    assert result.error == 0.0
    assert result.bound().gap == 0.0
    assert result.bound().proved_global
    assert frobenius(as_symmetric(forms[kind])).sampled(2).total == 0.0


def test_a_negative_objective_can_be_the_best_possible() -> None:
    X, apart = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])
    result = symnmf.factorize(X, 1, links=3 * apart, random_state=0)
    bound = result.bound()
    assert result.value < 0.0
    assert bound.proved_global
    assert "No U with 1 column has an objective below -" in bound.sentence


def test_bad_arguments_are_refused() -> None:
    X = block_model(60, 3)
    result = symnmf.factorize(X, 3, random_state=0)
    with pytest.raises(symnmf.InputError, match="max_time must be"):
        result.bound(X, max_time=-1)
    with pytest.raises(symnmf.InputError, match="X has 59 rows"):
        result.bound(X[:59, :59])


def stored(kind: str, X: np.ndarray, folder) -> object:
    """The same matrix in another storage backend."""
    if kind == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=30)
    if kind == "blocks":
        np.save(folder / "X.npy", X)
        return symnmf.storage.Blocks(folder / "X.npy")
    if kind.startswith("torch"):
        pytest.importorskip("torch")
        return symnmf.storage.on_device(sp.csr_array(X) if "sparse" in kind else X, "cpu")
    values, vectors = np.linalg.eigh(X)
    return {
        "dense": lambda: X,
        "sparse": lambda: sp.csr_array(X),
        "low rank": lambda: LowRank(vectors, np.diag(values)),
        "a foreign array": lambda: StrictMatrix(X),
    }[kind]()


@pytest.mark.parametrize(
    "kind",
    ["dense", "sparse", "low rank", "a foreign array", "blocks", "dask", "torch", "torch, sparse"],
)
@pytest.mark.parametrize("way", ["squares", "sampled"])
def test_every_storage_has_the_bound(kind: str, way: str, tmp_path) -> None:
    X = block_model(60, 3).toarray()
    exact = float((np.linalg.eigvalsh(X)[-3:] ** 2).sum())
    target = frobenius(as_symmetric(stored(kind, X, tmp_path)))
    found = getattr(target, way)(3)
    assert exact * (1 - 1e-13) <= found.total <= exact + 1e-4 * target.size**2
    assert target.constant == pytest.approx(float((X**2).sum()))


@pytest.mark.parametrize("scale", [1e100, 1e200, np.inf, np.nan])
def test_a_run_that_diverged_has_a_certificate_all_the_same(scale):
    """The search for a better bound starts from U, which is no number here."""
    B = np.random.default_rng(0).random((12, 2))
    found = symnmf.factorize(B @ B.T + 0.1, 2, solver="a-symhals", random_state=0, max_iter=3)
    with np.errstate(all="ignore"):
        astray = dataclasses.replace(found, U=found.U * scale, V=found.V * scale)
        assert not astray.certificate(B @ B.T + 0.1).certified


def test_a_bound_that_is_far_away_does_not_sound_like_praise():
    known = Bound(
        value=0.2,
        error=0.002,
        reached=8.7,
        reached_error=0.087,
        gap=0.977,
        rank=3,
        how="eigenvalues",
    )
    assert "within" not in known.sentence
    assert "loose: the best may be up to 98% lower" in known.sentence


@pytest.mark.parametrize("price", [0.0, 0.3, 1.0, 10.0])
def test_what_eigenvalues_explain_at_a_price_is_the_best_of_all_sums(price):
    rng = np.random.default_rng(0)
    for _ in range(5):
        values = rng.normal(1.0, 2.0, 3)
        found = explained_at_a_price(values, price)
        grid = np.linspace(0.0, 6.0, 61)
        z = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
        gains = 2.0 * z @ values - (z**2).sum(axis=1) - 2.0 * price * np.sqrt(z.sum(axis=1))
        assert gains.max() - 1e-9 <= found <= gains.max() + 0.3


@pytest.mark.parametrize("options", [{}, {"ridge": 0.2}, {"weights": "some"}])
def test_the_bound_counts_an_l1_term(options):
    rng = np.random.default_rng(0)
    B = rng.random((30, 3)) * (rng.random((30, 3)) < 0.6)
    X, W = B @ B.T + 0.1 * np.eye(30), 0.5 + 0.5 * rng.random((30, 30))
    options = {"weights": np.minimum(W, W.T)} if "weights" in options else options
    for l1 in (0.05, 0.5, 5.0):
        problem = symnmf.Problem(X, l1=l1, **options)
        result = symnmf.factorize(problem, 3, random_state=0, tol=1e-7)
        bound = result.bound(max_time=0)
        f, U = problem.objective, result.factors[0]
        without = replace(target_of(f, U), l1=0.0)
        assert bound.value <= result.value
        assert bound.value > without.value(without.squares(3)) + 1e-6


def test_the_bound_is_tight_for_one_number_and_an_l1_term():
    result = symnmf.factorize(np.array([[4.0]]), 1, l1=1.0, tol=1e-10)
    u = np.linspace(0.0, 3.0, 300_001)
    least = np.min(0.5 * (4.0 - u**2) ** 2 + u)
    assert result.bound(max_time=0).value == pytest.approx(least, rel=1e-8)
    assert result.value == pytest.approx(least, rel=1e-8)

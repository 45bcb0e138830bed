"""Bad input gets one sentence before any work; odd but valid input gets a finite answer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from extras import optional
from symnmf.errors import InputError

networkx = optional("networkx")


@pytest.fixture
def X():
    return synthetic_problem(8, 2, 0.1, seed=0)


def with_entry(X, value, symmetric=True):
    X = X.astype(type(value)) if isinstance(value, complex) else X.copy()
    X[1, 2] = value
    if symmetric:
        X[2, 1] = value
    return X


BAD_MATRICES = {
    "nan": (lambda X: with_entry(X, np.nan), "NaN or infinite"),
    "infinity": (lambda X: with_entry(X, np.inf), "NaN or infinite"),
    "negative": (lambda X: with_entry(X, -0.25), r"negative entries \(the smallest is -0.25\)"),
    "not square": (lambda X: X[:, :5], "square, got shape 8 x 5"),
    "one dimension": (lambda X: X[0], "two-dimensional"),
    "not symmetric": (lambda X: with_entry(X, X[1, 2] + 0.5, False), r"by up to 0.5 .*X \+ X.T"),
    "empty": (lambda X: X[:0, :0], "empty"),
    "complex": (lambda X: with_entry(X, 1 + 1j), "real, got dtype complex128"),
    "object": (lambda X: X.astype(object), "numbers, got dtype object"),
    "text": (lambda X: X.astype(str), "numbers"),
    "path": (lambda X: "X.npz", "got str; symnmf.io.read"),
    "none": (lambda X: None, "got NoneType"),
    "graph": (lambda X: networkx.karate_club_graph(), "a graph.*symnmf.communities"),
    "masked": (lambda X: np.ma.masked_greater(X, 1), "masked"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices_are_refused_in_one_sentence(X, case):
    spoil, message = BAD_MATRICES[case]
    with pytest.raises(InputError, match=message) as caught:
        symnmf.factorize(spoil(X), 2)
    assert str(caught.value).startswith("X ")
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_wrong_name_is_answered_by_those_that_are_offered(X):
    names = ", ".join(info.name for info in symnmf.solvers.available())
    with pytest.raises(InputError) as wrong:
        symnmf.factorize(X, 2, solver="hals")
    assert str(wrong.value) == (
        "solver 'hals' is not known; did you mean 'hals-newton' or 'symhals' or 'a-symhals'? "
        f"valid: {names}, em, row-newton."
    )
    for init in ("startt", "autto"):
        with pytest.raises(InputError, match=r"init .* valid: auto, .*sketch"):
            symnmf.factorize(X, 2, init=init)
        with pytest.raises(InputError, match=r"init .* valid: auto, .*sketch"):
            symnmf.SymNMF(2, affinity="precomputed", init=init).fit(X)


BAD_ARGUMENTS = {
    "rank 0": ({"rank": 0}, "rank must be a whole number of at least 1 or 'auto', got 0"),
    "rank above n": ({"rank": 9}, "rank .* got 9"),
    "rank not whole": ({"rank": 2.5}, "rank .* got 2.5"),
    "rank true": ({"rank": True}, "rank .* got True"),
    "init shape": ({"init": np.ones((8, 3))}, "init must have shape 8 x 2 .* got 8 x 3"),
    "init negative": ({"init": -np.ones((8, 2))}, "init has negative entries"),
    "init zero": ({"init": np.zeros((8, 2))}, "init is all zeros"),
    "init nan": ({"init": np.full((8, 2), np.nan)}, "init has NaN"),
    "init name": ({"init": "randm"}, "init 'randm' is not known; did you mean 'random'"),
    "solver name": ({"solver": "symhal"}, "did you mean 'symhals'"),
    "solver type": ({"solver": 3}, "solver must be text or a solver"),
    "coupling name": ({"solver": "symhals", "coupling": "adaptve"}, "did you mean 'adaptive'"),
    "tol": ({"tol": -1.0}, "tol must be"),
    "max_iter": ({"max_iter": -1}, "max_iter must be"),
    "record_every": ({"record_every": 0}, "record_every must be"),
    "max_time": ({"max_time": -1}, "max_time must be"),
    "max_time text": ({"max_time": "1s"}, "max_time must be"),
    "callback": ({"callback": 3}, "callback must be"),
    "coupling true": ({"solver": "symhals", "coupling": True}, "coupling must be"),
    "n_jobs": ({"n_jobs": 0}, "n_jobs must be"),
    "n_jobs nan": ({"n_jobs": np.nan}, "n_jobs must be"),
    "n_jobs infinite": ({"n_jobs": np.inf}, "n_jobs must be"),
    "n_jobs list": ({"n_jobs": [2]}, "n_jobs must be"),
    "n_jobs text": ({"n_jobs": "2"}, "n_jobs must be"),
    "random_state": ({"random_state": "seed"}, "random_state must be"),
    "checkpoint folder": ({"checkpoint": "/nowhere/run.npz"}, "does not exist"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments_are_refused_in_one_sentence(X, case):
    options, message = BAD_ARGUMENTS[case]
    options = {"rank": 2, **options}
    with pytest.raises(InputError, match=message):
        symnmf.factorize(X, **options)


def finite(result):
    return (
        np.isfinite(result.U).all()
        and np.isfinite(result.V).all()
        and (result.U >= 0).all()
        and np.isfinite(result.error)
    )


@pytest.mark.parametrize("solver", ["symanls", "symhals", "a-symhals"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_degenerate_matrices_have_finite_answers(solver, kind):
    X = synthetic_problem(6, 2, 0.0, seed=1)
    gap = X.copy()
    gap[2] = gap[:, 2] = 0.0
    cases = [np.zeros((4, 4)), gap, np.array([[3.0]]), X, np.eye(5)]
    for case, rank in zip(cases, (2, 2, 1, 6, 5), strict=True):
        result = symnmf.factorize(
            kind(case), rank, solver=solver, random_state=0, max_iter=30, tol=0
        )
        assert finite(result)
    for n, init in ((4, "scaled-random"), (100, "spectral")):
        zero = symnmf.factorize(kind(np.zeros((n, n))), 2, solver=solver, init=init)
        assert zero.status == "converged"
        assert not zero.U.any()
        assert zero.error == 0.0
    one = symnmf.factorize(kind(np.array([[9.0]])), 1, solver=solver, random_state=0, max_iter=5000)
    assert one.U[0, 0] == pytest.approx(3.0, rel=1e-4)


@pytest.mark.parametrize("size", [1e-28, 1e-8, 1e8, 1e28])
@pytest.mark.parametrize("solver", ["symanls", "a-symhals"])
def test_extreme_scales_give_the_same_answer_in_other_units(size, solver):
    X = synthetic_problem(12, 3, 0.1, seed=2)
    plain = symnmf.factorize(X, 3, solver=solver, random_state=0, tol=0, max_iter=100)
    extreme = symnmf.factorize(size * X, 3, solver=solver, random_state=0, tol=0, max_iter=100)
    assert finite(extreme)
    assert extreme.error == pytest.approx(plain.error, rel=1e-3)
    assert np.allclose(extreme.U, np.sqrt(size) * plain.U, rtol=1e-3, atol=1e-3 * np.sqrt(size))
    certificate = extreme.certificate(size * X)
    assert np.isfinite(certificate.stationarity)


@pytest.mark.parametrize("size", [1e-300, 1e-33, 1e31, 1e300])
@pytest.mark.parametrize(
    "call",
    [
        lambda X: symnmf.factorize(X, 2),
        lambda X: symnmf.factorize(sp.csr_array(X), 2),
        lambda X: symnmf.factorize(X, 2, mask=~np.eye(len(X), dtype=bool)),
        lambda X: symnmf.factorize(X, 2, loss="poisson"),
        lambda X: symnmf.Problem([X, X]),
        lambda X: symnmf.Problem(np.eye(len(X)), attributes=X),
        lambda X: symnmf.Problem(np.eye(len(X)), links=X),
        lambda X: symnmf.communities(X, 2),
        symnmf.hierarchy,
        lambda X: symnmf.SymNMF(2, affinity="precomputed").fit(X),
    ],
)
def test_largest_entries_out_of_range_are_refused_in_one_sentence(size, call):
    with pytest.raises(symnmf.InputError, match=r"the largest entry of .* divide"):
        call(size * synthetic_problem(12, 3, 0.1, seed=2))


def test_integers_and_booleans_are_converted():
    graph = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    expected = symnmf.factorize(graph.astype(float), 2, random_state=0, tol=0, max_iter=10).U
    for dtype in (np.int8, np.uint64, bool):
        assert np.array_equal(
            symnmf.factorize(graph.astype(dtype), 2, random_state=0, tol=0, max_iter=10).U, expected
        )


def test_sparse_oddities_do_not_matter():
    dense = synthetic_problem(15, 2, 0.1, seed=4)
    dense[dense < np.median(dense)] = 0.0
    dense = (dense + dense.T) / 2
    expected = symnmf.factorize(sp.csr_array(dense), 2, random_state=0, tol=0, max_iter=10).U
    coo = sp.coo_array(dense)
    halves = sp.coo_array(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=coo.shape
    )
    csr = sp.csr_array(dense)
    backwards = csr.copy()
    for i in range(15):
        entries = slice(csr.indptr[i], csr.indptr[i + 1])
        backwards.indices[entries] = csr.indices[entries][::-1]
        backwards.data[entries] = csr.data[entries][::-1]
    backwards.has_sorted_indices = False
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    full = sp.csr_array(np.ones((15, 15)))
    full.data = dense.ravel().copy()  # explicit zeros
    for variant in (halves, backwards, wide, full):
        before = variant.copy()
        found = symnmf.factorize(variant, 2, random_state=0, tol=0, max_iter=10).U
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        assert (variant != before).nnz == 0


def test_the_input_is_never_changed():
    X = synthetic_problem(20, 3, 0.1, seed=6)
    U0 = np.random.default_rng(0).random((20, 3))
    before, start = X.copy(), U0.copy()
    symnmf.factorize(X, 3, init=U0, max_iter=5, tol=0)
    assert np.array_equal(X, before)
    assert np.array_equal(U0, start)

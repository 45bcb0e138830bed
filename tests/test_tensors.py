"""Symmetric tensors: backends, the theorem, the methods, and the loop they share with matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf import tensors
from symnmf.errors import InputError
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings
from symnmf.state import Point, State
from symnmf.tensors import TensorMisfit

LETTERS = "abcd"


def factorize_tensor(T, rank, **options):
    return symnmf.factorize(tensors.as_tensor(T), rank, **options)


def contracted_residual(backend, factors):
    state = State(*(Point(backend.ops, factor) for factor in factors[:2]))
    state.others = [Point(backend.ops, factor) for factor in factors[2:]]
    return TensorMisfit(backend).split_curvature(state)


def cp(factors):
    """[[U_1, ..., U_d]], written out."""
    slots = LETTERS[: len(factors)]
    return np.einsum(",".join(f"{s}r" for s in slots) + "->" + slots, *factors)


def contraction(T, factors, own):
    """T times every factor but one, written out."""
    slots = LETTERS[: T.ndim]
    rest = [q for q in range(T.ndim) if q != own]
    terms = ",".join(f"{slots[q]}r" for q in rest)
    return np.einsum(f"{slots},{terms}->{slots[own]}r", T, *(factors[q] for q in rest))


def distinct_entries(n, order):
    grid = np.indices((n,) * order)
    return np.all([a != b for a, b in itertools.combinations(grid, 2)], axis=0)


def random_tensor(n, order, seed=0, density=0.4):
    """Tuples, values and the full array of a random sparse symmetric tensor."""
    rng = np.random.default_rng(seed)
    tuples = np.array(list(itertools.combinations_with_replacement(range(n), order)))
    tuples = tuples[rng.random(len(tuples)) < density]
    values = rng.random(len(tuples))
    full = np.zeros((n,) * order)
    for places in itertools.permutations(tuples.T):
        full[tuple(places)] = values
    return tuples, values, full


def planted(n, r, noise=0.0, order=3, seed=0):
    """[[B, ..., B]] of a random B >= 0, with symmetric noise of this relative size."""
    rng = np.random.default_rng(seed)
    B = np.abs(rng.standard_normal((n, r)))
    T = cp([B] * order)
    if noise:
        E = rng.standard_normal(T.shape)
        E = sum(E.transpose(p) for p in itertools.permutations(range(order)))
        T = np.maximum(T + noise * np.linalg.norm(T) / np.linalg.norm(E) * E, 0.0)
    return T, B


def worst_match(U, B):
    """The smallest cosine between the columns of U and those of B they are matched with."""
    cosines = (U / np.linalg.norm(U, axis=0)).T @ (B / np.linalg.norm(B, axis=0))
    return cosines[linear_sum_assignment(-cosines)].min()


def gradients(T, mask, factors, coupling):
    R = (cp(factors) - T) * mask
    total = sum(factors)
    d = len(factors)
    return [contraction(R, factors, p) + coupling * (d * factors[p] - total) for p in range(d)]


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("repeated", ["observed", "unobserved"])
class TestHomes:
    def backends(self, order, repeated, n=7, seed=0):
        tuples, values, full = random_tensor(n, order, seed)
        mask = np.ones(full.shape, bool) if repeated == "observed" else distinct_entries(n, order)
        sparse = tensors.from_tuples(tuples, values, side=n, repeated=repeated)
        return sparse, tensors.as_tensor(full, repeated=repeated), full * mask, mask

    def test_products_and_norms_are_those_written_out(self, order, repeated):
        sparse, dense, full, mask = self.backends(order, repeated)
        factors = list(np.random.default_rng(1).random((order, 7, 3)))
        for T in (sparse, dense):
            assert np.allclose(T.contract(factors[1:]), contraction(full, factors, 0), rtol=1e-12)
            same = [factors[0]] * order
            assert np.allclose(T.matmul(factors[0]), contraction(full, same, 0), rtol=1e-12)
            assert np.isclose(T.sqnorm, np.sum(full**2), rtol=1e-13)
            gap = (full - cp(factors)) * mask
            assert np.isclose(dense.residual_sqnorm(factors), np.sum(gap**2), rtol=1e-12)
            columns = [factor[:, 0] for factor in factors[2:]]
            slots = LETTERS[:order]
            matrix = np.einsum(f"{slots},{','.join(slots[2:])}->ab", full, *columns)
            found = T.contracted(columns)
            assert np.allclose(found if isinstance(found, np.ndarray) else found.toarray(), matrix)

    def test_the_model_is_that_over_the_observed_entries(self, order, repeated):
        sparse, _, _, mask = self.backends(order, repeated)
        model, rng = sparse.model, np.random.default_rng(2)
        factors = list(rng.random((order, 7, 3)))
        for chosen in (factors, [factors[0]] * order, [factors[0], *factors[:-1]]):
            observed = cp(chosen) * mask
            assert np.isclose(model.sqnorm(chosen), np.sum(observed**2), rtol=1e-11)
            for own in range(order):
                hidden = contraction(cp(chosen) * ~mask, chosen, own)
                found = model.hidden(chosen, own)
                assert np.allclose(0.0 if found is None else found, hidden, atol=1e-11)
        U, D = factors[0], factors[1] - factors[0]
        along = np.polynomial.Polynomial(model.line(U, D))
        for t in (0.0, 0.3, 1.0):
            assert np.isclose(along(t), model.sqnorm([U + t * D] * order), rtol=1e-11)

    def test_sparse_and_dense_runs_agree(self, order, repeated):
        sparse, dense, _, _ = self.backends(order, repeated, n=8, seed=5)
        for solver, coupling in (("auto", None), ("symhals", 0.5)):
            runs = [
                factorize_tensor(
                    T, 2, solver=solver, coupling=coupling, tol=0, max_iter=25, random_state=0
                )
                for T in (sparse, dense)
            ]
            assert np.allclose(runs[0].U, runs[1].U, atol=1e-10)
            errors = [run.history["error"] for run in runs]
            assert np.allclose(*errors, rtol=1e-10)


# --- the theorem


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([3, 4]), st.booleans(), st.floats(0.01, 10.0))
def test_factors_differ_by_no_more_than_their_gradients_allow(seed, order, observed, coupling):
    """(d lambda - mu) ||U_p - U_q|| <= ||E_p - E_q|| anywhere: the theorem is the case E = 0."""
    rng = np.random.default_rng(seed)
    n, r = 4, 2
    _, _, T = random_tensor(n, order, seed)
    mask = np.ones(T.shape) if observed else distinct_entries(n, order)
    factors = [np.maximum(rng.standard_normal((n, r)), 0.0) for _ in range(order)]
    slopes = gradients(T, mask, factors, coupling)
    seen = [np.where(U > 0, G, np.minimum(G, 0.0)) for U, G in zip(factors, slopes, strict=True)]
    backend = tensors.as_tensor(T, repeated="observed" if observed else "unobserved")
    margin = order * coupling - contracted_residual(backend, factors)
    for p, q in itertools.combinations(range(order), 2):
        apart = np.linalg.norm(factors[p] - factors[q])
        assert margin * apart <= np.linalg.norm(seen[p] - seen[q]) * (1 + 1e-9) + 1e-9


def test_the_adaptive_coupling_is_the_formula_over_all_pairs():
    T, _ = planted(6, 2, noise=0.3)
    U0 = np.random.default_rng(1).random((6, 2))
    runs = [
        factorize_tensor(
            T, 2, solver="symhals", coupling="adaptive", init=U0, tol=0, max_iter=count
        )
        for count in (1, 2)
    ]
    factors = [runs[0].U, runs[0].V, *runs[0].others]
    pairs = list(itertools.combinations(factors, 2))
    apart = sum(np.sum((one - two) ** 2) for one, two in pairs)
    together = sum(np.vdot(one, two) for one, two in pairs)
    expected = runs[0].coupling * (1 + apart / (2 * together))
    assert runs[1].coupling == pytest.approx(expected, rel=1e-12)


def test_one_sweep_over_each_factor_is_that_written_out():
    T, _ = planted(6, 2, noise=0.3)
    U0 = np.random.default_rng(1).random((6, 2))
    run = factorize_tensor(T, 2, solver="symhals", coupling=0.7, init=U0, tol=0, max_iter=1)
    factors = [U0.copy() for _ in range(3)]
    for p in range(3):
        others = [factors[q] for q in range(3) if q != p]
        gram = (others[0].T @ others[0]) * (others[1].T @ others[1])
        cross = contraction(T, factors, p) + 0.7 * (others[0] + others[1])
        for j in range(2):
            left = cross[:, j] - factors[p] @ gram[:, j] + factors[p][:, j] * gram[j, j]
            factors[p][:, j] = np.maximum(left / (gram[j, j] + 1.4), 0.0)
    for found, expected in zip((run.U, run.V, *run.others), factors, strict=True):
        assert np.allclose(found, expected, rtol=1e-12)


# --- what is reached


def test_planted_factors_are_found_from_nearly_every_start():
    T, B = planted(60, 6, noise=0.01)
    backend = tensors.as_tensor(T)
    found = [
        worst_match(factorize_tensor(backend, 6, random_state=seed).U, B) > 0.99
        for seed in range(10)
    ]
    assert sum(found) >= 9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_not_observed_does_not_matter():
    T, B = planted(12, 2)
    hidden = np.where(distinct_entries(12, 3), T, np.nan)
    run = factorize_tensor(
        tensors.as_tensor(hidden, repeated="unobserved"), 2, random_state=0, max_iter=200
    )
    assert worst_match(run.U, B) > 0.9999


# --- the loop they share with matrices


def test_the_certificate_is_what_a_dense_computation_says_and_can_say_no():
    T, _ = planted(8, 2, noise=0.3)
    run = factorize_tensor(
        T, 2, solver="symhals", coupling=0.01, random_state=0, tol=0, max_iter=30
    )
    factors = [run.U, run.V, *run.others]
    R = cp(factors) - T
    largest = -np.inf
    for axis in range(3):
        for j in range(2):
            matrix = np.tensordot(R, factors[axis][:, j], axes=(axis, 0))
            largest = max(largest, np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])
    certificate = run.certificate(tensors.as_tensor(T))
    assert certificate.curvature == pytest.approx(largest, rel=1e-9)
    assert certificate.factors * certificate.coupling == pytest.approx(0.03)
    assert not certificate.certified
    assert "Not certified" in str(certificate)
    slopes = gradients(T, 1.0, factors, 0.01)
    step = np.linalg.norm(T) ** (-4 / 3)
    moves = [np.minimum(U, step * G) for U, G in zip(factors, slopes, strict=True)]
    expected = np.sqrt(sum(np.sum(m**2) for m in moves)) / (0.1 * np.linalg.norm(run.U))
    assert certificate.penalized_stationarity == pytest.approx(expected, rel=1e-9)


# --- what a user may get wrong


def _asymmetric():
    T = np.zeros((3, 3, 3))
    T[0, 1, 2] = 1.0
    return T


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (_asymmetric(), "T is not symmetric"),
        (-np.ones((3, 3, 3)), "T has negative entries"),
        (np.full((3, 3, 3), np.nan), "T has NaN or infinite entries"),
        (np.full((3, 3, 3), 1e200), r"the largest entry of T is 1e\+200 and must be from"),
        (
            np.ones((3, 3)),
            "order 3 or 4, got 2 dimension.*symnmf.factorize takes matrices as they are",
        ),
        (np.ones((2,) * 5), "order 3 or 4, got 5 dimension"),
        (np.ones((3, 3, 2)), "equal sides"),
        (np.zeros((0, 0, 0)), "equal sides of at least 1"),
        (np.ones((3, 3, 3), complex), "T must be real"),
        ("tensor.npz", "T must be an array or a tensor, got str"),
        ([[[1.0], [2.0, 3.0]]], "T cannot be read as an array"),
    ],
)
def test_a_bad_tensor_is_refused_in_one_sentence(T, message):
    with pytest.raises(InputError, match=message) as caught:
        factorize_tensor(T, 1)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tensors.from_tuples([(0, 1, 2), (2, 1, 0)]),
            "more than once.*first \\(0, 1, 2\\)",
        ),
        (lambda: tensors.from_tuples([(0, 1)]), "3 or 4 numbers for each tuple"),
        (lambda: tensors.from_tuples([(0, 1, -2)]), "indices must be at least 0"),
        (lambda: tensors.from_tuples([(0.0, 1, 2)]), "indices must hold whole numbers"),
        (lambda: tensors.from_tuples([(0, 1, 2)], [1, 2]), "one number for each of the 1 tuple"),
        (lambda: tensors.from_tuples([(0, 1, 2)], [-1]), "values has negative entries"),
        (lambda: tensors.from_tuples([(0, 1, 2)], [np.inf]), "values has NaN or infinite"),
        (lambda: tensors.from_tuples([(0, 1, 2)], side=2), "side must be a whole number above"),
        (lambda: tensors.from_hyperedges([]), "hyperedges is empty"),
        (lambda: tensors.from_hyperedges([("a", "b")]), "number 0 has 2"),
        (lambda: tensors.from_hyperedges(["abc"]), "number 0 is str"),
        (lambda: tensors.from_hyperedges([(1, 2, [3])]), "number 0 is not usable"),
        (lambda: tensors.from_hyperedges([(1, 2, 3)], order=5), "order must be 3 or 4, got 5"),
        (lambda: tensors.from_hyperedges([(1, 2, 3)], weights=[1, 2]), "each of the 1 hyperedges"),
        (lambda: tensors.from_hyperedges([(1, 2)], subsets=True), "none of the hyperedges"),
        (lambda: tensors.triangles(np.array([[0, 1], [1, 0]])), "G has no triangles"),
        (
            lambda: factorize_tensor(np.ones((3, 3, 3)), 2, init="spectral"),
            "init='spectral' is for matrices; use 'scaled-random'",
        ),
        (
            lambda: factorize_tensor(np.ones((3, 3, 3)), 2, solver="pgd"),
            "which this problem does not have",
        ),
        (lambda: factorize_tensor(np.ones((3, 3, 3)), 4), "from 1 to the 3 row"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


# --- hypergraphs


def test_hyperedges_keep_names_and_add_up():
    edges = [("ann", "bob", "cat"), ("bob", "cat", "dan"), ("cat", "bob", "ann")]
    T, names = tensors.from_hyperedges(edges)
    assert names == ["ann", "bob", "cat", "dan"]
    assert T.indices.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert T.data.tolist() == [2.0, 1.0]
    assert not T.repeats_observed
    T, _ = tensors.from_hyperedges([(1, 2, 3, 4), (5, 6)], weights=[0.5, 9.0], subsets=True)
    assert len(T.data) == 4
    assert set(T.data) == {0.5}
    T, _ = tensors.from_hyperedges([(1, 2, 3, 4)], order=4)
    assert T.order == 4
    assert T.sqnorm == 24.0


def test_triangles_are_those_networkx_counts():
    networkx = pytest.importorskip("networkx")
    G = networkx.karate_club_graph()
    T, names = tensors.triangles(G, weight=None)
    found = np.zeros(len(names), int)
    np.add.at(found, T.indices, 1)
    assert dict(zip(names, found.tolist(), strict=True)) == networkx.triangles(G)
    weighted, _ = tensors.triangles(G)
    i, j, k = (names[place] for place in weighted.indices[0])
    sides = [G[a][b]["weight"] for a, b in ((i, j), (i, k), (j, k))]
    assert weighted.data[0] == pytest.approx(np.prod(sides) ** (1 / 3))


def hidden_communities(k=4, size=25, share=0.3, seed=0):
    """Triples within one community or across three, so balanced that pairs say nothing."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), size)
    triples = np.array(list(itertools.combinations(range(k * size), 3)))
    groups = np.sort(labels[triples], axis=1)
    kinds = 1 + (np.diff(groups, axis=1) > 0).sum(axis=1)
    across = share * (size - 2) / (size * (k - 2))
    chance = np.choose(kinds - 1, [share, 0.0, across])
    return triples[rng.random(len(triples)) < chance], labels


def test_hyperedges_tell_what_their_pairs_do_not():
    edges, labels = hidden_communities()
    T = tensors.from_tuples(edges, repeated="unobserved")
    pairs = T.contracted([np.ones(100)])
    plan = Plan(4, Settings.of(tol=1e-3, max_iter=200), n_init=5, random_state=0)
    by_pairs = plan.search(pairs).best
    by_triples = plan.search(T).best
    assert adjusted_rand_score(labels.tolist(), by_triples.labels) > 0.95
    assert adjusted_rand_score(labels.tolist(), by_pairs.labels) < 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_above_the_bound_all_factors_agree_and_far_below_some_do_not():
    """100 random tensors of order 3, far from any fit, where the split could pay."""
    rng = np.random.default_rng(0)
    separated = 0
    for number in range(100):
        _, _, T = random_tensor(5, 3, seed=number, density=0.3)
        U0 = rng.random((5, 2))
        misfit = np.sum((T - cp([U0] * 3)) ** 2)
        bound = TensorMisfit(tensors.as_tensor(T)).coupling_bound(misfit)
        options = {"solver": "symhals", "init": U0, "tol": 1e-6, "record_every": 50}
        above = factorize_tensor(T, 2, coupling=1.01 * bound, max_iter=300, **options)
        below = factorize_tensor(T, 2, coupling=0.01 * bound, max_iter=300, **options)
        objective = above.history["objective"]
        assert np.all(np.diff(objective) <= 1e-12 * objective[0])
        assert above.certificate().theorem1
        for one, two in itertools.combinations((above.U, above.V, *above.others), 2):
            assert np.linalg.norm(one - two) <= 2e-3 * np.linalg.norm(above.U)
        separated += np.linalg.norm(below.U - below.V) > 0.05 * np.linalg.norm(below.U)
    assert separated >= 10

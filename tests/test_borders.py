"""Raw arrays from outside are checked before compiled code, which checks nothing, follows them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf.errors import InputError
from symnmf.storage import as_symmetric

SETTINGS = {"random_state": 0, "max_iter": 30, "tol": 0.0, "n_jobs": 1}


@pytest.fixture
def X():
    return sp.csr_array(synthetic_problem(12, 2, 0.1, seed=0))


def with_spare_room(X, kind):
    """The same matrix in arrays that are longer than its entries, as SciPy allows."""
    longer = kind(X)
    longer.data = np.append(longer.data, np.full(7, 99.0))
    longer.indices = np.append(longer.indices, np.full(7, 3, longer.indices.dtype))
    assert longer.nnz == X.nnz
    return longer


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_spare_room_behind_the_entries_changes_nothing(X, kind):
    expected = symnmf.factorize(X, 2, **SETTINGS)
    found = symnmf.factorize(with_spare_room(X, kind), 2, **SETTINGS)
    assert np.array_equal(found.U, expected.U)
    assert found.error == expected.error


@pytest.mark.parametrize("kind", ["coo", "csc", "bsr", "lil", "dok", "dia"])
def test_every_sparse_format_is_the_same_matrix(X, kind):
    found, expected = as_symmetric(X.asformat(kind)), as_symmetric(X)
    for one, other in zip(
        (found.indptr, found.indices, found.data),
        (expected.indptr, expected.indices, expected.data),
        strict=True,
    ):
        assert np.array_equal(one, other)


def test_a_canonical_matrix_is_neither_copied_nor_changed(X):
    assert np.shares_memory(as_symmetric(X).data, X.data)
    shuffled = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr), shape=X.shape)
    shuffled.indices[:2], shuffled.data[:2] = X.indices[1::-1], X.data[1::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = True  # not true, and believed
    before = shuffled.indices.copy()
    found = as_symmetric(shuffled)
    assert np.array_equal(found.indices, X.indices)
    assert np.array_equal(found.data, X.data)
    assert np.array_equal(shuffled.indices, before)


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


#: format, attribute to replace, and what with
BROKEN = {
    "index too large": ("csr", "indices", lambda a: put(a, 3, 10**6)),
    "index negative": ("csr", "indices", lambda a: put(a, 3, -1)),
    "csc index": ("csc", "indices", lambda a: put(a, 3, 12)),
    "block index": ("bsr", "indices", lambda a: put(a, 0, 50)),
    "coo row": ("coo", "coords", lambda c: (put(c[0], 3, 10**6), c[1])),
    "coo column": ("coo", "coords", lambda c: (c[0], put(c[1], 3, -5))),
    "coo too short": ("coo", "coords", lambda c: (c[0][:5], c[1])),
    "pointer falls": ("csr", "indptr", lambda a: put(a, 3, 10**6)),
    "pointer negative": ("csr", "indptr", lambda a: put(a, 0, -1)),
    "pointer beyond": ("csr", "indptr", lambda a: put(a, -1, 10**6)),
    "pointer short": ("csr", "indptr", lambda a: a[:-1]),
    "data short": ("csr", "data", lambda a: a[:5]),
    "indices short": ("csr", "indices", lambda a: a[:5]),
    "indices float": ("csr", "indices", lambda a: a + 0.5),
    "indices square": ("csr", "indices", lambda a: a.reshape(2, -1)),
}


@pytest.mark.parametrize("case", BROKEN)
def test_indices_that_leave_the_matrix_are_refused(X, case):
    kind, attribute, spoil = BROKEN[case]
    matrix = X.asformat(kind).copy()
    setattr(matrix, attribute, spoil(getattr(matrix, attribute)))
    with pytest.raises(InputError, match=r"^X has indices that do not fit it .*\.$"):
        symnmf.factorize(matrix, 2)


X_SOUND = synthetic_problem(12, 2, 0.1, seed=0)
ENTRY_POINTS = {
    "communities": lambda X: symnmf.communities(X, 2),
    "triangles": lambda X: symnmf.tensors.triangles(X),
    "estimator": lambda X: symnmf.SymNMF(2, affinity="precomputed").fit(X),
    "points": lambda X: symnmf.SymNMF(2, affinity="cosine").fit(X),
    "new rows": lambda X: (
        symnmf.SymNMF(2, affinity="precomputed", random_state=0).fit(X_SOUND).predict(X)
    ),
    "neighbours": lambda X: symnmf.graphs.build(X, "nearest_neighbors"),
    "normalize": lambda X: symnmf.graphs.normalize(X),
    "compare": lambda X: symnmf.compare(X, 2),
    "certificate": lambda X: symnmf.factorize(X_SOUND, 2, **SETTINGS).certificate(X),
    "picture": lambda X: symnmf.plots.similarity(X, np.zeros(12, int)),
    "features": lambda X: symnmf.top_features(X, np.ones((12, 2))),
}


@pytest.mark.parametrize(
    ("attribute", "place"), [("indices", 3), ("indptr", 1)], ids=["indices", "pointers"]
)
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_entry_point_checks_indices(X, entry_point, attribute, place):
    """SciPy would follow them itself, where its own compiled code comes first."""
    broken = X.copy()
    setattr(broken, attribute, put(getattr(broken, attribute), place, 10**7))
    with pytest.raises(
        InputError, match=rf"[XAG] has indices that do not fit it \({attribute} must"
    ):
        ENTRY_POINTS[entry_point](broken)

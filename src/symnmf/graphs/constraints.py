"""What is known of some pairs, as similarities: must-link, cannot-link and a few labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import affinities
from symnmf.kinds import SEQUENCE, number

#: The label of a sample of which nothing is known.
UNKNOWN = -1


@checked(A=("matrix",))
def constrained(
    A: Any,
    must_link: Any = None,
    cannot_link: Any = None,
    labels: Any = None,
    *,
    strength: float = 1.0,
) -> Any:
    r"""Add known pairs to similarities A; the result may have negative entries.

    A quadratic term costs nothing extra in symmetric NMF: :math:`\tfrac12\|A - UU^\top\|^2 -
    \sum_{ij} c_{ij} \langle u_i, u_j\rangle` equals :math:`\tfrac12\|(A + C) - UU^\top\|^2` plus a
    constant. So the similarity of a pair that belongs together is raised, and that of a pair that
    belongs apart is lowered.

    Parameters
    ----------
    A : array or csr_array, n x n
        Similarities.
    must_link, cannot_link : array-like of shape (m, 2) or (n,), or None
        Pairs of rows that belong together, or apart. Or the group of each row, -1 for none: any two
        rows of the same group are such a pair.
    labels : array-like of shape (n,) or None
        Known classes, -1 for unknown: two rows with known classes belong together if the classes
        are equal, and apart otherwise.
    strength : float
        How much a pair counts, in units of the median of the largest similarity of each row.
    """
    A = affinities(A, "A", signed=True)
    check("constraint_strength", strength, (number(0, above=True),))
    n = A.shape[0]
    same, different = _labelled(labels, n)
    together = np.vstack([_pairs(must_link, n, "must_link"), same])
    apart = np.vstack([_pairs(cannot_link, n, "cannot_link"), different])
    largest = A.max(axis=1)
    largest = largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest).ravel()
    unit = float(strength) * float(np.median(largest[largest > 0])) if largest.any() else 0.0
    signs = np.concatenate([np.ones(len(together)), -np.ones(len(apart))])
    low, high = np.sort(np.vstack([together, apart]), axis=1).T
    # a pair that is named twice counts once; one named both ways cannot be satisfied
    places, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    if np.any(signs != signs[first][which]):
        raise InputError("must_link, cannot_link and labels ask both for and against some pair.")
    half = sp.coo_array((unit * signs[first], (places // n, places % n)), shape=(n, n))
    change = sp.csr_array(half + half.T)
    if sp.issparse(A):
        return sp.csr_array(A + change, dtype=A.dtype)
    return np.asarray(A + change.toarray(), dtype=A.dtype)


def _pairs(given: Any, n: int, name: str) -> np.ndarray:
    if given is None:
        return np.empty((0, 2), dtype=np.int64)
    check(name, given, (SEQUENCE,))
    with said_as_input_errors(name):
        pairs = np.asarray(given)
    if not pairs.size:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim == 1:
        groups = groups_of(pairs, n, name)
        order = np.argsort(groups, kind="stable")
        order = order[groups[order] != UNKNOWN]
        parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
        return np.vstack([part[np.column_stack(np.triu_indices(len(part), 1))] for part in parts])
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be pairs of row numbers, an array of shape (m, 2), or the group of each "
            f"row."
        )
    if pairs.min() < 0 or pairs.max() >= n:
        raise InputError(f"{name} must hold row numbers from 0 to {n - 1}.")
    if np.any(pairs[:, 0] == pairs[:, 1]):
        raise InputError(f"{name} pairs a row with itself; leave such pairs out.")
    return pairs.astype(np.int64)


def _labelled(labels: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of labelled rows with the same class, and those with different ones."""
    known = np.full(n, UNKNOWN) if labels is None else known_classes(labels, n)
    rows = np.flatnonzero(known != UNKNOWN)
    pairs = rows[np.column_stack(np.triu_indices(len(rows), 1))]
    same = known[pairs[:, 0]] == known[pairs[:, 1]]
    return pairs[same], pairs[~same]


def groups_of(groups: Any, n: int, name: str) -> np.ndarray:
    """Return the group of each of n rows, checked."""
    with said_as_input_errors(name):
        checked = np.asarray(groups)
    if checked.shape != (n,) or checked.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be {n} whole numbers, the group of each row with -1 for none, so that it "
            f"is cut together with the rows in cross-validation; for single pairs pass "
            f"symnmf.graphs.constrained(A, {name}=pairs) as similarities, with allow_negative=True."
        )
    return checked


def known_classes(labels: Any, n: int, clusters: int | None = None) -> np.ndarray:
    """Return the known classes of n rows, checked; there may be no more of them than clusters."""
    with said_as_input_errors("labels"):
        known = np.asarray(labels)
    if known.shape != (n,) or known.dtype.kind not in "iu":
        raise InputError(
            f"labels must be {n} whole numbers, one for each row, with -1 where none is known."
        )
    count = len(np.unique(known[known != UNKNOWN]))
    if clusters is not None and count > clusters:
        raise InputError(
            f"labels names {count} classes and n_clusters is {clusters}; ask for at least as many "
            f"clusters, or name fewer classes."
        )
    return known


def numbered_by_class(U: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the columns of U, each at the number of the class that most of its known rows have.

    Classes that are not numbered from 0 to the columns of U leave these as they are.
    """
    from scipy.optimize import linear_sum_assignment

    clusters, inside = U.shape[1], known != UNKNOWN
    if not inside.any() or known[inside].min() < 0 or known[inside].max() >= clusters:
        return np.arange(clusters)
    table = np.zeros((clusters, clusters))
    np.add.at(table, (known[inside], U[inside].argmax(axis=1)), 1)
    return linear_sum_assignment(table, maximize=True)[1]

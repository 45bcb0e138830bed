"""Scores of communities that may overlap and need not cover every node.

All of them look only at pairs that share something, as the nonzeros of sparse products, so a
hundred thousand communities of a graph with a million edges are compared in seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from symnmf.arguments import checked
from symnmf.errors import InputError

Array = NDArray[Any]
Communities = Sequence[Collection[Hashable]]

#: Entries of a product of incidences that are held at the same time, about.
ENTRIES_AT_ONCE = 20_000_000


@checked()
def overlapping_f1(true_communities: Communities, found_communities: Communities) -> float:
    r"""Average best-match F1 of two sets of communities that may overlap (Yang & Leskovec 2013).

    .. math::
        \frac12 \Bigl(\frac{1}{|T|} \sum_{t \in T} \max_{f \in F} F_1(t, f)
        + \frac{1}{|F|} \sum_{f \in F} \max_{t \in T} F_1(t, f)\Bigr),
        \qquad F_1(t, f) = \frac{2 |t \cap f|}{|t| + |f|}

    An empty community matches nothing and scores 0.

    Parameters
    ----------
    true_communities, found_communities : sequence of collections of nodes
        Nodes are any hashable kind, the same kind in both; one listed twice counts once.

    See Also
    --------
    best_match_f1 : The two halves apart.

    Examples
    --------
    >>> overlapping_f1([{1, 2}, {3, 4}], [{1, 2}, {3}])
    0.8333333333333333
    """
    return sum(best_match_f1(true_communities, found_communities)) / 2


@checked()
def best_match_f1(
    true_communities: Communities, found_communities: Communities
) -> tuple[float, float]:
    r"""Mean best F1 of the known communities, and of the found ones.

    The first number, :math:`\frac{1}{|T|} \sum_t \max_f F_1(t, f)`, says how well the known
    communities were found. It can only grow with the number of found sets, so report that number
    too. The second, :math:`\frac{1}{|F|} \sum_f \max_t F_1(t, f)`, falls with every found
    set that matches no known one. If only some communities are known, it is low for that reason
    alone.

    Parameters
    ----------
    true_communities, found_communities : sequence of collections of nodes
        As in :func:`overlapping_f1`, which is the mean of the two.

    Examples
    --------
    >>> best_match_f1([{1, 2}], [{1, 2}, {3}])
    (1.0, 0.5)
    """
    true, found = _incidences(true_communities, found_communities)
    shared = sp.coo_array(true @ found.T)
    row, col = shared.coords
    f1 = 2 * shared.data / (np.diff(true.indptr)[row] + np.diff(found.indptr)[col])
    best_true, best_found = np.zeros(true.shape[0]), np.zeros(found.shape[0])
    np.maximum.at(best_true, row, f1)
    np.maximum.at(best_found, col, f1)
    return float(best_true.mean()), float(best_found.mean())


@checked()
def overlapping_nmi(
    true_communities: Communities,
    found_communities: Communities,
    n_nodes: int | None = None,
    *,
    form: str = "max",
) -> float:
    r"""Normalized mutual information of two sets of communities that may overlap (ONMI).

    A community is a yes-or-no variable over the nodes with entropy :math:`H(t)`. The uncertainty
    left in it is :math:`H(t | F) = \min_f H(t | f)`, where only those f count that say more by
    agreeing with t than by contradicting it, and :math:`H(t)` if there is none.

    Parameters
    ----------
    true_communities, found_communities : sequence of collections of nodes
        As in :func:`overlapping_f1`; empty communities are left out.
    n_nodes : int, optional
        Nodes of the graph. By default the nodes that are in some community of either side; nodes
        in no community then do not count, and the score is lower than over all nodes.
    form : {"max", "lfk"}
        "max" is that of McDaid, Greene and Hurley (2011): mutual information over the larger of
        the two entropies. "lfk" is the older one of Lancichinetti, Fortunato and Kertész (2009),
        :math:`1 - \frac12 [H(T|F) + H(F|T)]_{norm}`, which overestimates how alike two sets of
        communities are where they differ much in number.

    References
    ----------
    .. [1] McDaid, Greene, Hurley. Normalized mutual information to evaluate overlapping community
       finding algorithms. arXiv:1110.2515, 2011.
    .. [2] Lancichinetti, Fortunato, Kertész. Detecting the overlapping and hierarchical community
       structure in complex networks. New Journal of Physics 11, 2009.

    Examples
    --------
    >>> overlapping_nmi([{1, 2}, {3, 4}], [{1, 2}, {3, 4}])
    1.0
    """
    if form not in ("max", "lfk"):
        raise InputError(f"form must be 'max' or 'lfk', got {form!r}.")
    true, found = _incidences(true_communities, found_communities)
    n = _node_count(n_nodes, true.shape[1])
    true, found = _nonempty(true), _nonempty(found)
    entropy_true, left_true = _left(true, found, n)
    entropy_found, left_found = _left(found, true, n)
    if form == "lfk":
        return 1.0 - (_normed(left_true, entropy_true) + _normed(left_found, entropy_found)) / 2
    total_true, total_found = entropy_true.sum(), entropy_found.sum()
    larger = max(total_true, total_found)
    if larger == 0.0:  # every community holds all nodes: nothing is left open on either side
        return float(len(entropy_true) > 0 and len(entropy_found) > 0)
    information = (total_true - left_true.sum() + total_found - left_found.sum()) / 2
    return float(information / larger)


@checked()
def omega_index(
    true_communities: Communities,
    found_communities: Communities,
    n_nodes: int | None = None,
) -> float:
    r"""Omega index: pairs of nodes that share equally many communities on both sides.

    Let :math:`o` be the fraction of such pairs, and :math:`e` the fraction expected if the numbers
    of one side were assigned at random. The index is :math:`(o - e) / (1 - e)`. For two partitions
    it is the adjusted Rand index (Collins & Dent 1988).

    Parameters
    ----------
    true_communities, found_communities : sequence of collections of nodes
        As in :func:`overlapping_f1`.
    n_nodes : int, optional
        Nodes of the graph; by default those that are in some community of either side.

    Examples
    --------
    >>> omega_index([{1, 2}, {3, 4}], [{1, 2}, {3, 4}])
    1.0
    """
    true, found = _incidences(true_communities, found_communities)
    n = _node_count(n_nodes, true.shape[1])
    pairs = n * (n - 1) // 2
    if pairs == 0:
        raise InputError("n_nodes must be at least 2 for the omega index, which compares pairs.")
    agreeing, together, counts_true, counts_found = _shared_counts(true, found)
    observed = (pairs - together + agreeing) / pairs
    counts_true[0] = pairs - counts_true.sum()
    counts_found[0] = pairs - counts_found.sum()
    common = min(len(counts_true), len(counts_found))
    expected = float((counts_true[:common] / pairs) @ (counts_found[:common] / pairs))
    return 1.0 if expected == 1.0 else float((observed - expected) / (1.0 - expected))


def _shared_counts(
    true: sp.csr_array, found: sp.csr_array
) -> tuple[int, int, NDArray[np.float64], NDArray[np.float64]]:
    """Count pairs of nodes by how many communities they share.

    Returns how many pairs that are together somewhere share equally many on both sides, how many
    are together somewhere, and for each side the pairs by the number shared (0 not filled in).
    """
    sides = [sp.csr_array(side.T) for side in (true, found)]
    work = np.zeros(true.shape[1])
    for side, whole in zip(sides, (true, found), strict=True):
        work += side @ np.diff(whole.indptr)
    counts = [np.zeros(int(np.diff(side.indptr).max(initial=0)) + 1) for side in sides]
    agreeing = together = begin = 0
    edges = np.concatenate([[0], np.cumsum(work)])
    while begin < len(work):
        end = max(int(np.searchsorted(edges, edges[begin] + ENTRIES_AT_ONCE)), begin + 1)
        end = min(end, len(work))
        parts = []
        for side, count in zip(sides, counts, strict=True):
            part = sp.triu(side[begin:end] @ side.T, k=begin + 1, format="csr")
            count[: len(count)] += np.bincount(part.data.astype(np.intp), minlength=len(count))
            parts.append(part)
        first, second = parts
        either = first + second
        together += either.nnz
        agreeing += either.nnz - (first != second).nnz
        begin = end
    return agreeing, together, counts[0], counts[1]


def _left(
    these: sp.csr_array, others: sp.csr_array, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return H(t) of each community on one side, and what the other side leaves of it."""
    size, other_size = (np.diff(side.indptr).astype(float) for side in (these, others))
    entropy = _h(size, n) + _h(n - size, n)
    left = entropy.copy()
    shared = sp.coo_array(these @ others.T)
    row, col = shared.coords
    np.minimum.at(left, row, _conditional(shared.data, size[row], other_size[col], n))
    # two that share no node can tell of each other only if together they hold half of all nodes
    large = np.flatnonzero(size >= n / 4)
    for i, sharing in zip(large, (these[large] @ others.T).toarray(), strict=True):
        left[i] = min(left[i], _conditional(sharing, size[i], other_size, n).min(initial=np.inf))
    for j in np.flatnonzero(other_size >= n / 4):
        sharing = np.asarray(these @ others[[j]].T.toarray()).ravel()
        np.minimum(left, _conditional(sharing, size, other_size[j], n), out=left)
    return entropy, left


def _conditional(both: Any, size: Any, other_size: Any, n: int) -> NDArray[np.float64]:
    """H(t | f) where f agrees with t more than it contradicts it, else infinity."""
    only, other_only = size - both, other_size - both
    neither = n - both - only - other_only
    agree, differ = _h(both, n) + _h(neither, n), _h(only, n) + _h(other_only, n)
    value = agree + differ - _h(other_size, n) - _h(n - other_size, n)
    return np.where(agree >= differ, np.maximum(value, 0.0), np.inf)


def _h(count: Any, n: int) -> NDArray[np.float64]:
    """-p log2 p of the fraction p = count / n."""
    p = np.maximum(np.asarray(count, dtype=float), 0.0) / n
    return -p * np.log2(np.where(p > 0, p, 1.0))


def _normed(left: NDArray[np.float64], entropy: NDArray[np.float64]) -> float:
    """Mean of H(t | F) / H(t); 0 for a community of all nodes, which leaves nothing open."""
    if not len(left):
        return 1.0
    return float(np.mean(np.where(entropy > 0, left / np.where(entropy > 0, entropy, 1), 0.0)))


def _node_count(n_nodes: int | None, seen: int) -> int:
    if n_nodes is None:
        return seen
    if n_nodes < seen:
        raise InputError(
            f"n_nodes must be a whole number of at least the {seen} nodes in the communities, "
            f"got {n_nodes!r}."
        )
    return int(n_nodes)


def _nonempty(incidence: sp.csr_array) -> sp.csr_array:
    return incidence[np.flatnonzero(np.diff(incidence.indptr))]


def _incidences(true: Communities, found: Communities) -> tuple[sp.csr_array, sp.csr_array]:
    """Community-by-node 0/1 matrices of both sets over the same nodes."""
    for name, given in (("true_communities", true), ("found_communities", found)):
        if len(given) == 0:
            raise InputError(f"{name} is empty; pass at least one community.")
        for community in given:
            if not isinstance(community, Collection) and not hasattr(community, "__len__"):
                kind = type(community).__name__
                raise InputError(f"{name} must hold communities, collections of nodes, got {kind}.")
    sizes = np.fromiter((len(c) for c in (*true, *found)), dtype=np.intp)
    nodes = _node_codes([*true, *found])
    owner = np.repeat(np.arange(sizes.size), sizes)
    shape = (sizes.size, int(nodes.max(initial=-1)) + 1)
    incidence = sp.csr_array(sp.coo_array((np.ones(nodes.size), (owner, nodes)), shape=shape))
    incidence.data[:] = 1
    return incidence[: len(true)], incidence[len(true) :]


def _node_codes(communities: list[Collection[Hashable]]) -> Array:
    arrays = [c for c in communities if isinstance(c, np.ndarray) and c.dtype.kind in "iu"]
    if len(arrays) == len(communities):  # without a Python loop over the members
        return np.unique(np.concatenate(arrays), return_inverse=True)[1]
    flat: Iterable[Hashable] = (node for c in communities for node in _plain(c))
    seen: dict[Hashable, int] = {}
    try:
        return np.array([seen.setdefault(node, len(seen)) for node in flat], dtype=np.intp)
    except TypeError as error:
        raise InputError(f"communities must hold nodes that can be keys ({error}).") from error


def _plain(community: Collection[Hashable]) -> Iterable[Hashable]:
    """Python objects, so that a NumPy integer meets the equal int of the other side."""
    return community.tolist() if isinstance(community, np.ndarray) else community

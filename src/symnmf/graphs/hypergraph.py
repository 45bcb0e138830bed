"""Hypergraphs: groups of two nodes or more that belong together, of all sizes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.kinds import is_sparse, number
from symnmf.objectives.losses import PRIOR
from symnmf.parallel import Threads
from symnmf.run.problem import Problem
from symnmf.storage.border import check_range
from symnmf.storage.sparse import SparseMatrix

#: Pairs of nodes, counted once for each hyperedge, beyond which no clique graph is made.
MOST_PAIRS = 400_000_000


class Hypergraph:
    """Hyperedges of any sizes, with the names of their nodes.

    Parameters
    ----------
    hyperedges : iterable of collections of nodes
        Groups of nodes; nodes are any hashable names. A group that occurs several times counts
        several times. A group of one node is ignored.
    weights : sequence of float or None
        One per hyperedge, at least 0; None for 1 each.
    nodes : iterable or None
        All nodes in the order you want, including nodes in no hyperedge. None uses the nodes of
        the hyperedges, in the order of first appearance.

    Attributes
    ----------
    names : list
        The nodes.
    incidence : csr_array of shape (hyperedges, nodes)
        1 where a node is in a hyperedge.
    weights : ndarray of shape (hyperedges,)
    sizes : ndarray of shape (hyperedges,)
        How many nodes each has.
    shape : tuple of int
        Nodes and hyperedges.

    Examples
    --------
    >>> from symnmf.graphs import Hypergraph
    >>> H = Hypergraph([("ann", "bob"), ("bob", "cat", "dan")])
    >>> H
    Hypergraph(4 nodes, 2 hyperedges of 2 to 3 nodes)
    >>> list(H)
    [('ann', 'bob'), ('bob', 'cat', 'dan')]
    """

    @checked()
    def __init__(
        self,
        hyperedges: Iterable[Iterable[Hashable]],
        weights: Sequence[float] | None = None,
        *,
        nodes: Iterable[Hashable] | None = None,
    ) -> None:
        groups, self.names = _numbered(hyperedges, nodes)
        if not groups:
            raise InputError("hyperedges is empty; pass at least one group of nodes.")
        indptr = np.cumsum([0, *map(len, groups)])
        members = np.fromiter((i for group in groups for i in group), np.int64, int(indptr[-1]))
        self.incidence = _incidence(members, indptr, len(self.names))
        self.weights = _checked_weights(weights, len(groups))

    @classmethod
    @checked()
    def from_arrays(
        cls, members: Any, indptr: Any, weights: Any = None, *, names: Sequence[Any] | None = None
    ) -> Self:
        """Return the hypergraph of arrays, without a loop over hyperedges.

        ``members[indptr[e]:indptr[e + 1]]`` are the nodes of hyperedge e, numbered from 0, each
        once. ``names`` says what they are called; by default their numbers.
        """
        with said_as_input_errors("members and indptr"):
            members, indptr = (np.asarray(array) for array in (members, indptr))
        for name, array in (("members", members), ("indptr", indptr)):
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise InputError(f"{name} must be a list of whole numbers, got {array.dtype}.")
        rises = len(indptr) > 1 and indptr[0] == 0 and (np.diff(indptr.astype(np.int64)) >= 0).all()
        if not rises or indptr[-1] != len(members):
            raise InputError(
                f"indptr must rise from 0 to the number of members, {len(members)}, and hold one "
                f"number more than there are hyperedges."
            )
        n = int(members.max(initial=-1)) + 1 if names is None else len(names)
        if len(members) and (members.min() < 0 or members.max() >= n):
            raise InputError(f"members must be numbers from 0 to {n - 1}, the last of the nodes.")
        made = cls.__new__(cls)
        made.incidence = _incidence(members.astype(np.int64), indptr, n)
        once = made.incidence.copy()
        once.sum_duplicates()
        if once.nnz < len(members):
            raise InputError("members lists a node twice in one hyperedge; list it once in each.")
        made.names = list(range(n)) if names is None else list(names)
        made.weights = _checked_weights(weights, len(indptr) - 1)
        return made

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.names), len(self)

    @property
    def members(self) -> np.ndarray:
        """The nodes of all hyperedges by number, one hyperedge after the other."""
        return np.asarray(self.incidence.indices)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.incidence.indptr)

    def __len__(self) -> int:
        return int(self.incidence.shape[0])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for group in np.split(self.members, self.incidence.indptr[1:-1]):
            yield tuple(self.names[i] for i in group.tolist())

    def __repr__(self) -> str:
        n, count = self.shape
        least, most = (int(self.sizes.min()), int(self.sizes.max())) if count else (0, 0)
        span = f"{least}" if least == most else f"{least} to {most}"
        return f"Hypergraph({n} nodes, {count} hyperedges of {span} nodes)"

    # --- parts of it

    def kept(self, which: np.ndarray) -> Hypergraph:
        """Return the hyperedges where ``which`` is True, over the same nodes."""
        part = Hypergraph.__new__(Hypergraph)
        part.incidence, part.weights = self.incidence[which], self.weights[which]
        part.names = self.names
        return part

    @checked()
    def of_sizes(self, least: int = 2, most: int | None = None) -> Hypergraph:
        """Return the hyperedges of ``least`` to ``most`` nodes, over the same nodes."""
        found = self.kept((self.sizes >= least) & (self.sizes <= (most or self.shape[0])))
        if not len(found):
            raise InputError(f"no hyperedge has {least} to {most or 'any number of'} nodes.")
        return found

    # --- what it becomes

    def clique_graph(self) -> sp.csr_array:
        """Return the graph in which a hyperedge of s nodes is s (s - 1) / 2 edges of w / (s - 1).

        The degree of a node is then the weight of all hyperedges it is in, whatever their sizes.
        """
        pairs = int(np.sum(self.sizes * (self.sizes - 1)))
        if pairs > MOST_PAIRS:
            raise InputError(
                f"the hyperedges have {pairs // 2} pairs of nodes, too many for a clique graph; "
                f"leave out the largest by of_sizes."
            )
        share = np.where(self.sizes > 1, self.weights / np.maximum(self.sizes - 1, 1), 0.0)
        used = share > 0
        B = self.incidence[used].T.tocsr()
        A = sp.csr_array(B @ sp.diags_array(share[used]) @ B.T)
        A.setdiag(0.0)
        A.eliminate_zeros()
        A.sort_indices()
        return A

    @checked()
    def problem(self, *, prior: float = PRIOR, n_jobs: int | None = None) -> Problem:
        """Return what :func:`symnmf.factorize` minimises for a Poisson model of the hyperedges.

        See docs/howto/hypergraphs.md; ``prior`` = 0 is the plain likelihood.
        """
        check("prior", prior, (number(0),))
        used = self.kept((self.sizes > 1) & (self.weights > 0))
        if not len(used):
            raise InputError("no hyperedge has two nodes and a weight above 0.")
        A, B = used.clique_graph(), used.incidence
        stored = SparseMatrix(A.indptr, A.indices, A.data, Threads(n_jobs))
        from symnmf.objectives.hyperedges import HyperedgeLikelihood

        f = HyperedgeLikelihood(stored, B.indices, B.indptr, used.weights, prior=prior)
        return Problem.around(f, self)

    def rates(self, U: Any) -> np.ndarray:
        """Return sum_{i<j in e} <u_i, u_j> for each hyperedge e: how likely U makes it.

        Rates of hyperedges of one size can be compared. U has a row for each node, in the units of
        the graph, as ``result.U`` of :meth:`problem`.
        """
        with said_as_input_errors("U"):
            U = np.asarray(U, dtype=np.float64)
        if U.ndim != 2 or len(U) != len(self.names):
            raise InputError(f"U must have a row for each of the {len(self.names)} nodes.")
        sums = self.incidence @ U
        alone = self.incidence @ np.einsum("ij,ij->i", U, U)
        return np.maximum(0.5 * (np.einsum("ij,ij->i", sums, sums) - alone), 0.0)


def _incidence(members: np.ndarray, indptr: np.ndarray, n: int) -> sp.csr_array:
    return sp.csr_array((np.ones(len(members)), members, indptr), shape=(len(indptr) - 1, n))


def _numbered(
    hyperedges: Iterable[Iterable[Hashable]], nodes: Iterable[Hashable] | None = None
) -> tuple[list[list[int]], list[Hashable]]:
    """Return the nodes of each hyperedge by number, each once, and the names of the nodes."""
    places: dict[Hashable, int] = {}
    if is_sparse(nodes):
        raise InputError(f"nodes must be a list of names, got {type(nodes).__name__}.")
    with said_as_input_errors("nodes"):
        for node in () if nodes is None else nodes:
            places.setdefault(node, len(places))
    known, groups = len(places), []
    for place, group in enumerate(hyperedges):
        if isinstance(group, str | bytes) or not isinstance(group, Iterable) or is_sparse(group):
            raise InputError(
                f"hyperedges must be collections of nodes, but number {place} is "
                f"{type(group).__name__}."
            )
        with said_as_input_errors(f"hyperedge number {place}"):
            once = dict.fromkeys(group)
        groups.append([places.setdefault(node, len(places)) for node in once])
        if nodes is not None and len(places) > known:
            raise InputError(
                f"hyperedge number {place} holds {list(places)[known]!r}, which nodes does not "
                f"list."
            )
    return groups, list(places)


def _checked_weights(weights: Any, count: int) -> np.ndarray:
    """Return one weight for each of so many hyperedges, or say what is wrong with them."""
    if weights is None:
        return np.ones(count)
    with said_as_input_errors("weights"):
        values = np.asarray(weights, dtype=np.float64)
    fine = np.isfinite(values).all() and values.min(initial=0.0) >= 0
    if values.shape != (count,) or not fine:
        raise InputError(
            f"weights must hold one number for each of the {count} hyperedges, finite and at least "
            f"0."
        )
    check_range(float(values.max(initial=0.0)), values.dtype, "weights")
    return values

"""Hypergraphs: groups of two nodes or more that belong together, of all sizes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import Graph
from symnmf.kinds import is_sparse, number
from symnmf.objectives.losses import PRIOR
from symnmf.parallel import Threads
from symnmf.run.problem import Problem
from symnmf.storage.border import check_range
from symnmf.storage.sparse import SparseMatrix

#: Nodes in no hyperedge that numbers alone may stand for; all of them take memory.
MOST_UNUSED = 10_000_000

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
    members, indptr : ndarray of int
        The nodes of hyperedge e, by number, are ``members[indptr[e]:indptr[e + 1]]``.
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
        groups, names = numbered(hyperedges, nodes)
        if not groups:
            raise InputError("hyperedges is empty; pass at least one group of nodes.")
        sizes = np.fromiter(map(len, groups), np.int64, len(groups))
        members = np.fromiter((i for group in groups for i in group), np.int64, int(sizes.sum()))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        self.members, self.indptr, self.names = members, indptr, names
        self.weights = checked_weights(weights, len(groups))

    @classmethod
    def _made(
        cls, members: np.ndarray, sizes: np.ndarray, weights: np.ndarray, names: list[Any]
    ) -> Self:
        made = cls.__new__(cls)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        made.members, made.indptr, made.weights, made.names = members, indptr, weights, names
        return made

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
        if len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != len(members):
            raise InputError(
                f"indptr must begin with 0 and end with the {len(members)} members, and hold one "
                f"number more than there are hyperedges."
            )
        sizes = np.diff(indptr.astype(np.int64))
        if (sizes < 0).any():
            raise InputError("indptr must not fall; it says where each hyperedge begins.")
        n = int(members.max(initial=-1)) + 1 if names is None else len(names)
        if names is None and n > MOST_UNUSED + len(members):
            raise InputError(
                f"members reach up to {n - 1}, and only {len(members)} are listed; number the "
                f"nodes from 0 without gaps, or pass names."
            )
        if len(members) and (members.min() < 0 or members.max() >= n):
            raise InputError(f"members must be numbers from 0 to {n - 1}, the last of the nodes.")
        own = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((members, own))
        twice = (np.diff(members[order]) == 0) & (np.diff(own[order]) == 0)
        if twice.any():
            raise InputError(
                f"hyperedge number {own[order][1:][twice][0]} has the node "
                f"{members[order][1:][twice][0]} more than once; each may be there once."
            )
        known = checked_weights(weights, len(sizes))
        called = list(range(n)) if names is None else list(names)
        return cls._made(members.astype(np.int64), sizes, known, called)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.names), len(self.indptr) - 1

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return self.shape[1]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for group in np.split(self.members, self.indptr[1:-1]):
            yield tuple(self.names[i] for i in group.tolist())

    def __repr__(self) -> str:
        n, count = self.shape
        least, most = (int(self.sizes.min()), int(self.sizes.max())) if count else (0, 0)
        span = f"{least}" if least == most else f"{least} to {most}"
        return f"Hypergraph({n} nodes, {count} hyperedges of {span} nodes)"

    # --- parts of it

    def kept(self, which: np.ndarray) -> Hypergraph:
        """Return the hyperedges where ``which`` is True, over the same nodes."""
        sizes = self.sizes
        members = self.members[np.repeat(which, sizes)]
        return Hypergraph._made(members, sizes[which], self.weights[which], self.names)

    @checked()
    def of_sizes(self, least: int = 2, most: int | None = None) -> Hypergraph:
        """Return the hyperedges of ``least`` to ``most`` nodes, over the same nodes."""
        sizes = self.sizes
        found = self.kept((sizes >= least) & ((sizes <= most) if most is not None else True))
        if not len(found):
            raise InputError(f"no hyperedge has {least} to {most or 'any number of'} nodes.")
        return found

    @checked()
    def split(self, share: float = 0.2, random_state: Any = None) -> tuple[Hypergraph, Hypergraph]:
        """Return the hypergraph without a random ``share`` of its hyperedges, and those."""
        check("share", share, (number(0, 1, above=True),))
        held = np.random.default_rng(random_state).random(len(self)) < share
        return self.kept(~held), self.kept(held)

    def with_members(self, members: np.ndarray, own: np.ndarray) -> Hypergraph:
        """Return the hypergraph with other nodes in its hyperedges.

        ``own`` says in which hyperedge each of ``members`` is, in increasing order.
        """
        sizes = np.bincount(own, minlength=len(self))
        return Hypergraph._made(members, sizes, self.weights, self.names)

    # --- what it becomes

    @cached_property
    def _incidence(self) -> sp.csr_array:
        ones = np.ones(len(self.members))
        return sp.csr_array((ones, self.members, self.indptr), shape=(len(self), len(self.names)))

    def clique_graph(self) -> Graph:
        """Return the graph in which a hyperedge of s nodes is s (s - 1) / 2 edges of w / (s - 1).

        The degree of a node is then the weight of all hyperedges it is in, whatever their sizes.
        """
        sizes = self.sizes
        pairs = int(np.sum(sizes * (sizes - 1)))
        if pairs > MOST_PAIRS:
            raise InputError(
                f"the hyperedges have {pairs // 2} pairs of nodes, too many for a clique graph; "
                f"leave out the largest, for instance with of_sizes(2, {_most_affordable(sizes)})."
            )
        share = np.where(sizes > 1, self.weights / np.maximum(sizes - 1, 1), 0.0)
        used = share > 0
        B = self._incidence[used].T.tocsr()
        A = sp.csr_array(B @ sp.diags_array(share[used]) @ B.T)
        A.setdiag(0.0)
        A.eliminate_zeros()
        A.sort_indices()
        return A

    @checked()
    def problem(
        self, *, prior: float = PRIOR, n_jobs: int | None = None, clique_graph: Any = None
    ) -> Problem:
        """Return what :func:`symnmf.factorize` minimises for a Poisson model of the hyperedges.

        See ``HyperedgeLikelihood``. ``prior`` = 0 is the plain likelihood;
        ``clique_graph`` is that of :meth:`clique_graph` where it is known.
        """
        check("prior", prior, (number(0),))
        used = self.kept((self.sizes > 1) & (self.weights > 0))
        if not len(used):
            raise InputError("no hyperedge has two nodes and a weight above 0.")
        A = used.clique_graph() if clique_graph is None else clique_graph
        stored = SparseMatrix(A.indptr, A.indices, A.data, Threads(n_jobs))
        from symnmf.objectives.hyperedges import HyperedgeLikelihood

        f = HyperedgeLikelihood(stored, used.members, used.indptr, used.weights, prior=prior)
        return Problem.around(f, self)

    def rates(self, U: Any) -> np.ndarray:
        """Return sum_{i<j in e} <u_i, u_j> for each hyperedge e: how likely U makes it.

        Rates of hyperedges of one size can be compared. U has a row for each node, in the units of
        the graph: ``result.U`` of :meth:`problem`, or ``Communities.rates`` for communities.
        """
        with said_as_input_errors("U"):
            U = np.asarray(U, dtype=np.float64)
        if U.ndim != 2 or len(U) != len(self.names):
            raise InputError(f"U must have a row for each of the {len(self.names)} nodes.")
        sums = self._incidence @ U
        alone = self._incidence @ np.einsum("ij,ij->i", U, U)
        return np.maximum(0.5 * (np.einsum("ij,ij->i", sums, sums) - alone), 0.0)


def numbered(
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
        try:
            once = dict.fromkeys(group)
        except TypeError as error:
            raise InputError(
                f"hyperedge number {place} holds a node that cannot be a name ({error})."
            ) from error
        groups.append([places.setdefault(node, len(places)) for node in once])
        if nodes is not None and len(places) > known:
            raise InputError(
                f"hyperedge number {place} holds {list(places)[known]!r}, which nodes does not "
                f"list."
            )
    return groups, list(places)


def checked_weights(weights: Any, count: int) -> np.ndarray:
    """Return one weight for each of so many hyperedges, or say what is wrong with them."""
    if weights is None:
        return np.ones(count)
    with said_as_input_errors("weights"):
        values = np.asarray(weights, dtype=np.float64)
    if values.shape != (count,):
        raise InputError(
            f"weights must hold one number for each of the {count} hyperedges, got shape "
            f"{values.shape}."
        )
    if not (np.isfinite(values).all() and values.min(initial=0.0) >= 0):
        raise InputError("weights must be finite and at least 0.")
    check_range(float(values.max(initial=0.0)), values.dtype, "weights")
    return values


def _most_affordable(sizes: np.ndarray) -> int:
    """Return the largest size up to which all hyperedges can be spelt out as pairs."""
    known, counts = np.unique(sizes, return_counts=True)
    within = np.cumsum(known * (known - 1) * counts) <= MOST_PAIRS
    return int(known[within].max(initial=2))

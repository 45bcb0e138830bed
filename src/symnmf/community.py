"""Communities of a graph, with the graph's own node names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs, tensors
from symnmf.bars import bar, together
from symnmf.coupling import Coupling
from symnmf.errors import InputError
from symnmf.estimator import check_cluster_count
from symnmf.graphs.adjacency import check_degree_offset, normalized
from symnmf.graphs.components import check_enough, connected, restrict
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.placing import place
from symnmf.quality import Quality, assess, warn_of
from symnmf.run.loop import Callback, warn_unless_converged
from symnmf.run.multistart import (
    DEFAULT_INIT,
    DEFAULT_STARTS,
    Plan,
    Search,
)
from symnmf.run.result import OUTSIDE, Result, cluster_labels
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState
from symnmf.solvers import Solver
from symnmf.tensors.factorizing import tensor_settings

#: Share of a node's membership above which it belongs to a community.
DEFAULT_THRESHOLD = 0.25


class Communities(list[set[Hashable]]):
    """A list of sets of nodes, the largest first, with what is known of them.

    Attributes
    ----------
    names : list
        The nodes, in the order of the rows below.
    labels : ndarray of shape (n,)
        The place in the list of each node's community; -1 for a node in none.
    membership : ndarray of shape (n, communities)
        Shares of each node, in the order of the list; zeros for a node in none.
    outside : list
        Nodes in no community: those without edges, or outside the component chosen.
    quality : Quality
        Modularity, conductance and the like.
    degree_offset : float
        tau in mean degrees.
    result : Result
        The factorization; its columns are in the order of the list.
    seed : int, Generator or RandomState
        What the starts came from.
    """

    names: list[Any]
    labels: np.ndarray
    membership: np.ndarray
    outside: list[Any]
    quality: Quality
    degree_offset: float
    result: Result
    seed: RandomState
    overlapping: bool
    _roots: np.ndarray
    _extra: float

    def predict(self, edges: Mapping[Hashable, float] | Iterable[Hashable]) -> int:
        """Return the community of a new node from its edges to the nodes of the graph.

        ``edges`` maps neighbours to weights, or lists neighbours; -1 where there are none.
        """
        return int(cluster_labels(self.transform(edges)[None])[0])

    def transform(self, edges: Mapping[Hashable, float] | Iterable[Hashable]) -> np.ndarray:
        """Return the new node's row of U, see :meth:`predict`."""
        weights = dict(edges) if isinstance(edges, Mapping) else dict.fromkeys(edges, 1.0)
        number = {name: i for i, name in enumerate(self.names)}
        unknown = [name for name in weights if name not in number]
        if unknown:
            raise InputError(
                f"edges leads to {unknown[0]!r}, which is no node of the graph; name nodes of it."
            )
        row = np.zeros(len(self.names))
        for name, weight in weights.items():
            if not (np.isfinite(weight) and weight >= 0):
                raise InputError(f"edges has the weight {weight!r} to {name!r}; it must be >= 0.")
            row[number[name]] = weight
        own = np.sqrt(row.sum() + self._extra)
        scaled = row / (self._roots * own) if row.any() and self._extra >= 0 else row
        return place(sp.csr_array(scaled[None]), self.result.U)[0]

    def to_igraph(self, graph: Any) -> Any:
        """Return an igraph VertexClustering of ``graph``; a VertexCover where they overlap.

        Nodes outside are clusters of their own in a VertexClustering, which has to cover all.
        """
        import igraph

        if graph.vcount() != len(self.names):
            raise InputError(
                f"graph has {graph.vcount()} vertices, but {len(self.names)} were clustered."
            )
        number = {name: i for i, name in enumerate(self.names)}
        if self.overlapping:
            return igraph.VertexCover(graph, [[number[v] for v in nodes] for nodes in self])
        labels = self.labels.copy()
        alone = np.flatnonzero(labels == OUTSIDE)
        labels[alone] = len(self) + np.arange(len(alone))
        return igraph.VertexClustering(graph, labels.tolist())

    def to_networkx(self, graph: Any, attribute: str = "community") -> Any:
        """Write each node's community to a node attribute of ``graph``, and return ``graph``.

        The attribute is a number (-1 for none), or a list of numbers where communities overlap.
        """
        if self.overlapping:
            lists: dict[Any, Any] = {name: [] for name in self.names}
            for number, nodes in enumerate(self):
                for name in nodes:
                    lists[name].append(number)
        else:
            lists = dict(zip(self.names, self.labels.tolist(), strict=True))
        for name, value in lists.items():
            if name not in graph:
                raise InputError(f"graph has no node {name!r}; pass the graph that was clustered.")
            graph.nodes[name][attribute] = value
        return graph


def communities(
    G: Any,
    n_clusters: int,
    *,
    order: int = 2,
    overlapping: bool = False,
    threshold: float = DEFAULT_THRESHOLD,
    weight: str | None = "weight",
    normalize: bool = True,
    allow_negative: bool = False,
    degree_offset: float | None = None,
    components: str = "all",
    n_init: int = DEFAULT_STARTS,
    init: Any = DEFAULT_INIT,
    random_state: RandomState = None,
    tol: float = 1e-4,
    max_time: float | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    solver: str | Solver = "auto",
    coupling: str | float | Coupling | None = None,
    max_iter: int = 1000,
    record_every: int = 1,
    ignore_diagonal: bool = False,
) -> Communities:
    r"""Find communities of an undirected graph by symmetric NMF of its adjacency matrix.

    With :math:`A \approx U U^T`, node i belongs to the community of the largest entry in its row
    of U; with ``overlapping=True`` to every community that holds more than ``threshold`` of the
    row's sum, and always to that of the largest entry.

    Parameters
    ----------
    G : networkx.Graph, igraph.Graph, scipy sparse matrix or array
        Undirected, without parallel edges; weights finite, and nonnegative unless said otherwise.
    n_clusters : int
        Communities to look for, at most the number of nodes that have edges.
    order : {2, 3}
        2 looks at edges; 3 at triangles, by the tensor of :func:`symnmf.tensors.triangles`: a
        community is then a group whose triples hold together. Entries with a repeated index count
        as zeros and nothing is normalized, which did better on graphs with known communities
        (docs/tensors.md). Nodes in no triangle are treated as nodes without edges are.
    overlapping : bool, default False
        Whether a node may belong to several communities.
    threshold : float, default 0.25
        In [0, 1). A node's shares sum to 1, so at the default it is in at most three communities
        and each holds more than a quarter of it. On the circles of ego-Facebook the overlapping
        F1 is flat from 0.25 to 0.4 (0.385 to 0.389) and falls below (0.379 at 0.2).
    weight : str or None
        The edge attribute with the weights. Edges without it count 1, and with None every edge
        does; a name other than "weight" that no edge has is an error.
    normalize : bool, default True
        Factorize :math:`(D + \tau I)^{-1/2} A (D + \tau I)^{-1/2}`, D the degrees, so that hubs
        do not outweigh the rest; False takes A as it is.
    degree_offset : float or None
        tau in mean degrees. It keeps small components and whiskers, which hang on the rest by a
        few edges, from being the communities. None takes the least of 0, 1/4, 1/2, 1 and 2 that
        does so on this graph, see :func:`symnmf.graphs.choose_degree_offset`.
    components : {"all", "largest"}
        "largest" looks at the largest connected component alone; the other nodes are outside.
    allow_negative : bool, default False
        Accept negative weights, of edges that keep nodes apart; degrees are then sums of sizes.
    n_init, init, random_state, tol, max_time, n_jobs, device, checkpoint, checkpoint_every
        As in :class:`symnmf.SymNMF`.
    callback : callable or None
        As in :func:`symnmf.factorize`; it sees every start, which may run in a thread of its
        own, and a true return value ends them all.
    progress : bool, default False
        Show a bar, in a terminal or a notebook (needs the extra ``progress``).
    solver, coupling, max_iter, record_every, ignore_diagonal
        As in :func:`symnmf.factorize`.

    Returns
    -------
    Communities
        A list of sets of node names (row numbers for a matrix), the largest first, equal ones in
        the order of their first node. Communities that no node belongs to are left out, so there
        may be fewer than ``n_clusters``; a warning says so. A node without edges is in none of
        them: its label is -1, and ``outside`` lists it. Without ``overlapping`` the sets
        are disjoint.

    Warns
    -----
    GraphWarning
        There are more components than ``n_clusters``.
    QualityWarning
        One community holds more than 90% of the nodes, or some have none.

    Examples
    --------
    >>> import networkx, symnmf
    >>> found = symnmf.communities(networkx.karate_club_graph(), 2, random_state=0)
    >>> [len(community) for community in found]
    [18, 16]
    """
    check_cluster_count(n_clusters, "n_clusters")
    flags = {
        "overlapping": overlapping,
        "normalize": normalize,
        "allow_negative": allow_negative,
        "ignore_diagonal": ignore_diagonal,
    }
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {flag!r}.")
    if order not in (2, 3):
        raise InputError(f"order must be 2 (edges) or 3 (triangles), got {order!r}.")
    if not (isinstance(threshold, int | float | np.number) and 0 <= threshold < 1):
        raise InputError(f"threshold must be a number in [0, 1), got {threshold!r}.")
    plan = Plan(
        int(n_clusters),
        Settings.of(
            solver,
            coupling,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            record_every=record_every,
        ),
        n_init=n_init,
        init=init,
        random_state=random_state,
        n_jobs=n_jobs,
        device=device,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    check_degree_offset(degree_offset)
    A, names = graphs.from_graph(G, weight=weight, allow_negative=allow_negative)
    if allow_negative and A.nnz and A.data.max() <= 0:
        raise InputError(
            "G has no edge of positive weight, so nothing holds any two nodes together; check the "
            "signs of its weights."
        )
    if allow_negative and order == 3 and A.nnz and A.data.min() < 0:
        raise InputError("order=3 counts triangles, whose weights must not be negative.")
    A = restrict(A, components, int(n_clusters), "components='largest'")
    tau, rows, searched = 0.0, np.flatnonzero(connected(A)), A
    if order == 3:
        triangles = tensors.triangles(A, repeated="observed", n_jobs=n_jobs)[0]
        rows = np.flatnonzero(triangles.rows_in_use)
        if not rows.size:
            searched = sp.csr_array(A.shape)
    if rows.size:
        check_enough(
            rows.size, int(n_clusters), "n_clusters", "edges" if order == 2 else "triangles"
        )
    if order == 3 and rows.size:
        searched = triangles.restricted(rows)
        settings = tensor_settings(searched, solver, coupling, plan.settings.limits)
        plan = replace(plan, settings=settings)
    elif normalize and rows.size:
        if degree_offset is None:
            tau, searched, basis = with_degree_offset(A, int(n_clusters))
            plan = replace(plan, basis=basis)
        else:
            tau, searched = float(degree_offset), normalized(A, degree_offset)
    with bar(bool(progress), plan.starts) as shown:
        watcher = together(shown, (lambda _, now: callback(now)) if callback else None)
        problem = plan.problem(
            searched, ignore_diagonal=ignore_diagonal, allow_negative=allow_negative
        )
        search = replace(plan, progress=watcher).search(problem)
    if search.best.U.shape[0] < len(names):
        search = _on_all_rows(search, rows, len(names))
    warn_unless_converged(search.best, plan.settings.limits, plan.starts)
    found = _found(A, names, search, threshold if overlapping else None)
    found.degree_offset = float(tau)
    degrees = np.asarray(abs(A).sum(axis=1)).ravel()
    found._extra = float(tau * degrees[degrees > 0].mean()) if degrees.any() else 0.0
    found._roots = np.sqrt(np.maximum(degrees + found._extra, 1e-300))
    if not normalize:
        found._extra = -1.0
    warn_of(found.quality, "raise degree_offset, or set components='largest'")
    return found


def _on_all_rows(search: Search, rows: np.ndarray, n: int) -> Search:
    """Give the results rows of zeros for the nodes that were left out of the search."""

    def spread(factor: np.ndarray) -> np.ndarray:
        whole = np.zeros((n, factor.shape[1]), factor.dtype)
        whole[rows] = factor
        return whole

    def whole(result: Result) -> Result:
        others = tuple(spread(factor) for factor in result.others)
        return replace(result, U=spread(result.U), V=spread(result.V), others=others)

    finished = tuple(whole(result) for result in search.finished)
    return replace(search, best=whole(search.best), finished=finished)


def _found(A: Any, names: list[Any], search: Search, threshold: float | None) -> Communities:
    """Put the columns of U in the order of the communities, and name their members."""
    result = search.best
    belongs = np.zeros(result.U.shape, dtype=bool)
    inside = np.flatnonzero(result.labels != OUTSIDE)
    belongs[inside, result.labels[inside]] = True
    if threshold is not None:
        belongs |= result.membership > threshold
    members = [np.flatnonzero(column) for column in belongs.T]
    order = sorted(
        range(len(members)),
        key=lambda j: (-members[j].size, members[j][0] if members[j].size else 0),
    )
    U, V = result.U[:, order], result.V[:, order]
    found = Communities({names[i] for i in members[j]} for j in order if members[j].size)
    others = tuple(factor[:, order] for factor in result.others)
    found.result = replace(result, U=U, V=V, others=others)
    found.names, found.labels = names, found.result.labels
    found.membership = found.result.membership[:, : len(found)]
    found.outside = [names[i] for i in np.flatnonzero(found.labels == OUTSIDE)]
    found.quality = assess(A, found.labels, replace(search, best=found.result))
    found.seed, found.overlapping = search.seed, threshold is not None
    return found

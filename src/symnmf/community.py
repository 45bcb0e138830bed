"""Communities of a graph, with the graph's own node names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.cluster.about import about
from symnmf.cluster.fitted import Fitted
from symnmf.cluster.outside import outlier_scores
from symnmf.cluster.pipeline import find_clusters
from symnmf.cluster.quality import Quality
from symnmf.cluster.task import PRECOMPUTED, Task
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.edges import read_graph
from symnmf.options import ClusterOptions, documented
from symnmf.run.result import OUTSIDE, Result
from symnmf.run.start import RandomState

if TYPE_CHECKING:
    from symnmf.cluster.judgement import RankSelection
    from symnmf.cluster.sparse import SparseFitted
    from symnmf.run.choosing import Choice


class Communities(Sequence[frozenset[Hashable]]):
    """Sets of nodes, the largest first, with labels, memberships and quality.

    The sequence is immutable, so that the sets always agree with the labels; a slice of it is a
    plain list. It is equal to any list or tuple of the same sets.

    Attributes
    ----------
    names : list
        The nodes, in the order of the rows below.
    labels : ndarray of shape (n,)
        The index of each node's community; -1 for a node in none.
    membership : ndarray of shape (n, communities)
        The share of each node's row of U in each community that it belongs to, and zeros
        elsewhere. If the sets do not overlap, that of its label is the largest, and it may have
        shares in others by the rule for sets that do.
    strength : ndarray of shape (n, communities) or None
        How strongly each node belongs to each community, in units of the background: a node is a
        member if the value is above 1. None if there is no background: for triangles, with
        negative weights, and if the graph is not in memory.
    outside : list
        Nodes in no community: nodes without edges, outside the chosen component, or, if
        communities overlap, not above the background in any of them.
    rank_selection : RankSelection or None
        How the number of communities was chosen, with ``n_clusters="auto"``.
    quality : Quality
        Modularity, conductance and the like.
    degree_offset : float
        tau in mean degrees.
    result : Result
        The factorization; its columns are in the order of the communities.
    certificate : Certificate
        Whether U is a critical point; computed on first access.
    seed : int, Generator or RandomState
        The seed of the starts.
    overlapping : bool
        Whether a node may be in several communities.
    negative_weight : Choice or None
        How much negative edges counted, in a signed graph that was normalised.
    layer_weights : Choice or None
        How much each layer counted, if there were several.
    attribute_weight : Choice or None
        How much ``attributes`` counted, with the degree offset chosen along with it.
    """

    def __init__(self, fitted: Fitted | SparseFitted) -> None:
        self._fitted = fitted
        self.names: list[Any] = fitted.names
        self.labels = fitted.labels
        self.result: Result = fitted.result
        self.rank_selection: RankSelection | None = fitted.selection
        self.seed: RandomState = fitted.seed
        self.overlapping = fitted.shared_by is not None
        similar = getattr(fitted, "similarities", None)  # a row-sparse U has none
        self.degree_offset = float((similar and similar.degree_offset) or 0.0)
        choices = similar.choices if similar else {}
        self.layer_weights: Choice | None = choices.get("layer_weights")
        self.negative_weight: Choice | None = choices.get("negative_weight")
        self.attribute_weight: Choice | None = choices.get("attribute_weight")

    @cached_property
    def _sets(self) -> list[frozenset[Any]]:
        return [frozenset(self.names[i] for i in rows) for rows in self._fitted.sets]

    @cached_property
    def outside(self) -> list[Any]:
        """Nodes in no community."""
        return [self.names[i] for i in np.flatnonzero(self.labels == OUTSIDE)]

    @overload
    def __getitem__(self, which: int) -> frozenset[Hashable]: ...
    @overload
    def __getitem__(self, which: slice) -> list[frozenset[Hashable]]: ...
    def __getitem__(self, which: int | slice) -> Any:
        return self._sets[which]

    def __len__(self) -> int:
        return len(self._sets)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(nodes)) for nodes in self._sets)
        return f"Communities({len(self)} of {len(self.names)} nodes, of sizes {sizes or 'none'})"

    @property
    def membership(self) -> Any:
        """Shares of U in the communities that a node belongs to."""
        return self._fitted.membership[:, : len(self._sets)]

    @property
    def strength(self) -> Any:
        """U in units of the background."""
        strength = self._fitted.strengths
        return None if strength is None else strength[:, : len(self._sets)]

    @property
    def quality(self) -> Quality:
        """Sizes, separation, and whether the communities are better than chance."""
        return self._fitted.quality

    @checked(count=("count",))
    def about(self, count: int = 10, names: Sequence[Any] | None = None) -> list[list[Any]]:
        """Return the attributes that are more common in each community than in the others.

        Parameters
        ----------
        count : int
            The largest number of attributes per community; the most distinctive comes first.
        names : sequence or None
            The names of the columns of ``attributes``; None for those of a DataFrame, else numbers.
        """
        return about(self.result, len(self), count, names)

    @property
    def outlier_score(self) -> np.ndarray:
        """How badly each node fits its community, see :class:`symnmf.SymNMF`."""
        if not isinstance(self._fitted, Fitted):
            raise InputError(
                "outlier_score is not supported for a row-sparse U; pass row_sparse=False."
            )
        return outlier_scores(self._fitted.similarities.graph, self.labels)

    @property
    def certificate(self) -> Any:
        """Whether U is a critical point, see :class:`symnmf.run.certificate.Certificate`."""
        return self._fitted.certificate

    @checked(edges=("sequence", "mapping"))
    def predict(self, edges: Mapping[Hashable, float] | Iterable[Hashable]) -> int:
        """Return the community of a new node from its edges to the nodes of the graph.

        ``edges`` maps neighbours to weights, or lists neighbours; -1 if there are none.
        """
        return int(self._fitted.labels_of(self._row(edges))[0])

    @checked(edges=("sequence", "mapping"))
    def transform(self, edges: Mapping[Hashable, float] | Iterable[Hashable]) -> np.ndarray:
        """Return the new node's row of U, see :meth:`predict`."""
        return np.asarray(self._fitted.rows_of(self._row(edges))[0])

    def _row(self, edges: Mapping[Hashable, float] | Iterable[Hashable]) -> sp.csr_array:
        """Return the row of the adjacency matrix that a new node has."""
        with said_as_input_errors():
            weights = dict(edges) if isinstance(edges, Mapping) else dict.fromkeys(edges, 1.0)
        number = {name: i for i, name in enumerate(self.names)}
        unknown = [name for name in weights if name not in number]
        if unknown:
            raise InputError(f"edges names {unknown[0]!r}, which is not a node of the graph.")
        row = np.zeros((1, len(self.names)))
        for name, weight in weights.items():
            if not (np.isfinite(weight) and weight >= 0):
                raise InputError(f"edges has the weight {weight!r} to {name!r}; it must be >= 0.")
            row[0, number[name]] = weight
        return sp.csr_array(row)

    def to_igraph(self, graph: Any) -> Any:
        """Return an igraph VertexClustering of ``graph``, or a VertexCover if they overlap.

        A VertexClustering must cover all nodes, so each node outside becomes its own cluster.
        """
        import igraph

        if not isinstance(graph, igraph.Graph):
            raise InputError(
                f"graph must be an igraph.Graph, got {type(graph).__name__}; for a networkx graph "
                f"call to_networkx."
            )
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

    @checked(attribute=("text",))
    def to_networkx(self, graph: Any, attribute: str = "community") -> Any:
        """Write each node's community to a node attribute of ``graph``, and return ``graph``.

        The attribute is a number (-1 for none), or a list of numbers if communities overlap.
        """
        if not hasattr(graph, "nodes") or not hasattr(graph, "adjacency"):
            raise InputError(f"graph must be a networkx graph, got {type(graph).__name__}.")
        for name, label in zip(self.names, self.labels.tolist(), strict=True):
            if name not in graph:
                raise InputError(f"graph has no node {name!r}; pass the graph that was clustered.")
            graph.nodes[name][attribute] = [] if self.overlapping else label
        if self.overlapping:
            for number, nodes in enumerate(self):
                for name in nodes:
                    graph.nodes[name][attribute].append(number)
        return graph


@checked(ClusterOptions)
@documented
def communities(
    G: Any,
    n_clusters: int | str,
    *,
    order: int = 2,
    overlapping: bool = False,
    threshold: float | str = "background",
    weight: str | None = "weight",
    negative_weight: float | str = "auto",
    row_sparse: bool | None = None,
    attribute_scaling: str = "auto",
    **options: Unpack[ClusterOptions],
) -> Communities:
    r"""Find communities of an undirected graph by symmetric NMF of its adjacency matrix.

    With :math:`A \approx U U^T`, the rows of U say how strongly a node belongs to each community,
    and its edges decide between them, see ``assign_labels``. With ``overlapping=True`` it belongs
    to every community in which its strength exceeds the background: to several or to none.

    Parameters
    ----------
    G : networkx.Graph, igraph.Graph, table of edges, scipy sparse matrix or array
        Undirected, without parallel edges; weights finite, and nonnegative unless
        ``allow_negative`` is set.
        A table is a frame of pandas, polars or pyarrow with the columns source, target and
        optionally weight, or a list of pairs; see :func:`symnmf.graphs.from_edges`.
        A :class:`symnmf.graphs.Hypergraph` is clustered by its clique graph, over the sizes that
        carry groups; ``loss="poisson"`` refines that by a model of the hyperedges, and ``order=3``
        takes their triples (docs/howto/hypergraphs.md).
        A list of graphs or matrices of the same nodes are the layers of a multiplex graph, each
        normalised separately. A matrix of :mod:`symnmf.storage`, a Dask array or a
        :class:`symnmf.Problem` is taken as it is.
    {n_clusters, order, overlapping, threshold, weight, negative_weight, row_sparse,
    attribute_scaling}
    **options
        How the graph is normalised, how labels are assigned, which entries count, what is minimised
        and how the search is done:
    {normalize, degree_offset, components, assign_labels, solver, coupling, init, n_init, tol,
    max_iter, max_time, record_every, random_state, n_jobs, device, callback, progress, checkpoint,
    mask, weights, missing, ignore_diagonal, allow_negative, l1, ridge, links, loss, attributes,
    attribute_weight, layer_weights}

    Returns
    -------
    Communities
        Sets of node names (row numbers for a matrix), the largest first, and in the order of their
        first node if sizes are equal. Empty communities are left out, so there may be fewer than
        ``n_clusters``, with a warning. A node without edges is in no community: its label is -1,
        and ``outside`` lists it. Without ``overlapping`` the sets are disjoint.

    Warns
    -----
    GraphWarning
        There are more components than ``n_clusters``.
    QualityWarning
        One community holds most of the nodes, or some have hardly any or none.

    Notes
    -----
    A loss other than "frobenius" refines the best of the starts, which are fits of the squared
    misfit; triangles (``order=3``) are never normalised, since that gave worse communities. Rows of
    ``attributes`` are in the order of the nodes; those of a DataFrame are matched by its index.

    Examples
    --------
    >>> import networkx, symnmf
    >>> found = symnmf.communities(networkx.karate_club_graph(), 2, random_state=0)
    >>> [len(community) for community in found]
    [18, 16]
    """
    return communities_of(
        G,
        n_clusters=n_clusters,
        order=order,
        overlapping=overlapping,
        threshold=threshold,
        weight=weight,
        negative_weight=negative_weight,
        row_sparse=row_sparse,
        attribute_scaling=attribute_scaling,
        **options,
    )


def communities_of(G: Any, points: Any = None, **options: Any) -> Communities:
    """Return what :func:`communities` does, judged by the points that the graph was made of."""
    task = Task("G", is_graph=True, points=points, affinity=PRECOMPUTED, **options)
    G = read_graph(G, task.weight) or G
    if task.row_sparse or (task.overlapping and task.row_sparse is None):
        from symnmf.cluster.sparse import fit_row_sparse, is_row_sparse

        if is_row_sparse(task, G):
            return Communities(fit_row_sparse(task, G))
    return Communities(find_clusters(task, G))

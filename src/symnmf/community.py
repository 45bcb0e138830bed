"""Communities of a graph, with the graph's own node names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.arguments import checked
from symnmf.cluster import CLUSTER_TOL, DEFAULT_THRESHOLD, Fitted, Pipeline
from symnmf.cluster.about import about
from symnmf.cluster.outside import outlier_scores
from symnmf.cluster.sparse import SparseFitted, SparsePipeline
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.assigning import LIKELIHOOD
from symnmf.graphs.edge_tables import with_edges_read
from symnmf.notebook import card
from symnmf.quality import Quality
from symnmf.run.loop import Callback
from symnmf.run.multistart import DEFAULT_INIT, DEFAULT_STARTS
from symnmf.run.result import OUTSIDE, Result
from symnmf.run.start import RandomState
from symnmf.solvers import Solver

if TYPE_CHECKING:
    from symnmf.cluster.joint import AttributeWeight
    from symnmf.cluster.layers import LayerWeights
    from symnmf.cluster.signed import NegativeWeight
    from symnmf.coupling import Coupling
    from symnmf.selection.found import RankSelection

#: What a notebook shows at most.
SHOWN_SETS, SHOWN_NODES = 20, 8


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
    negative_weight : NegativeWeight or None
        How much negative edges counted, in a signed graph that was normalised.
    layer_weights : LayerWeights or None
        How much each layer counted, if there were several.
    attribute_weight : AttributeWeight or None
        How much ``attributes`` counted, and how that was chosen.
    """

    def __init__(self, fitted: Fitted | SparseFitted) -> None:
        self._fitted = fitted
        self.names: list[Any] = fitted.names
        self.labels = fitted.labels
        self._sets = [frozenset(self.names[i] for i in rows) for rows in fitted.sets]
        self.outside = [self.names[i] for i in np.flatnonzero(self.labels == OUTSIDE)]
        self.result: Result = fitted.result
        self.rank_selection: RankSelection | None = getattr(fitted, "selection", None)
        self.degree_offset = fitted.degree_offset
        self.seed: RandomState = fitted.seed
        self.overlapping = fitted.threshold is not None
        signs = None if isinstance(fitted, SparseFitted) else fitted.similarities.signs
        layers = None if isinstance(fitted, SparseFitted) else fitted.similarities.layers
        self.layer_weights: LayerWeights | None = layers
        self.negative_weight: NegativeWeight | None = signs
        self.attribute_weight: AttributeWeight | None = getattr(fitted, "attribute_weight", None)

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

    def _repr_html_(self) -> str:
        rows: list[tuple[Any, int, str]] = []
        for number, nodes in enumerate(self._sets[:SHOWN_SETS]):
            # sets have no order of their own, so members are shown in that of the graph
            members = [name for name in self.names if name in nodes][:SHOWN_NODES]
            more = ", …" if len(nodes) > len(members) else ""
            rows.append((number, len(nodes), ", ".join(map(str, members)) + more))
        if len(self) > SHOWN_SETS:
            rows.append(("…", sum(map(len, self._sets[SHOWN_SETS:])), "in the other communities"))
        if self.outside:
            rows.append(
                ("none", len(self.outside), ", ".join(map(str, self.outside[:SHOWN_NODES])))
            )
        title = f"{len(self)} communities of {len(self.names)} nodes"
        return card(title, "", rows, ("community", "nodes", "such as"))

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
        """Whether U is a critical point, see :class:`symnmf.Certificate`."""
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
        if self.overlapping:
            lists: dict[Any, Any] = {name: [] for name in self.names}
            for number, nodes in enumerate(self):
                for name in nodes:
                    lists[name].append(number)
        else:
            lists = dict(zip(self.names, self.labels.tolist(), strict=True))
        if not hasattr(graph, "nodes") or not hasattr(graph, "adjacency"):
            raise InputError(f"graph must be a networkx graph, got {type(graph).__name__}.")
        for name in lists:
            if name not in graph:
                raise InputError(f"graph has no node {name!r}; pass the graph that was clustered.")
        for name, value in lists.items():
            graph.nodes[name][attribute] = value
        return graph


@checked()
def communities(
    G: Any,
    n_clusters: int | str,
    *,
    order: int = 2,
    overlapping: bool = False,
    threshold: float | str = DEFAULT_THRESHOLD,
    weight: str | None = "weight",
    normalize: bool = True,
    allow_negative: bool = False,
    negative_weight: float | str = "auto",
    degree_offset: float | None = None,
    components: str = "all",
    n_init: int = DEFAULT_STARTS,
    init: Any = DEFAULT_INIT,
    random_state: RandomState = None,
    tol: float = CLUSTER_TOL,
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
    missing: str | None = None,
    mask: Any = None,
    entry_weights: Any = None,
    l1: float = 0.0,
    ridge: float = 0.0,
    row_sparse: bool | None = None,
    loss: str = "frobenius",
    assign_labels: str = LIKELIHOOD,
    attributes: Any = None,
    attribute_weight: float | str = "auto",
    attribute_scaling: str = "auto",
    layer_weights: Any = "auto",
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
        optionally weight, or a list of named pairs; see :func:`symnmf.graphs.from_edges`.
        A :class:`symnmf.graphs.Hypergraph`, or one of XGI, HGX or HyperNetX, is clustered by its
        clique graph, over the sizes that carry groups; ``loss="poisson"`` refines that by a
        model of the hyperedges, and ``order=3`` takes their triples (docs/howto/hypergraphs.md).
        A matrix of :mod:`symnmf.storage`, a Dask array or a :class:`symnmf.Problem` also works,
        with ``normalize=False`` unless it is a :class:`symnmf.storage.LowRank`.
    n_clusters : int or "auto"
        The number of communities, at most the number of nodes with edges. "auto" chooses it as in
        :class:`symnmf.SymNMF`; if communities may overlap, it counts the neighbourhoods of nodes
        that share at most half of their nodes.
    order : {2, 3}
        2 uses edges; 3 uses triangles, with the tensor of :func:`symnmf.tensors.triangles`: a
        community is then a group with many triangles. Entries with a repeated index count as zeros
        and nothing is normalized, which gave better results on graphs with known communities
        (docs/tensors.md). Nodes in no triangle are treated like nodes without edges.
    overlapping : bool, default False
        Whether a node may belong to several communities.
    threshold : "background" or float
        "background" uses the units of the graph: a node belongs to a community if its strength is
        more than the density of the graph explains, see docs/howto/overlap.md. A number in [0, 1)
        is a share of the node's row of U: the node belongs to every community with a larger share,
        and always to the community of its largest entry.
    weight : str or None
        The edge attribute, or the column of a table, with the weights. Edges without it have the
        weight 1. With None, all edges do. A name other than "weight" that no edge has is an error.
    normalize : bool, default True
        Factorize :math:`(D + \tau I)^{-1/2} A (D + \tau I)^{-1/2}`, D the degrees, so that hubs
        do not dominate; False uses A unchanged.
    degree_offset : float or None
        tau in mean degrees. It prevents small components and tails, which are attached to the rest
        by a few edges, from becoming the communities. None uses 0 unless one community would then
        hold almost everything; in that case it uses the value from 0 to 20 with the highest
        modularity, see :func:`symnmf.graphs.choose_degree_offset`.
    components : {"all", "largest"}
        "largest" uses only the largest connected component; the other nodes are outside.
    allow_negative : bool, default False
        Accept negative weights. A negative edge means that its nodes belong apart: putting them in
        one community costs its weight, while a missing edge costs nothing.
    negative_weight : "auto" or float
        How much negative edges count if the graph is normalised: with 0 only the positive part
        counts, with 1 both parts count the same. "auto" compares 0, 1/4, 1/2, 1 and 2 by how well
        the communities explain the edges of both signs, and uses the smallest value that is nearly
        as good as the best; see docs/howto/signed.md.
    n_init, init, random_state, tol, max_time, n_jobs, device, checkpoint, checkpoint_every
        As in :class:`symnmf.SymNMF`.
    callback : callable or None
        As in :func:`symnmf.factorize`. It is called for every start, possibly from another thread,
        and a true return value ends all of them.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook (needs the extra ``progress``).
    solver, coupling, max_iter, record_every, ignore_diagonal, missing, mask
        As in :func:`symnmf.factorize`. Degrees count observed edges only.
    entry_weights : array-like or sparse, n x n, or None
        ``weights`` of :func:`symnmf.factorize`: how much each entry counts in the fit. (``weight``
        names the weights of the edges, which are data.)
    row_sparse : bool or None
        Whether a row of U holds at most 16 entries, which allows tens of thousands of communities.
        They are fitted with the Poisson loss, starting from neighbourhoods, and U, membership and
        strength are ``csr_array``. None switches to this, with a warning, if communities overlap
        and a dense U would have at least 200 columns and ten million entries, or for "auto" with
        5000 nodes or more. ``tol`` is then the relative decrease of the loss in one iteration, and
        the result does not depend on ``random_state``.
    l1, ridge : float
        As in :class:`symnmf.Problem`. ``l1`` makes memberships sharper.
    assign_labels : {"likelihood", "largest"}
        As in :class:`symnmf.SymNMF`; communities that overlap are not affected.
    layer_weights : "auto", sequence of float or None
        If G is a list of graphs or matrices of the same nodes (the layers of a multiplex graph):
        how much each layer counts; None for equal weights. "auto" chooses the weights that best
        predict held-out edges of all layers. Each layer is normalised separately.
    attributes : array-like, scipy sparse or DataFrame, nodes x columns, or None
        A table with one row per node, such as its words. U is then fitted to the edges and the
        table, and :meth:`Communities.about` lists the attributes of each community. Rows are in the
        order of the nodes; rows of a DataFrame are matched by its index if the nodes have names. A
        node without edges is placed by its attributes. See docs/howto/attributes.md.
    attribute_weight : "auto" or float
        How much attributes count compared with edges; with 1 both count the same. "auto" chooses,
        without labels, the weight that best predicts held-out edges and attributes. It chooses
        ``degree_offset`` too if that is None.
    attribute_scaling : {"auto", "tfidf", "columns", "none"}
        See :func:`symnmf.graphs.scale_attributes`.

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
        The communities are weak or no more than chance, one holds more than 80% of the nodes, or
        some have hardly any. See :class:`symnmf.Quality`.

    Examples
    --------
    >>> import networkx, symnmf
    >>> found = symnmf.communities(networkx.karate_club_graph(), 2, random_state=0)
    >>> [len(community) for community in found]
    [18, 16]
    """
    hypergraph = graphs.hypergraph_of(G, weight)
    G = with_edges_read(G, weight) if hypergraph is None else hypergraph
    pipeline = Pipeline(
        n_clusters=n_clusters,
        order=order,
        threshold=threshold if overlapping else None,
        loss=loss,
        assign_labels=assign_labels,
        attributes=attributes,
        attribute_weight=attribute_weight,
        attribute_scaling=attribute_scaling,
        weight=weight,
        normalize=normalize if order == 2 else None,
        degree_offset=degree_offset,
        components=components,
        negative_weight=negative_weight,
        layer_weights=layer_weights,
        objective={
            "mask": mask,
            "weights": entry_weights,
            "missing": missing,
            "ignore_diagonal": ignore_diagonal,
            "allow_negative": allow_negative,
            "l1": l1,
            "ridge": ridge,
        },
        solver=solver,
        coupling=coupling,
        init=init,
        n_init=n_init,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        record_every=record_every,
        random_state=random_state,
        n_jobs=n_jobs,
        device=device,
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        argument="G",
        rows="nodes",
    )
    wanted = row_sparse if overlapping or row_sparse else False
    sparse = SparsePipeline.beside(pipeline, wanted)
    return Communities(sparse.fit(G) if sparse.applies(G) else pipeline.fit(G))

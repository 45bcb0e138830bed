"""From data to the similarities that are factorized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.cluster.task import HIDING, Task
from symnmf.errors import InputError
from symnmf.graphs.adjacency import (
    affinities,
    as_storage,
    attraction,
    degrees,
    divided,
    normalized,
    numbers,
    row_names,
)
from symnmf.graphs.components import restrict
from symnmf.graphs.degree_offsets import Scaled, is_normalized, with_degree_offset
from symnmf.graphs.edges import read_graph
from symnmf.graphs.pairwise import like_distances
from symnmf.graphs.scales import dominance
from symnmf.graphs.warning import warn
from symnmf.objectives.observing import observed_part
from symnmf.options import AUTO
from symnmf.run.choosing import Choice
from symnmf.run.problem import Problem
from symnmf.run.spectral import Basis
from symnmf.storage import LowRank, SymmetricArray, as_symmetric
from symnmf.storage.layers import Layers, is_layers, layer_weights
from symnmf.storage.wrapping import in_memory, is_storage, stored

if TYPE_CHECKING:
    from symnmf.graphs.building import Compare


@dataclass(frozen=True, eq=False)
class Similarities:
    """What is factorized, X, and what it was made of.

    X is an array, a sparse matrix, a storage that has been checked, or a Problem. ``graph`` are the
    similarities before they were normalised, which clusters are judged by; ``roots`` the roots of
    the degrees, tau included, that X was divided by; ``basis`` its leading eigenvectors, where they
    were looked at; ``weights`` those of entries, where some were not observed or count less;
    ``choices`` what was chosen by held-out data, by the names of the options; ``compare`` what
    compares new points with those of the graph.
    """

    X: Any
    graph: Any
    names: list[Any] | None = None
    degree_offset: float | None = None
    roots: np.ndarray | None = None
    basis: Basis | None = None
    choices: Mapping[str, Choice] = field(default_factory=dict)
    weights: Any = None
    hypergraph: graphs.Hypergraph | None = None
    compare: Compare | None = None

    @property
    def A(self) -> Any:
        """What is factorized, as an array or a csr_array where it is one."""
        return in_memory(self.X) if isinstance(self.X, SymmetricArray) else self.X

    def objective(self, task: Task) -> dict[str, Any]:
        """Return what the Problem is given besides X."""
        if self.weights is None:
            return task.objective
        shown = {name: value for name, value in task.objective.items() if name not in HIDING}
        return shown | {"weights": self.weights}

    @property
    def connected(self) -> int:
        """How many rows have a similarity to others, or are in a triangle."""
        inside = getattr(self.X, "rows_in_use", None)
        return int(np.count_nonzero(degrees(self.graph) if inside is None else inside))

    def scaled_rows(self, rows: Any) -> Any:
        """Return similarities of new rows to the fitted ones in the scale of X."""
        if self.roots is None:
            return rows
        known = degrees(self.graph)
        extra = (self.degree_offset or 0.0) * known[known > 0].mean() if known.any() else 0.0
        return divided(rows, self.roots, extra)


def similarities(task: Task, data: Any, clusters: int = 0) -> Similarities:
    """Return the similarities of the data, for so many clusters.

    With 0, for a number that is still to be found, no count of components is a surprise and the
    offset of degrees is 0 unless it is given; see :func:`for_count`.
    """
    if isinstance(data, Problem):
        task.refuse_with("a Problem")
        return Similarities(data, in_memory(data.X), row_names(data.given))
    if not task.precomputed:
        return _of_points(task, data, clusters)
    if is_layers(data):
        return _of_layers(task, data, clusters)
    if isinstance(data, graphs.Hypergraph):
        return _of_hypergraph(task, data, clusters)
    if is_storage(data):
        data = in_memory(as_symmetric(data, n_jobs=task.n_jobs, device=task.device))
        if isinstance(data, SymmetricArray):
            low_rank = isinstance(data, LowRank)
            task.refuse_with("a LowRank" if low_rank else "a matrix that is not in memory")
            return normalised(task, Similarities(data, data), clusters)
    return _of_matrix(task, data, clusters)


def for_count(task: Task, similar: Similarities, clusters: int) -> Similarities:
    """Return the similarities for a number of clusters that has been found since."""
    if similar.hypergraph is not None:
        return _of_hypergraph(task, similar.hypergraph, clusters)
    taken = isinstance(similar.X, Problem | Layers) or task.order == 3
    return similar if taken or not task.precomputed else normalised(task, similar, clusters)


def normalised(
    task: Task, similar: Similarities, clusters: int, tau: float | None = None
) -> Similarities:
    """Return similarities divided by the roots of their degrees, where the task says so.

    Where it leaves that open, similarities in memory are, unless they have been already: hubs hold
    the leading eigenvectors of others. ``tau`` takes the place of the task's own.
    """
    graph, tau = similar.graph, task.degree_offset if tau is None else tau
    stays = isinstance(graph, SymmetricArray)
    signed = not stays and graph.min() < 0
    is_open = task.normalize == AUTO and not task.is_graph and tau is None
    if is_open and (clusters < 2 or stays or signed or is_normalized(graph)):
        return similar  # negative similarities mean what their owner says
    if not task.normalize or (stays and not isinstance(graph, LowRank)):
        return similar
    if signed:  # how much negative edges count is chosen for a number of clusters
        return _signed(task, similar, clusters, tau) if clusters else similar
    known = degrees(graph)
    if not known.any():
        return similar
    if tau is not None:
        chosen = Scaled(float(tau), normalized(graph, tau, known))
    else:
        chosen = with_degree_offset(graph, clusters, task.n_jobs)
    scaled = stored(chosen.graph, task.n_jobs) if not stays else chosen.graph
    return replace(
        similar,
        X=scaled,
        degree_offset=chosen.tau,
        roots=np.sqrt(known + chosen.tau * known[known > 0].mean()),
        basis=chosen.basis,
    )


def _signed(task: Task, similar: Similarities, clusters: int, tau: float | None) -> Similarities:
    """Normalise a graph with negative edges, which count as much as they tell."""
    from symnmf.cluster.signed import choose_negative_weight, weighted_signs

    graph = similar.graph
    if tau is None:
        tau = with_degree_offset(attraction(graph), clusters).tau
    if isinstance(task.negative_weight, str):
        choice = choose_negative_weight(graph, clusters, float(tau), task.n_jobs)
    else:
        choice = Choice(float(task.negative_weight))
    scaled, known = weighted_signs(graph, choice.value, float(tau))
    roots = np.sqrt(known + tau * known[known > 0].mean())
    choices = {**similar.choices, "negative_weight": choice}
    return replace(similar, X=scaled, degree_offset=float(tau), roots=roots, choices=choices)


def _of_points(task: Task, data: Any, clusters: int) -> Similarities:
    from symnmf.graphs.building import built  # a given graph needs no search

    data = data if hasattr(data, "shape") else numbers(data, task.argument)
    if task.has_points and (fault := dominance(data, task.column_names)):
        warn(f"{fault}; sklearn.preprocessing.StandardScaler brings all columns to one scale.")
    kernel = {name: getattr(task, name) for name in ("gamma", "degree", "coef0", "kernel_params")}
    A, compare = built(
        data,
        task.affinity,
        n_neighbors=task.n_neighbors,
        n_jobs=task.n_jobs,
        device=task.device,
        **kernel,
    )
    if sp.issparse(A) or task.components != "all":  # all pairs are one component
        A = restrict(A, task.components, clusters)
    return Similarities(stored(A, task.n_jobs), A, row_names(data), compare=compare)


def _of_matrix(task: Task, data: Any, clusters: int) -> Similarities:
    """Take a graph, or a matrix of similarities in memory."""
    signed, names, weights = bool(task.allow_negative), row_names(data), None
    if (edges := read_graph(data, task.weight, task.argument)) is not None:
        data, names = edges.adjacency(task.argument, allow_negative=signed), edges.names
    else:
        _refuse_points(task, data)
    if task.hides:  # zeros stand for what was not observed
        name = "mask" if task.weights is None else "weights"
        data, weights = observed_part(data, getattr(task, name), name, task.missing)
    X: Any = data
    if edges is None or weights is not None:
        X = as_storage(data, task.argument, signed=signed, n_jobs=task.n_jobs)
    graph = in_memory(X)
    if sp.issparse(graph) and not graph.data.all() and weights is None:
        X = graph = affinities(graph, task.argument, signed=signed)  # stored zeros are no edges
    if isinstance(graph, np.ndarray) and like_distances(graph):
        warn(
            f"{task.argument} looks like distances: its diagonal is zero and no detour is shorter "
            f"than the direct way; pass similarities, which are large where rows are alike."
        )
    if signed and graph.min() < 0 and not graph.max() > 0:
        raise InputError(
            f"{task.argument} has no edge of positive weight, so nothing holds any two nodes "
            f"together; check the signs of its weights."
        )
    inside = restrict(graph, task.components, clusters)
    X = X if inside is graph else inside
    similar = Similarities(X, inside, names, weights=weights)
    return _triangles(task, similar) if task.order == 3 else normalised(task, similar, clusters)


def _refuse_points(task: Task, data: Any) -> None:
    shape: tuple[int, ...] = getattr(data, "shape", ())
    if len(shape) == 2 and shape[0] != shape[1] and not task.is_graph:
        raise InputError(
            f"{task.argument} must be square, got shape {shape[0]} x {shape[1]}; for points, one "
            f"in each row, pass affinity='self-tuning'."
        )


def _triangles(task: Task, similar: Similarities) -> Similarities:
    if similar.graph.min() < 0:
        raise InputError("order=3 counts triangles, whose weights must not be negative.")
    from symnmf import tensors  # only here, so that no other call loads its kernels

    T, _ = tensors.triangles(similar.graph, repeated="observed", n_jobs=task.n_jobs)
    return replace(similar, X=T)


def _of_hypergraph(task: Task, H: graphs.Hypergraph, clusters: int) -> Similarities:
    """Take the clique graph of the sizes that carry the groups."""
    task.refuse_with("a hypergraph")
    whole = H.clique_graph()
    inside = restrict(whole, task.components, clusters)
    if inside is not whole:
        H = H.kept((H.sizes > 1) & (H.incidence @ (degrees(inside) > 0) > 0))
    if task.order == 3:
        from symnmf.tensors.hypergraphs import tensor_of

        T = tensor_of(H, order=3, repeated="observed", n_jobs=task.n_jobs)
        return Similarities(T, inside, H.names)
    similar = Similarities(inside, inside, H.names, hypergraph=H)
    if not clusters:
        return normalised(task, similar, 0)
    from symnmf.cluster.hyperedges import choose_sizes, of_sizes, reason

    choice = choose_sizes(H, clusters)
    if (why := reason(choice)) is not None:
        warn(f"{why}; pass {task.argument}.of_sizes(...) to decide it.")
        H = of_sizes(H, choice.value)
        A = H.clique_graph()
        similar = Similarities(A, A, H.names, hypergraph=H)
    return replace(normalised(task, similar, clusters), graph=inside)


def _of_layers(task: Task, data: Sequence[Any], clusters: int) -> Similarities:
    """Normalise each layer as it would be alone, and weigh them against each other."""
    task.refuse_with("layers")
    from symnmf.cluster.layers import choose_layer_weights, same_rows

    parts = [
        _of_matrix(task, layer, clusters) for layer in same_rows(data, task.argument, task.weight)
    ]
    if isinstance(task.layer_weights, str):
        offsets = [part.degree_offset for part in parts]
        choice = choose_layer_weights([part.graph for part in parts], clusters, offsets)
    else:
        choice = Choice(tuple(layer_weights(task.layer_weights, len(parts)).tolist()))
    shares = np.array(choice.value)
    X = Layers(
        [part.X for part in parts],
        shares,
        n_jobs=task.n_jobs,
        device=task.device,
        allow_negative=bool(task.allow_negative),
    )
    graph: Any = sum(share * part.graph for share, part in zip(shares, parts, strict=True))
    graph = sp.csr_array(graph) if sp.issparse(graph) else np.asarray(graph)
    return Similarities(X, graph, parts[0].names, choices={"layer_weights": choice})

"""From data to the similarities that are factorized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.arguments import check_options
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import (
    affinities,
    as_storage,
    degrees,
    edge_list,
    matrix_of,
    normalized,
    numbers,
    row_names,
)
from symnmf.graphs.components import restrict
from symnmf.graphs.degree_offsets import Scaled, with_degree_offset, with_scaling
from symnmf.graphs.pairwise import DISTANCES, KERNELS
from symnmf.graphs.scales import describe_dominance, dominant_columns
from symnmf.graphs.warning import warn
from symnmf.options import OPTIONS
from symnmf.run.choosing import Choice
from symnmf.run.problem import Problem, says
from symnmf.run.spectral import Basis
from symnmf.storage import LowRank, SymmetricArray, as_symmetric
from symnmf.storage.indices import check_indices
from symnmf.storage.layers import Layers, is_layers, layer_weights
from symnmf.storage.wrapping import in_memory, is_storage, stored

if TYPE_CHECKING:
    from symnmf.graphs.building import NewRows

PRECOMPUTED = "precomputed"

#: What ``normalize`` is where it is to be chosen.
CHOOSE = "auto"


@dataclass(frozen=True, eq=False)
class Similarities:
    """What is factorized, and what it was made of.

    Attributes
    ----------
    A : array, csr_array, SymmetricArray or Problem
        What is factorized.
    graph : array, csr_array or SymmetricArray
        The similarities before they were normalised: what clusters are judged by.
    names : list or None
        What the rows are called, where the data say so.
    connected : int
        How many rows have a similarity to others, or are in a triangle.
    degree_offset : float or None
        tau in mean degrees; None where nothing was normalised.
    roots : ndarray or None
        The roots of the degrees, tau included, that A was divided by.
    basis : Basis or None
        The leading eigenvectors of A, where they were looked at.
    signs : Choice or None
        How much negative edges count, where a signed graph was normalised.
    layers : Choice or None
        How much each layer counts, if there are several.
    expected : float or None
        The modularity that the tau was chosen by, where it was chosen.
    checked : SymmetricArray or None
        A as it was checked, where nothing was changed since.
    hypergraph : Hypergraph or None
        The hyperedges that A is the clique graph of, where the data are a hypergraph.
    compared : NewRows or None
        What compares new points with those of the graph.
    """

    A: Any
    graph: Any
    names: list[Any] | None
    connected: int
    degree_offset: float | None = None
    roots: np.ndarray | None = None
    basis: Basis | None = None
    checked: SymmetricArray | None = None
    hypergraph: graphs.Hypergraph | None = None
    signs: Choice | None = None
    layers: Choice | None = None
    expected: float | None = None
    compared: NewRows | None = None

    def scaled_rows(self, rows: Any) -> Any:
        """Return similarities of new rows to the fitted ones in the scale of A."""
        if self.roots is None:
            return rows
        known = degrees(self.graph)
        extra = (self.degree_offset or 0.0) * known[known > 0].mean() if known.any() else 0.0
        own = np.asarray(abs(rows).sum(axis=1)).ravel() + extra
        left, right = (1 / np.where(root > 0, root, 1.0) for root in (np.sqrt(own), self.roots))
        return sp.csr_array(sp.diags_array(left) @ sp.csr_array(rows) @ sp.diags_array(right))


@dataclass(frozen=True, eq=False)
class GraphOfPoints:
    """A graph, and the points that it was made of, which clusters are judged by."""

    graph: Any
    points: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Building:
    """How data become similarities; checked when it is made, before data are looked at.

    Attributes
    ----------
    affinity : str or callable
        The kind of graph that is built of points, or "precomputed".
    n_neighbors : int or None
        Neighbours per row of such a graph.
    weight : str or None
        The attribute of a graph's edges that holds their weights.
    order : {2, 3}
        2 for edges, 3 for triangles.
    normalize : bool, "auto" or None
        Whether given similarities are divided by the roots of their degrees; "auto" does so for a
        graph and chooses for a matrix, None is for no. Graphs of points are always normalized.
    is_graph : bool
        Whether the given similarities are those of a graph.
    degree_offset : float or None
        tau, which is added to the degrees; None chooses it.
    components : {"all", "largest"}
    negative_weight : float or "auto"
        How much negative edges count in a graph that is normalised; "auto" chooses it.
    layer_weights : sequence of float, "auto" or None
        How much each of several layers counts; None for all the same.
    objective : mapping
        What :class:`symnmf.Problem` is told besides X.
    argument : str
        What the data are called in messages.
    gamma, degree, coef0, kernel_params
        Parameters of a kernel; those that it does not have are left out.
    column_names : sequence or None
        What the columns of points are called.
    scales_meant : bool
        Whether the scales of columns are as they are meant, so that nothing need be said of them.
    points : array-like, sparse or None
        The points that given similarities were made of, to judge clusters by.
    """

    affinity: str | Callable[..., Any] = PRECOMPUTED
    n_neighbors: int | None = None
    weight: str | None = "weight"
    order: int = 2
    normalize: bool | str | None = None
    is_graph: bool = False
    degree_offset: float | None = None
    components: str = "all"
    negative_weight: float | str = "auto"
    layer_weights: Any = "auto"
    objective: Mapping[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    device: Any = None
    argument: str = "X"
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: Mapping[str, Any] | None = None
    column_names: Sequence[Any] | None = None
    scales_meant: bool = False
    points: Any = None

    def __post_init__(self) -> None:
        own = {name: getattr(self, name, None) for name in OPTIONS}
        # None is no value of all of them, and says that nothing is to be done here
        check_options({k: v for k, v in (own | {**self.objective}).items() if v is not None})
        if self.precomputed:
            self._check_given()
        else:
            self._check_points()

    def _check_given(self) -> None:
        if self.n_neighbors is not None:
            raise InputError("n_neighbors is for points, not for given similarities; leave it out.")
        hiding = [name for name in ("mask", "weights", "missing") if self._told(name)]
        if hiding and self.order == 3:
            raise InputError(
                f"order=3 needs every edge, and {hiding[0]} hides some; leave one of them out."
            )

    def _check_points(self) -> None:
        odd = [name for name in ("degree_offset", "missing", "mask", "weights") if self._told(name)]
        if self.normalize is not None and not self.normalize:
            odd.append("normalize")
        if odd:
            raise InputError(
                f"{odd[0]} is for affinity={PRECOMPUTED!r}: graphs of points have "
                f"no missing entries and are always normalized; leave it out."
            )
        if self.order == 3:
            raise InputError(
                f"order=3 needs a graph and {self.argument} was taken for points; "
                f"leave it out, or pass a graph and affinity={PRECOMPUTED!r}."
            )

    def _told(self, name: str) -> bool:
        return getattr(self, name, self.objective.get(name)) is not None

    @property
    def _chooses(self) -> bool:
        return self._automatic and not self.is_graph

    @property
    def _automatic(self) -> bool:
        return isinstance(self.normalize, str) and self.normalize == CHOOSE

    @property
    def _asked(self) -> bool:
        """Whether similarities have to be normalized."""
        offset = self._chooses and self.degree_offset is not None
        return offset or (bool(self.normalize) and not self._chooses)

    def _can_choose(self, A: Any, seen: Any, clusters: int) -> bool:
        """Whether there is something to choose by: all entries, in memory, and a number."""
        return self._chooses and A is seen and not isinstance(A, SymmetricArray) and clusters > 1

    @property
    def precomputed(self) -> bool:
        """Whether the data are similarities, not points."""
        return isinstance(self.affinity, str) and self.affinity == PRECOMPUTED

    @property
    def has_points(self) -> bool:
        """Whether the rows of the data are points, and neither similarities nor distances."""
        return not self.precomputed and self.affinity != DISTANCES

    @property
    def kernel_options(self) -> dict[str, Any]:
        """What :func:`symnmf.graphs.build` is told of a kernel."""
        if callable(self.affinity):
            return dict(self.kernel_params or {})
        name = str(self.affinity).lower().replace("-", "_")
        if name in KERNELS:
            told: dict[str, Any] = {"degree": self.degree, "coef0": self.coef0}
            told |= {} if self.gamma is None else {"gamma": self.gamma}
            return {**(self.kernel_params or {}), **told}
        return {"gamma": self.gamma} if name == "rbf" and self.gamma is not None else {}

    def similarities(self, data: Any, clusters: int) -> Similarities:
        """Return the similarities of the data, for so many clusters.

        With 0, for a number that is still to be found, no count of components is a surprise and
        the offset of degrees is 0 unless it is given; see :meth:`for_count`.
        """
        if isinstance(data, Problem):
            return self._of_problem(data)
        if is_layers(data):
            return self._of_layers(data, clusters)
        if not self.precomputed:
            return self._of_points(data, clusters)
        if isinstance(data, graphs.Hypergraph):
            return self._of_hypergraph(data, clusters)
        if is_storage(data):
            stored = in_memory(as_symmetric(data, n_jobs=self.n_jobs, device=self.device))
            if isinstance(stored, SymmetricArray):
                return self._of_storage(stored, clusters)
            data = stored
        return self._of_matrix(data, clusters)

    def for_count(self, similar: Similarities, clusters: int) -> Similarities:
        """Return the similarities for a number of clusters that has been found since."""
        if similar.hypergraph is not None:
            return self._of_hypergraph(similar.hypergraph, clusters)
        if isinstance(similar.A, Layers):
            return similar
        undecided = self._chooses and not isinstance(similar.graph, SymmetricArray)
        given = self.degree_offset is not None and similar.signs is None
        if not (undecided or similar.roots is not None) or given:
            return similar
        if self.hides or self.order != 2 or not self.precomputed:
            return similar
        return self._normalised(similar.graph, similar.graph, similar.names, clusters)

    def normalised_by(self, similar: Similarities, tau: float) -> Similarities:
        """Return the similarities normalised with another tau."""
        chosen = replace(self, degree_offset=tau) if self.degree_offset is None else self
        return chosen._normalised(similar.graph, similar.graph, similar.names, 0)

    def _of_points(self, data: Any, clusters: int) -> Similarities:
        if isinstance(self.affinity, str) and self.has_points and not self.scales_meant:
            self._look_at_scales(data)
        from symnmf.graphs.building import built  # a given graph needs no search

        data = data if hasattr(data, "shape") else numbers(data, self.argument)
        A, compared = built(
            data,
            self.affinity,
            self.n_neighbors,
            clusters or data.shape[0],
            {"n_jobs": self.n_jobs, "device": self.device},
            **self.kernel_options,
        )
        if self.components != "all":  # else the builder has warned of components already
            A = restrict(A, self.components, clusters, "")
        return Similarities(A, A, row_names(data), _connected(A), compared=compared)

    def _look_at_scales(self, data: Any) -> None:
        """Warn where a few columns decide all distances by their scale."""
        if columns := dominant_columns(data):
            said = describe_dominance(data, columns, self.column_names)
            warn(f"{said}; sklearn.preprocessing.StandardScaler brings all columns to one scale.")

    def _of_matrix(self, data: Any, clusters: int) -> Similarities:
        signed = bool(self.objective.get("allow_negative"))
        names: list[Any] | None
        checked = None
        if edge_list(data, self.argument) is not None:
            A, names = graphs.from_graph(data, weight=self.weight, allow_negative=signed)
        elif self.hides:  # the Problem checks what was observed
            A, names = matrix_of(data, self.argument, keep_float32=True), row_names(data)
        else:
            checked = as_storage(data, self.argument, signed=signed, n_jobs=self.n_jobs)
            A, names = in_memory(checked), row_names(data)
            if sp.issparse(A) and not A.data.all():  # zeros that are stored are no edges
                A = affinities(A, self.argument, signed=signed)
        untouched = A
        seen = _seen(A, self.objective) if self.hides else A
        if signed and seen.min() < 0 and not seen.max() > 0:
            raise InputError(
                f"{self.argument} has no edge of positive weight, so nothing holds any two nodes "
                f"together; check the signs of its weights."
            )
        advice = "components='largest'"
        inside = restrict(seen, self.components, clusters or seen.shape[0], advice)
        if inside is not seen:
            kept = degrees(inside) > 0
            A = inside if A is seen else _only(A, kept)
            seen = inside
        if self.order == 3:
            return self._triangles(seen, names)
        found = self._normalised(A, seen, names, clusters)
        unchanged = checked is not None and found.A is untouched
        return replace(found, checked=checked) if unchanged else found

    def _of_hypergraph(self, H: graphs.Hypergraph, clusters: int) -> Similarities:
        """Take the clique graph of the sizes that carry the groups."""
        names = ("mask", "weights", "missing", "allow_negative")
        self._refuse("a hypergraph", **{name: says(self.objective.get(name)) for name in names})
        advice = "components='largest'"
        whole = H.clique_graph()
        inside = restrict(whole, self.components, clusters or len(H.names), advice)
        if inside is not whole:
            kept = degrees(inside) > 0
            first = H.members[np.minimum(H.indptr[:-1], len(H.members) - 1)]
            H = H.kept((H.sizes > 1) & kept[first])
        if self.order == 3:
            from symnmf.tensors.hypergraphs import tensor_of

            T = tensor_of(H, order=3, repeated="observed", n_jobs=self.n_jobs)
            return Similarities(T, inside, H.names, int(np.count_nonzero(T.rows_in_use)))
        if not clusters:
            return replace(self._normalised(inside, inside, H.names, 0), hypergraph=H)
        from symnmf.cluster.hyperedges import choose_sizes, of_sizes, reason

        choice = choose_sizes(H, clusters)
        if (said := reason(choice)) is not None:
            warn(f"{said}; pass {self.argument}.of_sizes(...) to decide it.")
        taken = of_sizes(H, choice.value)
        A = inside if taken is H else taken.clique_graph()
        found = self._normalised(A, A, H.names, clusters)
        connected = int(np.count_nonzero(degrees(inside)))
        # what was expected of the sizes taken is not to be compared with the graph of all sizes
        expected = found.expected if taken is H else None
        return replace(
            found, graph=inside, connected=connected, hypergraph=taken, expected=expected
        )

    def _of_layers(self, data: Sequence[Any], clusters: int) -> Similarities:
        """Normalise each layer as it would be alone, and weigh them against each other."""
        hidden = self.hides or self.order != 2 or not self.precomputed
        if hidden:
            raise InputError(
                f"{self.argument} has layers, which need affinity={PRECOMPUTED!r}, "
                f"order=2 and no missing entries; make a symnmf.Problem of layers "
                f"with masks."
            )
        from symnmf.cluster.layers import choose_layer_weights, same_rows

        single = replace(self, layer_weights=None)
        parts = [single._of_matrix(layer, clusters) for layer in same_rows(data, self.argument)]
        weights: Any = self.layer_weights
        choice = None
        if isinstance(weights, str):
            taus = [part.degree_offset for part in parts]
            choice = choose_layer_weights([part.graph for part in parts], clusters, taus)
            weights = choice.value
        shares = layer_weights(weights, len(parts))
        choice = choice or Choice(tuple(shares.tolist()))
        stored = Layers(
            [part.A for part in parts],
            shares,
            n_jobs=self.n_jobs,
            device=self.device,
            allow_negative=bool(self.objective.get("allow_negative")),
        )
        graph: Any = sum(share * part.graph for share, part in zip(shares, parts, strict=True))
        graph = sp.csr_array(graph) if sp.issparse(graph) else np.asarray(graph)
        return Similarities(stored, graph, parts[0].names, _connected(graph), layers=choice)

    def _of_storage(self, X: SymmetricArray, clusters: int) -> Similarities:
        """Take X where it is: only products with it are made."""
        self._refuse(
            f"a {type(X).__name__}, whose entries stay where they are",
            components=self.components != "all",
            order=self.order != 2,
            normalize=self._asked and not self._automatic and not isinstance(X, LowRank),
            degree_offset=self.degree_offset is not None and not isinstance(X, LowRank),
        )
        if self._automatic and not isinstance(X, LowRank):
            return Similarities(X, X, None, _connected(X))
        return self._normalised(X, X, None, clusters)

    def _of_problem(self, problem: Problem) -> Similarities:
        self._refuse(
            "a Problem, which says all there is to say of it",
            components=self.components != "all",
            order=self.order != 2,
            normalize=self._asked and not self._automatic,
            degree_offset=self.degree_offset is not None,
            affinity=not self.precomputed,
            **{name: says(value) for name, value in self.objective.items()},
        )
        graph = in_memory(problem.X)
        return Similarities(problem, graph, row_names(problem.given), _connected(graph))

    def _refuse(self, what: str, **wrong: bool) -> None:
        for name, refused in wrong.items():
            if refused:
                # normalize is on unless it is switched off
                advice = f"use {name}=False" if name == "normalize" else "leave it out"
                raise InputError(
                    f"{self.argument} is {what}, so {name} cannot be used; {advice}, "
                    f"or pass an array or a sparse matrix."
                )

    @property
    def hides(self) -> bool:
        """Whether some entries were not observed, or count less."""
        return any(self._told(name) for name in ("mask", "weights", "missing"))

    def _triangles(self, A: Any, names: list[Any] | None) -> Similarities:
        if A.min() < 0:
            raise InputError("order=3 counts triangles, whose weights must not be negative.")
        from symnmf import tensors  # only here, so that no other call loads its kernels

        T, _ = tensors.triangles(A, repeated="observed", n_jobs=self.n_jobs)
        return Similarities(T, A, names, int(np.count_nonzero(T.rows_in_use)))

    def _normalised(self, A: Any, seen: Any, names: Any, clusters: int) -> Similarities:
        known = degrees(seen)
        connected = int(np.count_nonzero(known))
        if not connected or not (self._asked or self._can_choose(A, seen, clusters)):
            return Similarities(A, seen, names, connected)
        if not isinstance(seen, SymmetricArray) and seen.min() < 0:
            if not self._asked:  # negative similarities mean what their owner says
                return Similarities(A, seen, names, connected)
            return self._signed(A, seen, names, clusters)
        if self.hides and self.degree_offset is None:  # else it was checked already
            as_symmetric(seen, name=self.argument)
        if self.degree_offset is not None:
            chosen = Scaled(float(self.degree_offset), None)
        elif self._chooses:
            chosen = with_scaling(seen, clusters)
        else:
            chosen = with_degree_offset(seen, clusters)
        tau, scaled, basis = chosen.tau, chosen.graph, chosen.basis
        if tau is None:
            return Similarities(A, seen, names, connected, basis=basis)
        if A is not seen or scaled is None:
            scaled, basis = normalized(A, tau, known), None
        roots = np.sqrt(known + tau * known[known > 0].mean())
        sound = A is seen and not isinstance(A, SymmetricArray)
        return Similarities(
            scaled,
            seen,
            names,
            connected,
            tau,
            roots,
            basis,
            checked=stored(scaled, self.n_jobs) if sound else None,
            expected=chosen.modularity,
        )

    def _signed(self, A: Any, seen: Any, names: Any, clusters: int) -> Similarities:
        """Normalise a graph with negative edges, which count as much as they tell."""
        from symnmf.cluster.signed import (
            choose_negative_weight,
            signed_parts,
            weighted_signs,
        )

        tau = self.degree_offset
        if tau is None:
            tau = with_degree_offset(signed_parts(seen)[0], clusters).tau or 0.0
        weight: Any = self.negative_weight
        if isinstance(weight, str):
            signs = choose_negative_weight(seen, clusters, float(tau), self.n_jobs)
        else:
            signs = Choice(float(weight))
        scaled, known = weighted_signs(A, seen, signs.value, float(tau))
        roots = np.sqrt(known + tau * known[known > 0].mean())
        connected = int(np.count_nonzero(known))
        return Similarities(scaled, seen, names, connected, float(tau), roots, signs=signs)


def _connected(A: Any) -> int:
    return int(np.count_nonzero(degrees(A)))


def _seen(A: Any, objective: Mapping[str, Any]) -> Any:
    """Return A with zeros for what was not observed; A itself where all was."""
    if objective.get("missing") == "nan" and not sp.issparse(A):
        A = np.nan_to_num(A, nan=0.0)
    mask = objective.get("mask")
    shown: Any = objective.get("weights") if mask is None else mask
    if sp.issparse(shown):
        check_indices(shown, "weights" if mask is None else "mask")
    with said_as_input_errors("weights" if mask is None else "mask"):
        shown = shown if sp.issparse(shown) else np.asarray(shown)
    if shown.shape != A.shape:  # there is none, or the Problem says what is wrong
        return A
    seen = shown != 0
    if sp.issparse(A) or sp.issparse(seen):
        return sp.csr_array(sp.csr_array(A).multiply(sp.csr_array(seen)))
    return np.where(seen, A, 0.0)


def _only(A: Any, kept: np.ndarray) -> Any:
    """Return A with zeros in the rows and columns that are left out."""
    if sp.issparse(A):
        inside = sp.diags_array(kept.astype(A.dtype))
        return sp.csr_array(inside @ A @ inside)
    return np.where(np.outer(kept, kept), A, 0)

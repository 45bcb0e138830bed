"""Figures; matplotlib is imported when one is drawn (the extra ``plots``)."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.kinds import AXES, NONE
from symnmf.naming import lookup
from symnmf.run.result import OUTSIDE, Result, membership_shares
from symnmf.storage.indices import check_indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["convergence", "drawing", "memberships", "points", "similarity", "typical_members"]

#: Okabe and Ito's colours, told apart by every common kind of colour vision.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
    "#E69F00",
    "#009E73",  # last, so that few pictures have it beside the red of the second
)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d")

POSITIONS = {
    "iteration": ("iteration", "iteration"),
    "time": ("elapsed", "seconds from the call"),
}
QUANTITIES = {
    "error": r"$\|X - UU^T\|_F^2\,/\,\|X\|_F^2$",
    "objective": "objective",
    "consensus": r"$\|U - V\|_F$",
    "stationarity": r"stationarity, in units of $\|X\|_F\|U\|_F/10$",
    "coupling": r"$\lambda$",
}
#: Nodes of a drawing up to which they can be named.
NAMED_UP_TO = 60
GREY = "#999999"


def new_axes(ax: Axes | None, size: tuple[float, float] = (7.5, 4.5)) -> tuple[Figure, Axes]:
    """Return the given axes with their figure, or new ones."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("symnmf.plots needs matplotlib: pip install 'symnmf[plots]'.") from error
    check("ax", ax, (AXES, NONE))
    if ax is not None:
        return cast("Figure", ax.get_figure()), ax
    # not through pyplot: nothing to close afterwards, and no window where none is wanted
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


@checked()
def convergence(
    table: Mapping[str, Any] | Result,
    x: Literal["iteration", "time"] = "iteration",
    y: str = "error",
    ax: Axes | None = None,
) -> Figure:
    """Draw how fast each solver converges: the median over runs, and a band from min to max.

    Parameters
    ----------
    table : Comparison, Result, mapping of arrays or pandas frame
        With columns ``solver``, ``run``, ``iteration``, ``elapsed`` and ``y``; a single
        :class:`symnmf.Result` is drawn as one run of its solver.
    x : {"iteration", "time"}
        The horizontal axis. "time" counts from the call. A run that ended early keeps its last
        value, so medians are always over all runs.
    y : str
        A column of the history; values that are not positive leave a gap. The scale is logarithmic
        where values differ by more than a factor of ten.
    ax : matplotlib Axes or None
        Where to draw; None for a new figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    column, position_label = lookup(x, POSITIONS, "x")
    quantity_label = lookup(y, QUANTITIES, "y")
    if isinstance(table, Result):
        table = _one_run(table)
    elif not isinstance(table, Mapping) and not hasattr(table, "columns"):
        raise InputError(
            f"table must have columns, which {type(table).__name__} has not; pass what "
            f"symnmf.compare or symnmf.factorize returns."
        )
    missing = [name for name in ("solver", "run", column, y) if name not in table]
    if missing:
        raise InputError(f"table has no column {missing[0]!r}; pass what symnmf.compare returns.")
    solver, run, position, quantity = (
        np.asarray(table[name]) for name in ("solver", "run", column, y)
    )
    if not len(solver):
        raise InputError("table is empty; pass a comparison with at least one finished run.")
    figure, ax = new_axes(ax)
    lines = []
    for index, label in enumerate(dict.fromkeys(solver.tolist())):
        mine = solver == label
        curves = [
            (position[mine & (run == number)], quantity[mine & (run == number)])
            for number in np.unique(run[mine])
        ]
        lines.append(_draw(ax, *_spread(curves), label, index))
    if _wide(quantity):
        ax.set_yscale("log")
    if x == "time" and _wide(position):  # methods differ by orders of magnitude
        ax.set_xscale("log")
    else:
        ax.set_xlim(left=0)
    ax.set_xlabel(position_label)
    ax.set_ylabel(quantity_label)
    ax.grid(True, which="major", color="0.88", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    # beside the axes and in the order of the curves' ends: these curves leave no corner free
    lines.sort(key=lambda line: -_last(line.get_ydata()))
    ax.legend(
        handles=lines,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        handlelength=3.5,
    )
    return figure


def _wide(values: np.ndarray) -> bool:
    """Return whether positive values differ by more than a factor of ten."""
    positive = values[np.isfinite(values) & (values > 0)]
    return bool(len(positive)) and float(positive.max()) > 10.0 * float(positive.min())


def _one_run(result: Result) -> dict[str, np.ndarray]:
    rows = len(result.history)
    history = {column: result.history[column] for column in result.history}
    history["elapsed"] = result.elapsed
    return {"solver": np.full(rows, result.solver), "run": np.zeros(rows, dtype=int), **history}


def _last(values: Any) -> float:
    finite = np.asarray(values)[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else np.inf


def _spread(
    curves: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return common positions and the median, least and greatest value there."""
    where = np.unique(np.concatenate([position for position, _ in curves]))
    values = np.empty((len(curves), len(where)))
    for k, (position, quantity) in enumerate(curves):
        # the latest row at or before each point: what had been reached by then
        latest = np.searchsorted(position, where, side="right") - 1
        values[k] = np.where(latest >= 0, quantity[np.maximum(latest, 0)], np.nan)
    values[values <= 0] = np.nan
    known = np.isfinite(values).any(axis=0)
    where, values = where[known], values[:, known]
    return where, np.nanmedian(values, 0), np.nanmin(values, 0), np.nanmax(values, 0)


def _draw(
    ax: Axes,
    where: np.ndarray,
    middle: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    label: str,
    index: int,
) -> Line2D:
    colour = COLOURS[index % len(COLOURS)]
    # markers at different places for different curves, so that they do not cover each other
    spacing = max(1, len(where) // 8)
    first = (index * spacing // 7) % spacing if spacing > 1 else 0
    (line,) = ax.plot(
        where,
        middle,
        color=colour,
        linestyle=DASHES[index % len(DASHES)],
        marker=MARKERS[index % len(MARKERS)],
        markevery=(first, spacing),
        markersize=5,
        linewidth=1.8,
        label=label,
    )
    if not np.array_equal(low, high):
        ax.fill_between(where, low, high, color=colour, alpha=0.15, linewidth=0)
    return line


@checked(A=("entries",))
def similarity(A: Any, labels: Any, *, max_pixels: int = 600, ax: Axes | None = None) -> Figure:
    """Draw a similarity matrix with its rows and columns reordered by cluster.

    Clusters appear as dark blocks on the diagonal. The shade is the square root of the similarity,
    capped at the 99th percentile, so that weak similarities are visible and a few strong ones do
    not hide the rest.

    Parameters
    ----------
    A : array or scipy sparse, n x n
        The similarities, or the adjacency matrix of a graph. A sparse one stays sparse.
    labels : array-like of shape (n,)
        The cluster of each row.
    max_pixels : int
        A larger matrix is shown as ``max_pixels`` x ``max_pixels`` means of blocks.
    ax : matplotlib Axes or None
        Where to draw; None for a new figure.
    """
    labels = _one_label_per_row(labels, A.shape[0])
    if A.shape[0] != A.shape[1]:
        raise InputError(f"A must be square, got {A.shape[0]} x {A.shape[1]}.")
    if sp.issparse(A):
        check_indices(A, "A")
    degree = np.asarray(A.sum(axis=1)).ravel()
    order = np.lexsort((-degree, labels))  # within a cluster the best connected first
    shades = _block_means(A, order, max_pixels)
    positive = shades[shades > 0]
    top = float(np.percentile(positive, 99)) if positive.size else 1.0
    figure, ax = new_axes(ax, (6.2, 5.4))
    from matplotlib.colors import PowerNorm

    n = len(labels)
    image = ax.imshow(
        shades,
        cmap="Blues",
        norm=PowerNorm(0.5, vmin=0.0, vmax=top),
        extent=(0, n, n, 0),
        interpolation="nearest",
    )
    edges = _mark_clusters(ax, labels, ("x", "y"))
    for edge in edges:
        ax.axhline(edge, color=COLOURS[1], linewidth=0.7)
        ax.axvline(edge, color=COLOURS[1], linewidth=0.7)
    ax.set_xlabel("cluster")
    ax.set_ylabel("cluster")
    beyond = "max" if shades.max() > top else "neither"
    figure.colorbar(image, ax=ax, label="similarity", shrink=0.85, extend=beyond)
    return figure


@checked()
def memberships(
    U: Any, labels: Any = None, *, max_pixels: int = 800, ax: Axes | None = None
) -> Figure:
    """Draw how much of each row of U belongs to each cluster.

    Each column of the picture is a row of U, scaled to sum 1. Rows are sorted by cluster, and from
    the most certain to the most divided within a cluster.

    Parameters
    ----------
    U : array of shape (n, r)
        The factor.
    labels : array-like of shape (n,) or None
        The cluster of each row; None for the column of its largest entry.
    max_pixels : int
        More rows than this are shown as means of neighbouring ones.
    ax : matplotlib Axes or None
        Where to draw; None for a new figure.
    """
    shares = membership_shares(_checked_factor(U))
    n, r = shares.shape
    labels = _one_label_per_row(shares.argmax(axis=1) if labels is None else labels, n)
    order = np.lexsort((-shares.max(axis=1), labels))
    binned = _bins(n, max_pixels) @ shares[order]
    figure, ax = new_axes(ax, (7.5, min(8.0, max(2.2, 0.9 + 0.26 * r))))
    image = ax.imshow(
        binned.T,
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        extent=(0, n, r - 0.5, -0.5),
        interpolation="nearest",
    )
    for edge in _mark_clusters(ax, labels, ("x",)):
        ax.axvline(edge, color=COLOURS[1], linewidth=0.7)
    ax.set_yticks(np.arange(0, r, max(1, -(-r // 20))))
    ax.set_xlabel("rows, by cluster")
    ax.set_ylabel("column of U")
    figure.colorbar(image, ax=ax, label="share of the row", pad=0.02)
    return figure


@checked()
def points(U: Any, labels: Any = None, *, ax: Axes | None = None) -> Figure:
    """Draw the rows of U in two dimensions, coloured by cluster: a RadViz.

    The columns of U stand on a circle, those that share rows beside each other. A row lies at the
    mean of their places, weighted by the roots of its shares, so that small shares can be seen.

    Parameters
    ----------
    U : array of shape (n, r)
        The factor, or the embedding of a fit.
    labels : array-like of shape (n,) or None
        The cluster of each row; None for the column of its largest entry.
    ax : matplotlib Axes or None
        Where to draw; None for a new figure.
    """
    factor = _checked_factor(U)
    labels = _one_label_per_row(factor.argmax(axis=1) if labels is None else labels, len(factor))
    roots = np.sqrt(membership_shares(factor))
    weights = roots / np.maximum(roots.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    r = factor.shape[1]
    angle = np.empty(r)
    angle[_side_by_side(roots.T @ roots)] = 2 * np.pi * np.arange(r) / r
    at = weights @ np.stack([np.cos(angle), np.sin(angle)], axis=1)
    figure, ax = new_axes(ax, (6.2, 5.8))
    _scatter(ax, at, labels, size=max(9.0, min(60.0, 8e3 / len(at))), numbered=True)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    return figure


def _side_by_side(shared: np.ndarray) -> list[int]:
    """Return an order of columns in which each is followed by the one it shares most with."""
    order, left = [0], set(range(1, len(shared)))
    while left:
        order.append(max(sorted(left), key=lambda k: shared[order[-1], k]))
        left.remove(order[-1])
    return order


@checked(A=("entries",))
def drawing(A: Any, labels: Any, names: Sequence[Any], *, ax: Axes | None = None) -> Figure:
    """Draw a small graph, coloured by cluster (needs networkx).

    Parameters
    ----------
    A : scipy sparse, n x n
        The adjacency matrix.
    labels : array-like of shape (n,)
        The cluster of each node, -1 for none.
    names : sequence of length n
        What the nodes are called; shown where they are at most 60.
    ax : matplotlib Axes or None
        Where to draw; None for a new figure.
    """
    import networkx as nx

    labels = _one_label_per_row(labels, A.shape[0])
    graph = nx.from_scipy_sparse_array(sp.csr_array(A))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    figure, ax = new_axes(ax, (6.6, 6.0))
    weights = np.array([weight for _, _, weight in graph.edges(data="weight")])
    widths = 0.3 + 1.2 * weights / weights.max() if weights.size else 0.3
    place = nx.spring_layout(graph, seed=0, iterations=100)
    nx.draw_networkx_edges(graph, place, ax=ax, width=widths, edge_color="#a0a8b0")
    at = np.array([place[node] for node in range(len(labels))])
    _scatter(ax, at, labels, size=70.0, numbered=len(labels) > NAMED_UP_TO)
    if len(labels) <= NAMED_UP_TO:
        for name, point in zip(names, at, strict=True):
            shown = ax.annotate(str(name), point, (0, 6), textcoords="offset points", ha="center")
            shown.set(fontsize=8, parse_math=False)  # a name may hold dollars
    ax.set_axis_off()
    ax.margins(0.06)
    return figure


def _scatter(ax: Axes, at: np.ndarray, labels: np.ndarray, *, size: float, numbered: bool) -> None:
    """Draw points by cluster; those that belong nowhere are grey."""
    from matplotlib import colormaps

    clusters = np.unique(labels).tolist()
    few = len(clusters) <= len(COLOURS)
    for number, cluster in enumerate(clusters):
        mine = at[labels == cluster]
        colour = COLOURS[number % len(COLOURS)] if few else colormaps["tab20"](number % 20)
        colour = GREY if cluster == OUTSIDE else colour
        ax.scatter(
            mine[:, 0],
            mine[:, 1],
            s=size,
            color=colour,
            edgecolors="white",
            linewidths=0.4,
            zorder=2,
        )
        if numbered and cluster != OUTSIDE:
            middle = np.median(mine, axis=0)
            label = ax.annotate(str(cluster), middle, weight="bold", fontsize=12, ha="center")
            label.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1.0})


@checked()
def typical_members(
    images: Any,
    U: Any,
    image_shape: tuple[int, int],
    per_cluster: int = 8,
    *,
    labels: Any = None,
) -> Figure:
    """Draw the most typical images of each cluster, one line per cluster.

    Parameters
    ----------
    images : array of shape (n, height * width)
        One image per row; larger values are drawn lighter.
    U : array of shape (n, r)
        The factor.
    image_shape : (height, width)
        Of one image.
    per_cluster : int
        Images per line; a smaller cluster leaves its line short.
    labels : array-like of shape (n,) or None
        The cluster of each row; None for the column of its largest entry.
    """
    factor = _checked_factor(U)
    with said_as_input_errors():
        height, width = (operator.index(side) for side in image_shape)
        pixels = np.asarray(images, dtype=np.float64)
    if pixels.ndim != 2 or pixels.shape != (factor.shape[0], height * width):
        raise InputError(
            f"images must have {factor.shape[0]} rows of {height} x {width} = {height * width} "
            f"values, got shape {pixels.shape}; pass one image per row of U."
        )
    members = most_typical(factor, per_cluster, labels)
    gap = max(1, height // 8)
    tall, wide = height + gap, width + gap
    sheet = np.full((len(members) * tall - gap, per_cluster * wide - gap), np.nan)
    for line, rows in enumerate(members.values()):
        for place, row in enumerate(rows):
            top, left = line * tall, place * wide
            sheet[top : top + height, left : left + width] = pixels[row].reshape(image_shape)
    inches = 0.62
    figure, ax = new_axes(
        None, (1.0 + inches * per_cluster * width / height, 0.5 + inches * len(members))
    )
    ax.imshow(sheet, cmap="gray", interpolation="nearest")
    ax.set_yticks(
        [line * tall + height / 2 for line in range(len(members))], [str(k) for k in members]
    )
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_ylabel("cluster")
    return figure


def _checked_factor(U: Any) -> np.ndarray:
    with said_as_input_errors():
        factor = np.asarray(U, dtype=np.float64)
    if factor.ndim != 2 or 0 in factor.shape:
        raise InputError(f"U must have rows and columns, got shape {factor.shape}.")
    return factor


def most_typical(U: Any, count: int, labels: Any = None) -> dict[int, np.ndarray]:
    """Return the rows of each cluster with the largest entries in its column of U.

    A label that is no column of U (-1, say, for rows that belong nowhere) has no typical rows
    and is left out.
    """
    factor = np.asarray(U)
    chosen = factor.argmax(axis=1) if labels is None else labels
    labels = _one_label_per_row(chosen, factor.shape[0])
    typical = {}
    for cluster in np.unique(labels).tolist():
        if 0 <= cluster < factor.shape[1]:
            rows = np.flatnonzero(labels == cluster)
            strongest = np.argsort(-factor[rows, cluster], kind="stable")
            typical[cluster] = rows[strongest[:count]]
    return typical


def _one_label_per_row(labels: Any, n: int) -> np.ndarray:
    with said_as_input_errors("labels"):
        labels = np.asarray(labels)
    if labels.shape != (n,):
        raise InputError(f"labels must be {n} cluster numbers, got shape {labels.shape}.")
    with said_as_input_errors("labels"):
        if labels.dtype == object:
            np.unique(labels)  # rows are put in their order
    return labels


def _bins(n: int, most: int) -> sp.csr_array:
    """Return the matrix that takes means of at most ``most`` runs of neighbouring rows."""
    count = min(n, most)
    place = np.arange(n) * count // n
    size = np.bincount(place, minlength=count)
    entries = (1.0 / size[place], (place, np.arange(n)))
    return sp.csr_array(sp.coo_array(entries, shape=(count, n)))


def _block_means(A: Any, order: np.ndarray, most: int) -> np.ndarray:
    means = _bins(len(order), most)[:, np.argsort(order)]
    sparse = sp.issparse(A)
    reduced = means @ (sp.csr_array(A) if sparse else np.asarray(A, dtype=np.float64)) @ means.T
    return reduced.toarray() if sparse else np.asarray(reduced)


def _mark_clusters(ax: Axes, labels: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
    """Name the clusters in the middle of their stretch; return the borders between them."""
    names, sizes = np.unique(labels, return_counts=True)
    ends = np.cumsum(sizes)
    middle, shown, last = ends - sizes / 2, np.zeros(len(names), dtype=bool), -np.inf
    apart = ends[-1] / 28  # names of narrow stretches would lie on each other
    for i in range(len(names)):
        if middle[i] - last >= apart:
            shown[i], last = True, middle[i]
    for name in axes:
        axis = ax.xaxis if name == "x" else ax.yaxis
        axis.set_ticks(middle[shown], [str(label) for label in names[shown]])
        axis.set_tick_params(length=0)
    return ends[:-1]

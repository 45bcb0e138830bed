"""Figures; matplotlib is imported when one is drawn (the extra ``plots``)."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, imported, said_as_input_errors
from symnmf.kinds import AXES, NONE
from symnmf.naming import lookup
from symnmf.run.result import OUTSIDE, Result, membership_shares
from symnmf.storage.indices import check_indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["convergence", "points", "similarity", "typical_members"]

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
#: Names of clusters that fit beside each other along an axis.
NAMES_ON_AN_AXIS = 28
GREY = "#999999"


def new_axes(ax: Axes | None, size: tuple[float, float] = (7.5, 4.5)) -> tuple[Figure, Axes]:
    """Return the given axes with their figure, or new ones."""
    figures = imported("matplotlib.figure", "plots", "symnmf.plots")
    check("ax", ax, (AXES, NONE))
    if ax is not None:
        return cast("Figure", ax.get_figure()), ax
    # not through pyplot: nothing to close afterwards, and no window where none is wanted
    figure = figures.Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


@checked()
def convergence(
    table: Mapping[str, Any] | Result,
    x: Literal["iteration", "time"] = "iteration",
    y: str = "error",
    ax: Axes | None = None,
) -> Figure:
    """Draw how fast each solver converges: a line for each run, in the colour of its solver.

    Parameters
    ----------
    table : Comparison, Result, mapping of arrays or pandas frame
        With columns ``solver``, ``run``, ``iteration``, ``elapsed`` and ``y``; a single
        :class:`symnmf.Result` is drawn as one run of its solver.
    x : {"iteration", "time"}
        The horizontal axis. "time" counts from the call.
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
        one_run = {"solver": [table.solver] * len(table.history), "run": [0] * len(table.history)}
        table = {**table.history, "elapsed": table.elapsed, **one_run}
    elif not hasattr(table, "keys"):
        raise InputError(
            f"table must have columns, which {type(table).__name__} has not; pass what "
            f"symnmf.compare or symnmf.factorize returns."
        )
    missing = [name for name in ("solver", "run", column, y) if name not in table]
    if missing:
        raise InputError(f"table has no column {missing[0]!r}; pass what symnmf.compare returns.")
    solver, run, position = (np.asarray(table[name]) for name in ("solver", "run", column))
    if not len(solver):
        raise InputError("table is empty; pass a comparison with at least one finished run.")
    quantity = np.array(table[y], dtype=np.float64)
    quantity[quantity <= 0] = np.nan
    figure, ax = new_axes(ax)
    for index, name in enumerate(dict.fromkeys(solver.tolist())):
        style = {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)]}
        for k, number in enumerate(np.unique(run[solver == name])):
            mine = (solver == name) & (run == number)
            label = name if k == 0 else None  # one entry of the legend for each solver
            ax.plot(position[mine], quantity[mine], linewidth=1.5, label=label, **style)
    if _wide(quantity):
        ax.set_yscale("log")
    if x == "time" and _wide(position):  # methods differ by orders of magnitude
        ax.set_xscale("log")
    if x == "iteration":
        ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(position_label)
    ax.set_ylabel(quantity_label)
    ax.grid(True, color="0.88", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    if len(np.unique(solver)) > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, handlelength=3.5)
    return figure


def _wide(values: np.ndarray) -> bool:
    """Return whether positive values differ by more than a factor of ten."""
    positive = values[values > 0]
    return bool(len(positive)) and float(positive.max()) > 10.0 * float(positive.min())


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
    names, sizes = np.unique(labels, return_counts=True)
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        ax.axhline(end, color=COLOURS[1], linewidth=0.7)
        ax.axvline(end, color=COLOURS[1], linewidth=0.7)
    shown = sizes * NAMES_ON_AN_AXIS >= n  # names of narrow blocks would lie on each other
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks((ends - sizes / 2)[shown], list(map(str, names[shown])))
        axis.set_tick_params(length=0)
        axis.set_label_text("cluster")
    beyond = "max" if shades.max() > top else "neither"
    figure.colorbar(image, ax=ax, label="similarity", shrink=0.85, extend=beyond)
    return figure


def _block_means(A: Any, order: np.ndarray, most: int) -> np.ndarray:
    """Return the means of A in order over blocks of neighbours, at most ``most`` on a side."""
    n = len(order)
    block = np.arange(n) * min(n, most) // n
    shares = 1.0 / np.bincount(block)[block]
    means = sp.csr_array(sp.coo_array((shares, (block, order)), shape=(block[-1] + 1, n)))
    sparse = sp.issparse(A)
    reduced = means @ (sp.csr_array(A) if sparse else np.asarray(A, dtype=np.float64)) @ means.T
    return reduced.toarray() if sparse else np.asarray(reduced)


@checked()
def points(U: Any, labels: Any = None, *, ax: Axes | None = None) -> Figure:
    """Draw the rows of U in two dimensions, coloured by cluster.

    Two columns of U are the two dimensions. More columns stand on a circle, those that share rows
    beside each other, and a row lies at the mean of their places, weighted by the roots of its
    shares, so that small shares can be seen: a RadViz.

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
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    at = factor if r == 2 else weights @ circle
    figure, ax = new_axes(ax, (6.2, 5.8))
    _scatter(ax, at, labels)
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


def _scatter(ax: Axes, at: np.ndarray, labels: np.ndarray) -> None:
    """Draw points by cluster; those that belong nowhere are grey."""
    from matplotlib import colormaps

    clusters = np.unique(labels).tolist()
    few = len(clusters) <= len(COLOURS)
    size = max(9.0, min(60.0, 8e3 / len(at)))
    for number, cluster in enumerate(clusters):
        mine = at[labels == cluster]
        colour = COLOURS[number % len(COLOURS)] if few else colormaps["tab20"](number % 20)
        colour = GREY if cluster == OUTSIDE else colour
        ax.scatter(mine[:, 0], mine[:, 1], s=size, color=colour, edgecolors="white", linewidths=0.4)
        if cluster != OUTSIDE:
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


def _checked_factor(U: Any) -> np.ndarray:
    with said_as_input_errors():
        factor = np.asarray(U, dtype=np.float64)
    if factor.ndim != 2 or 0 in factor.shape:
        raise InputError(f"U must have rows and columns, got shape {factor.shape}.")
    return factor


def _one_label_per_row(labels: Any, n: int) -> np.ndarray:
    with said_as_input_errors("labels"):
        labels = np.asarray(labels)
    if labels.shape != (n,):
        raise InputError(f"labels must be {n} cluster numbers, got shape {labels.shape}.")
    with said_as_input_errors("labels"):
        if labels.dtype == object:
            np.unique(labels)  # rows are put in their order
    return labels

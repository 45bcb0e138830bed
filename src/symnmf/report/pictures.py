"""The pictures of a page, as figures of HTML."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import plots
from symnmf.run.result import OUTSIDE, History

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Nodes up to which a drawing of the graph can be read, and up to which they can be named.
DRAWN_UP_TO, NAMED_UP_TO = 300, 60
GREY, SIZE = "#999999", 70


def pictures(
    A: Any,
    membership: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    history: History,
    solver: str,
    sheet: Figure | None,
    others: Sequence[tuple[str, Figure | None]] = (),
) -> str:
    """Return the pictures of a clustering; ``sheet`` shows photographs, if there are any.

    ``others`` come first, those that there are.
    """
    shown = [
        *((title, figure) for title, figure in others if figure is not None),
        ("Similarity matrix, by cluster", plots.similarity(A, labels)),
        ("Memberships", plots.memberships(membership, labels)),
    ]
    if sp.issparse(A) and A.shape[0] <= DRAWN_UP_TO and find_spec("networkx"):
        shown.insert(len(shown) - 2, ("The graph, coloured by cluster", drawing(A, labels, names)))
    if len(history):
        shown.append(("Convergence", _convergence(history, solver)))
    figures = [as_figure(title, figure) for title, figure in shown]
    if sheet is not None:
        figures.insert(-1, as_figure("Most typical members of each cluster", sheet, "photographs"))
    return f'<div class="pictures">{"".join(figures)}</div>'


def drawing(A: Any, labels: np.ndarray, names: Sequence[str]) -> Figure:
    """Draw a graph, nodes with many ties close together; those that belong nowhere are grey.

    Few nodes are named; of more, only the clusters are numbered.
    """
    import networkx as nx

    graph = nx.from_scipy_sparse_array(sp.csr_array(A))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    figure, ax = plots.new_axes(None, (6.6, 6.0))
    weights = np.array([weight for _, _, weight in graph.edges(data="weight")])
    widths = 0.3 + 1.2 * weights / weights.max() if weights.size else 0.3
    place = nx.spring_layout(graph, seed=0, iterations=100)
    nx.draw_networkx_edges(graph, place, ax=ax, width=widths, edge_color="#a0a8b0")
    at = np.array([place[node] for node in range(len(labels))])
    colours = _palette(int(labels.max(initial=0)) + 1)
    for cluster in np.unique(labels):
        mine = at[labels == cluster]
        colour = GREY if cluster == OUTSIDE else colours[cluster]
        ax.scatter(
            mine[:, 0],
            mine[:, 1],
            s=SIZE,
            color=colour,
            edgecolors="white",
            linewidths=0.7,
            zorder=2,
        )
        if len(labels) > NAMED_UP_TO and cluster != OUTSIDE:
            ax.annotate(str(cluster), np.median(mine, axis=0), weight="bold", fontsize=13)
    if len(labels) <= NAMED_UP_TO:
        for name, point in zip(names, at, strict=True):
            shown = ax.annotate(name, point, (0, 6), textcoords="offset points", ha="center")
            shown.set(fontsize=8, parse_math=False)  # a name may hold dollars
    ax.set_axis_off()
    ax.margins(0.06)
    return figure


def _palette(count: int) -> Sequence[Any]:
    if count <= len(plots.COLOURS):
        return plots.COLOURS
    from matplotlib import colormaps

    wheel = colormaps["tab20"]
    return [wheel(cluster % 20) for cluster in range(count)]


def _convergence(history: History, solver: str) -> Figure:
    figure, first = plots.new_axes(None, (7.5, 5.2))
    first.remove()
    axes = figure.subplots(2, 1, sharex=True)
    count = len(history)
    table: dict[str, Any] = {
        "solver": np.full(count, solver),
        "run": np.zeros(count, dtype=int),
        **{column: history[column] for column in history},
    }
    for ax, quantity in zip(axes, ("error", "stationarity"), strict=True):
        plots.convergence(table, y=quantity, ax=ax)
        ax.get_legend().remove()  # there is one curve, and the page names its solver
        low, high = ax.get_ylim()
        if high < 10 * low:  # less than a decade: a log scale would have no round numbers
            ax.set_yscale("linear")
    axes[0].set_xlabel("")
    return figure


def _box_unknown_letters(figure: Figure) -> None:
    """Show letters that the font lacks as boxes, as it would, but in silence; tables have them."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        known = get_font(findfont(text.get_fontproperties())).get_charmap()
        shown = "".join(c if ord(c) in known or c in "\n\t" else "\u25a1" for c in text.get_text())
        text.set_text(shown)


def as_figure(title: str, figure: Figure, kind: str = "chart") -> str:
    """Return a matplotlib figure as HTML; a "chart" changes its colours with the page's."""
    buffer = io.BytesIO()
    _box_unknown_letters(figure)
    figure.savefig(buffer, format="png", dpi=130, facecolor="white")
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure class="{kind}"><figcaption>{title}</figcaption>'
        f'<img alt="{title}" src="{source}"></figure>'
    )

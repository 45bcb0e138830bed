"""Charts of what clusters are: their sizes and conductance, and what their columns hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import plots
from symnmf.quality import Quality
from symnmf.report.markup import short
from symnmf.run.result import OUTSIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Columns and clusters up to which a chart of them can be read.
MOST_COLUMNS, MOST_CLUSTERS = 40, 60
#: Standard deviations at which the colours of a profile end.
END = 2.0


def sizes(quality: Quality) -> Figure | None:
    """Draw the rows of each cluster and the part of its weight that leaves it."""
    count = len(quality.sizes)
    if not 1 <= count <= MOST_CLUSTERS:
        return None
    figure, first = plots.new_axes(None, (7.5, 1.6 + 0.22 * count))
    first.remove()
    left, right = figure.subplots(1, 2, sharey=True)
    place = np.arange(count)
    left.barh(place, quality.sizes, color=plots.COLOURS[0])
    left.set_xlabel("rows")
    left.set_ylabel("cluster")
    right.barh(place, np.nan_to_num(quality.conductance), color=plots.COLOURS[1])
    right.set_xlabel("conductance (0: nothing leaves)")
    right.set_xlim(0, 1)
    left.set_yticks(place[:: 1 + count // 25])
    left.invert_yaxis()
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, axis="x", color="0.88", linewidth=0.8)
        ax.set_axisbelow(True)
    return figure


def profile_values(data: Any, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The clusters, and the mean of each column in each, in standard deviations from its mean."""
    X = np.asarray(data, dtype=np.float64)
    clusters = np.unique(labels[labels != OUTSIDE])
    spread = np.nanstd(X, axis=0)
    spread[~(spread > 0)] = 1.0
    means = np.array([np.nanmean(X[labels == cluster], axis=0) for cluster in clusters])
    return clusters, (means - np.nanmean(X, axis=0)) / spread


def profiles(data: Any, labels: np.ndarray, names: Sequence[Any]) -> Figure | None:
    """Draw what makes each cluster: how far its columns are from their mean over all rows.

    None for data of text or of many columns, whose most distinctive ones are listed instead.
    """
    if sp.issparse(data) or not 2 <= len(names) <= MOST_COLUMNS:
        return None
    clusters, values = profile_values(data, labels)
    if not 2 <= len(clusters) <= MOST_CLUSTERS:
        return None
    size = (2.5 + 0.5 * max(len(names), 6), 1.8 + 0.32 * len(clusters))
    figure, ax = plots.new_axes(None, size)
    # from orange over white to blue, which people who see no red or green can tell apart
    drawn = ax.imshow(values, cmap="PuOr", vmin=-END, vmax=END, aspect="auto")
    ax.set_yticks(np.arange(len(clusters)), [str(cluster) for cluster in clusters])
    labels_shown = ax.set_xticks(np.arange(len(names)), [short(name, 18) for name in names])
    for tick in labels_shown:
        tick.label1.set(rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    ax.set_ylabel("cluster")
    if values.size <= 200:
        for (row, column), value in np.ndenumerate(values):
            dark = abs(value) > 0.75 * END
            ax.text(
                column,
                row,
                f"{value:+.1f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark else "black",
            )
    figure.colorbar(drawn, ax=ax, label="standard\ndeviations", extend="both")
    return figure

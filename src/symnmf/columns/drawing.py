"""Pictures of columns over runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.plots import COLOURS, new_axes

if TYPE_CHECKING:
    from symnmf.columns.agreeing import Consensus


def stability(found: Consensus, ax: Any = None) -> Any:
    """Draw each run's cosine to the consensus, by column, and the stability of the column."""
    r = len(found.stability)
    figure, axes = new_axes(ax, (7.5, min(9.0, 1.6 + 0.32 * r)))
    rng = np.random.default_rng(0)
    places = np.arange(r)
    height = rng.uniform(-0.28, 0.28, found.cosines.shape)
    axes.barh(places, found.stability, height=0.75, color="0.88", label="stability of the column")
    axes.scatter(
        found.cosines,
        places + height,
        s=9,
        color=COLOURS[0],
        alpha=0.5,
        linewidths=0,
        label="a run's column beside the consensus",
    )
    axes.set_yticks(places)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.01), xlabel="cosine", ylabel="column of U, the stablest first")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.9 / (1.6 + 0.32 * r)), ncols=2,
                frameon=False)  # fmt: skip
    return figure

"""The picture of a search for the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from symnmf.selection.found import RankSelection

BLUE, GREY = "#1f5fa8", "#999999"


def draw(selection: RankSelection) -> Any:
    """Return a Figure with a panel for each criterion."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    table = selection.table
    panels = [
        name
        for name, column in (
            ("heldout", "heldout_error"),
            ("stability", "ami_excess"),
            ("eigengap", "gap"),
        )
        if column in table
    ]
    figure = Figure(figsize=(4.2 * max(len(panels), 1), 3.4), layout="constrained")
    ranks = table["rank"]
    for place, name in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1)
        if name == "heldout":
            axes.errorbar(
                ranks, table["heldout_error"], table["heldout_spread"], color=BLUE, marker="o", ms=3
            )
            axes.set(title="Error on hidden pairs", ylabel="relative squared error")
            if table["heldout_error"].min() * 20 < table["heldout_error"].max():
                axes.set_yscale("log")
        elif name == "stability":
            shown = ranks > 1
            axes.plot(ranks[shown], table["ami"][shown], color=BLUE, marker="o", ms=3, label="X")
            axes.plot(
                ranks[shown], table["null_ami"][shown], color=GREY, ls="--", label="same degrees"
            )
            axes.set(title="Agreement of runs", ylabel="AMI of labels")
            axes.legend(frameon=False, fontsize=8)
        else:
            axes.bar(ranks, np.nan_to_num(table["gap"]), color=BLUE, width=0.7)
            axes.set(title="Eigengap", ylabel="gap after the eigenvalue")
        chosen = selection.choices[name].rank
        if chosen is not None:
            axes.axvline(chosen, color="#c0392b", lw=1)
        axes.set_xlabel("clusters")
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.suptitle(selection.verdict)
    return figure

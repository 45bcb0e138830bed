"""The picture of a search for the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.objectives.losses import FROBENIUS
from symnmf.selection.choosing_rank import Choice

if TYPE_CHECKING:
    from symnmf.selection.found import RankSelection

BLUE, PALE, GREY, RED = "#1f5fa8", "#c9dbef", "#808080", "#c0392b"

#: The criteria, the column that each is drawn from, and the title of its panel.
PANELS = {
    "heldout": ("heldout_error", "Error on hidden pairs"),
    "stability": ("ami_excess", "Agreement of runs"),
    "eigengap": ("gap", "Eigengap"),
    "eigenvalues": ("null_eigenvalue", "Eigenvalues"),
}


def panels_of(selection: RankSelection) -> list[str]:
    """Return the criteria there is something to draw of."""
    drawn = {*selection.choices, "eigenvalues"}
    return [
        name for name, (column, _) in PANELS.items() if column in selection.table and name in drawn
    ]


def draw(selection: RankSelection) -> Any:
    """Return a Figure with a panel for each criterion, side by side."""
    shown = panels_of(selection)
    figure = _figure(max(len(shown), 1))
    for place, name in enumerate(shown):
        _panel(figure.add_subplot(1, len(shown), place + 1), selection, name)
    figure.suptitle(selection.verdict)
    return figure


def draw_alone(selection: RankSelection, name: str) -> Any:
    """Return a Figure with the panel of one criterion."""
    figure = _figure(1)
    _panel(figure.add_subplot(), selection, name)
    return figure


def _figure(width: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "the picture of a search needs matplotlib: pip install 'symnmf[plots]'."
        ) from error
    return Figure(figsize=(4.2 * width, 3.4), layout="constrained")


def _panel(axes: Any, selection: RankSelection, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    table = selection.table
    choice: Any = selection.choices.get(name, Choice(selection.recommendation, 1, 1))
    ranks = table["rank"]
    if name == "heldout":
        axes.errorbar(
            ranks, table["heldout_error"], table["heldout_spread"], color=BLUE, marker="o", ms=3
        )
        squares = selection.settings.get("loss", FROBENIUS) == FROBENIUS
        axes.set(ylabel="relative squared error" if squares else "part of the deviance left")
        if table["heldout_error"].min() * 20 < table["heldout_error"].max():
            axes.set_yscale("log")
    elif name == "stability":
        shown = ranks > 1
        scores, null = table["ami"][shown], table["null_ami"][shown]
        axes.plot(ranks[shown], scores, color=BLUE, marker="o", ms=3, label="X")
        axes.plot(ranks[shown], null, color=GREY, ls="--", label="same degrees, no clusters")
        axes.fill_between(
            ranks[shown], null, scores, where=scores > null, color=PALE, label="excess: judged"
        )
        axes.set(ylabel="AMI of labels")
    elif name == "eigenvalues":
        axes.plot(ranks, table["eigenvalue"], color=BLUE, marker="o", ms=3)
        axes.plot(ranks, table["null_eigenvalue"], color=GREY, ls="--", label="without clusters")
        axes.set(ylabel="eigenvalue")
    else:
        axes.bar(ranks, np.nan_to_num(table["gap"]), color=BLUE, width=0.7)
        axes.set(ylabel="gap after the eigenvalue")
    if choice.rank is not None:
        said = choice.rank if name == "eigenvalues" else choice
        axes.axvline(choice.rank, color=RED, lw=1, label=f"chosen: {said}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=9, edgecolor="none", facecolor="white", framealpha=0.85)
    axes.set(title=PANELS[name][1], xlabel="clusters")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))

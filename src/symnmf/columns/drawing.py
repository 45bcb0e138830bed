"""Pictures of columns over runs and through time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.plots import COLOURS, new_axes

if TYPE_CHECKING:
    from symnmf.columns.agreeing import Consensus
    from symnmf.columns.following import Following

#: Width of a bar of the river, in steps of time.
BAR = 0.12

#: Space between the columns of a bar, as a part of all rows.
GAP = 0.02


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


def river(found: Following, ax: Any = None) -> Any:
    """Draw how many rows each column has at each time, and who goes where."""
    flows = found.flows
    times, r = len(found.labels), flows.shape[1] - 1
    n = found.labels.shape[1]
    counts = np.array([_sizes(labels, r) for labels in found.labels])
    shown = r + 1 if counts[:, r].any() else r
    colours = [*(COLOURS[k % len(COLOURS)] for k in range(r)), "0.75"]
    figure, axes = new_axes(ax, (max(6.0, 1.6 * times + 1.2), 4.6))
    gap = GAP * n
    tops = np.zeros((times, shown))
    for t in range(times):
        tops[t] = np.concatenate([[0], np.cumsum(counts[t, : shown - 1] + gap)])
    for t in range(times - 1):
        _flows(axes, t, flows[t][:shown, :shown], tops, colours)
    for t in range(times):
        for k in range(shown):
            if counts[t, k]:
                axes.bar(t, counts[t, k], BAR, tops[t, k], color=colours[k], linewidth=0)
                if t in (0, times - 1):
                    text = f"column {k}: {counts[t, k]}" if k < r else f"{counts[t, k]} in none"
                    side, align = (1, "left") if t else (-1, "right")
                    middle = tops[t, k] + counts[t, k] / 2
                    axes.text(t + side * 0.8 * BAR, middle, text, ha=align, va="center", fontsize=8)
    axes.set_xticks(range(times), [str(name) for name in found.names])
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.set_xlim(-0.5, times - 0.5)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    return figure


def _sizes(labels: np.ndarray, r: int) -> np.ndarray:
    return np.bincount(np.where(labels < 0, r, labels), minlength=r + 1)


def _flows(axes: Any, t: int, flows: np.ndarray, tops: np.ndarray, colours: list[str]) -> None:
    """Draw the rivers from one time to the next; those that stay are pale."""
    ease = np.linspace(0.0, 1.0, 40)
    across = t + BAR / 2 + (1 - BAR) * ease
    bend = ease * ease * (3 - 2 * ease)
    leaving, arriving = tops[t].copy(), tops[t + 1].copy()
    for a in range(len(flows)):
        for b in range(len(flows)):
            count = flows[a, b]
            if count:
                upper = leaving[a] + (arriving[b] - leaving[a]) * bend
                alpha = 0.25 if a == b else 0.7
                axes.fill_between(
                    across, upper, upper + count, color=colours[a], alpha=alpha, linewidth=0
                )
            leaving[a] += count
            arriving[b] += count

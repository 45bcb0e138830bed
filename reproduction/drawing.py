"""Panels of curves with one legend, in the colours and line styles of :mod:`symnmf.plots`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from reproduction.runs import LABELS, Runs
from reproduction.tasks import Instance
from symnmf.plots import convergence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ERROR = r"$E^k = \|X - UU^T\|_F^2\,/\,\|X\|_F^2$"


def need_matplotlib() -> None:
    """Raise an error that says what to install, if there is no matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("reproduction needs matplotlib: pip install 'symnmf[plots]'.")


MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d")


def panels(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of axes, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * columns, 3.0 * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.ravel())


def curves(
    ax: Axes,
    runs: Runs,
    problem: Instance,
    methods: Sequence[str],
    column: str = "error",
    *,
    x: Literal["iteration", "time"] = "iteration",
    title: str = "",
    ylabel: str = ERROR,
) -> None:
    """Draw a column of all runs on one problem: a line for each seed."""
    parts: dict[str, list[Any]] = {name: [] for name in ("solver", "run", "iteration", "error")}
    parts["elapsed"] = []
    for method in methods:
        for curve in runs:
            if curve.task.method != method or curve.task.problem != problem:
                continue
            rows = curve.thinned()
            parts["solver"].append(np.full(len(rows), LABELS[method]))
            parts["run"].append(np.full(len(rows), curve.task.seed))
            parts["iteration"].append(curve["iteration"][rows])
            parts["elapsed"].append(curve["seconds"][rows])
            parts["error"].append(curve[column][rows])
    if not parts["solver"]:
        ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", color="0.4")
        ax.set_title(title)
        return
    table = {name: np.concatenate(values) for name, values in parts.items()}
    convergence(table, x=x, ax=ax)
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    ax.set_title(title, fontsize=11)
    ax.set_ylabel(ylabel)


def shared_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, with every name once."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=max(1, min(len(handles), int(figure.get_figwidth() / 1.6))),
        frameon=False,
        handlelength=3.2,
    )

"""The paper's question, where it was asked: is any positive lambda enough?

On X = [[0, 1], [1, 0]] every lambda below 1/2 has critical points with U != V, and no minimum of
the split problem has U = V (docs/theory/coupling.md). This runs the paper's three algorithms from
random starts for lambda from 0.05 to 0.55 and says how many of them end with U = V.

    python benchmarks/sharp_coupling.py --out docs/theory
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import symnmf

X = np.array([[0.0, 1.0], [1.0, 0.0]])
METHODS = {"symanls": "SymANLS", "symhals": "SymHALS", "a-symhals": "A-SymHALS"}
LAMBDAS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.55])  # at 1/2 runs crawl
Ends = dict[tuple[str, float], list[tuple[float, float, bool]]]
REST = 1e-9  # an entry that moves less than this in 50 iterations is at rest
APART = 1e-3  # a distance ||U - V|| / ||V|| above this counts as U != V


def end(method: str, coupling: float, start: np.ndarray) -> tuple[float, float, bool]:
    """Return ||U - V||_F, g and whether the run came to rest, from U_0 = V_0 = ``start``."""
    previous: list[Any] = [np.inf]

    def at_rest(now: symnmf.Snapshot) -> bool:
        # not the stopping rule of the library, which asks for U = V
        here = np.concatenate([now.U, now.V])
        still = bool(np.max(np.abs(here - previous[0])) < REST)
        previous[0] = here
        return still

    result = symnmf.factorize(
        X,
        2,
        init=start,
        solver=method,
        coupling=coupling,
        tol=0,
        max_iter=20_000,
        record_every=50,
        callback=at_rest,
        n_jobs=1,
    )
    U, V = result.U, result.V
    apart = float(np.linalg.norm(U - V))
    g = 0.5 * float(np.sum((X - U @ V.T) ** 2)) + 0.5 * coupling * apart**2
    return apart, g, result.status == "stopped"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=None, help="folder for coupling.png")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ends = {
        (method, float(coupling)): [
            end(method, float(coupling), np.random.default_rng(seed).random((2, 2)))
            for seed in range(arguments.runs)
        ]
        for method in METHODS
        for coupling in LAMBDAS
    }
    print(f"ends with U != V, of {arguments.runs} (not at rest after 20 000 iterations)\n")
    print(
        "| lambda | " + " | ".join(METHODS.values()) + " | distance there, 2 sqrt(1 - 2 lambda) |"
    )
    print("| --- |" + " --- |" * (len(METHODS) + 1))
    for coupling in LAMBDAS:
        cells, distances = [], []
        for method in METHODS:
            runs = ends[method, coupling]
            apart = [distance for distance, _, _ in runs if distance > APART]
            moving = sum(not rested for _, _, rested in runs)
            cells.append(f"{len(apart)}" + (f" ({moving})" if moving else ""))
            distances += apart
        told = f"{np.min(distances):.4f} to {np.max(distances):.4f}" if distances else "none apart"
        expected = f"{2 * np.sqrt(max(1 - 2 * coupling, 0)):.4f}"
        print(f"| {coupling:.2f} | " + " | ".join(cells) + f" | {told}; {expected} |")
    near_the_best_start()
    if arguments.out is not None:
        draw(ends, arguments.runs).savefig(arguments.out / "coupling.png", dpi=130)


def near_the_best_start() -> None:
    """Say where runs end whose start is close to the best, so that Theorem 3' asks for 1/2."""
    starts = [0.5 + 1e-3 * np.random.default_rng(seed).random((2, 2)) for seed in range(10)]
    bound = max(0.5 * float(np.linalg.norm(X - U0 @ U0.T)) for U0 in starts)
    print(f"\n10 starts near the best one, where Theorem 3' asks for at most {bound:.7f}:")
    for coupling in (0.49, 0.51):
        apart = [sum(end(m, coupling, U0)[0] > APART for U0 in starts) for m in METHODS]
        print(f"lambda = {coupling}: {apart} of 10 end with U != V")


def draw(ends: Ends, runs: int) -> Any:
    from matplotlib.figure import Figure

    from symnmf.plots import COLOURS, MARKERS

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.011
    for index, (method, label) in enumerate(METHODS.items()):
        counts = [sum(d > APART for d, _, _ in ends[method, c]) for c in LAMBDAS]
        left.bar(LAMBDAS + (index - 1) * width, counts, width, color=COLOURS[index], label=label)
        at = np.repeat(LAMBDAS, runs) + (index - 1) * 0.006
        distances = [d for c in LAMBDAS for d, _, _ in ends[method, c]]
        right.plot(
            at,
            distances,
            MARKERS[index],
            color=COLOURS[index],
            markersize=4,
            alpha=0.5,
            label=label,
        )
    grid = np.linspace(0.03, 0.5, 200)
    right.plot(grid, 2 * np.sqrt(1 - 2 * grid), color="0.3", linewidth=1, label="2√(1 − 2λ)")
    for ax in (left, right):
        ax.axvline(0.5, color="0.5", linewidth=1, linestyle=":")
        ax.set_xlabel("λ")
        ax.spines[["top", "right"]].set_visible(False)
    left.set_ylabel(f"runs of {runs} that end with U ≠ V")
    right.set_ylabel("‖U − V‖ at the end")
    left.set_xlim(0, 0.7)
    left.legend(frameon=False, fontsize=9, loc="center right")
    right.legend(frameon=False, fontsize=9, loc="upper right")
    return figure


if __name__ == "__main__":
    main()

"""The rate of HALS-Newton on three data sets, and what docs/theory/hals-newton.md says of it.

For each run: the iteration from which the zeros are those of the limit, the extreme eigenvalues of
the Hessian on the free entries there, the factors of Theorems 5.9 and 5.10, and the factor seen.

    python benchmarks/rates.py --out docs/theory
    python benchmarks/rates.py --cost    # what setting entries to zero costs
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

import symnmf
from symnmf import datasets, graphs
from symnmf.objectives import Frobenius
from symnmf.solvers import HalsNewton
from symnmf.solvers.hals_newton import LEAST_WEIGHT, REFRESH, _settle
from symnmf.steps.gauss_newton import DAMPING_SHARE
from symnmf.storage import as_symmetric

FLAT = 1e-9  # share of the largest eigenvalue under which one counts as zero
FLOOR = 1e-13  # of f, under which a difference from its limit is rounding
STRICT = 1e-9  # a multiplier under this share of the gradient's unit counts as zero
GRAPHS = (("football", "football, r = 12"), ("polbooks", "polbooks, r = 3"), ("orl", "ORL, r = 40"))


@dataclass
class Run:
    name: str
    gaps: np.ndarray  # (f(U_k) - f_*) / f(0)
    identified: int  # from where on every entry with a positive multiplier is zero
    free: int
    flat: int
    condition: float
    degenerate: int  # zeros of the limit without a multiplier
    predicted: float
    gauss_newton: bool

    @property
    def seen(self) -> float:
        """Mean factor of f - f_* per iteration after identification, down to rounding.

        Of Gauss-Newton steps the last, since their damping falls from step to step.
        """
        last = int(np.flatnonzero(self.gaps > FLOOR / 10)[-1])
        first = last - 1 if self.gauss_newton else min(self.identified, max(last - 5, 0))
        return float((self.gaps[last] / self.gaps[first]) ** (1.0 / max(last - first, 1)))


def problems() -> Iterator[tuple[str, np.ndarray, int, int]]:
    X, _ = datasets.synthetic(100, 5, 0.1, random_state=0)
    yield "synthetic, n = 100, r = 5", X, 5, 60
    for name, title in GRAPHS:
        data = datasets.load(name)
        X = graphs.normalize(data.data) if name != "orl" else graphs.self_tuning(data.data)
        yield title, sp.csr_array(X).toarray(), data.n_clusters, 600


def hessian(X: np.ndarray, U: np.ndarray, damping: float | None = None) -> np.ndarray:
    """Return the Hessian of f on the entries U > 0, or with a damping that of the model."""
    rows, columns = np.nonzero(U > 0)
    gram, same = U.T @ U, rows[:, None] == rows[None, :]
    across = U[rows][:, columns]
    H = same * gram[np.ix_(columns, columns)] + across * across.T
    if damping is not None:
        return 2.0 * (H + damping * np.eye(len(rows)))
    alike = columns[:, None] == columns[None, :]
    return 2.0 * (H + alike * (U @ U.T - X)[np.ix_(rows, rows)])


def gap(X: np.ndarray, U: np.ndarray, limit: np.ndarray) -> float:
    """Return f(U) - f(limit) without cancellation."""
    E = U - limit
    change = E @ U.T + limit @ E.T
    return float(-np.vdot(X - limit @ limit.T, change) + 0.5 * np.vdot(change, change))


def follow(name: str, X: np.ndarray, rank: int, iterations: int, seed: int) -> Run:
    points: list[np.ndarray] = []
    settings: dict[str, Any] = {"random_state": seed, "tol": 0.0, "n_jobs": 1}
    symnmf.factorize(
        X, rank, max_iter=iterations, callback=lambda now: points.append(now.U.copy()), **settings
    )
    limit = symnmf.factorize(X, rank, max_iter=4 * iterations, record_every=10**6, **settings).U
    scale = 0.5 * float(np.sum(X * X))
    gaps = np.array([gap(X, U, limit) for U in points]) / scale
    level = float(np.sum(limit**2)) / rank
    h = limit @ (limit.T @ limit) - X @ limit
    limit = np.where(limit > STRICT * np.sqrt(level), limit, 0.0)
    held = (limit == 0) & (h > STRICT * level**1.5)
    different = [
        np.count_nonzero((U[held | (limit > 0)] > 0) != (limit[held | (limit > 0)] > 0))
        for U in points
    ]
    wrong = np.flatnonzero(different)
    H = hessian(X, limit)
    values = np.linalg.eigvalsh(H)
    positive = values[values > FLAT * values[-1]]
    root = np.sqrt(positive[-1] / positive[0])
    predicted = ((root - 1) / (root + 1)) ** 2
    error = float(np.sum((X - limit @ limit.T) ** 2)) / (2 * scale)
    if error < 0.05:
        B = hessian(X, limit, DAMPING_SHARE * LEAST_WEIGHT * level)
        basis = np.linalg.eigh(H)[1][:, values > FLAT * values[-1]]
        beta = scipy.linalg.eigh(basis.T @ H @ basis, basis.T @ B @ basis, eigvals_only=True)
        predicted = float(np.max(np.abs(1 - beta)) ** 2)
    return Run(
        name,
        gaps,
        int(wrong[-1]) + 1 if len(wrong) else 0,
        int(np.count_nonzero(limit)),
        int(np.sum(values <= FLAT * values[-1])),
        float(positive[-1] / positive[0]),
        int(np.count_nonzero((limit == 0) & ~held)),
        predicted,
        error < 0.05,
    )


def cost(X: np.ndarray, rank: int) -> tuple[float, float]:
    """Return processor seconds of an iteration and of setting entries to zero, medians of 150."""
    f, solver = Frobenius(as_symmetric(X, n_jobs=1)), HalsNewton()
    state = solver.start(f, np.random.default_rng(0).random((len(X), rank)))
    spent = np.zeros((210, 2))
    for row in spent:
        state.iteration += state.iteration > 0 and state.iteration % REFRESH == 0
        begin = time.process_time()
        solver.step(f, state)
        middle = time.process_time()
        state.iteration += 1
        _settle(f, state)
        row[:] = middle - begin, time.process_time() - middle
    step, settling = np.median(spent[60:], axis=0)
    return float(step), float(settling)


def draw(runs: list[Run]) -> Any:
    from matplotlib.figure import Figure

    from symnmf.plots import COLOURS

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for ax, run in zip(figure.subplots(1, len(runs)), runs, strict=True):
        k = np.arange(len(run.gaps))
        shown = run.gaps > FLOOR / 10
        ax.semilogy(k[shown], run.gaps[shown], color=COLOURS[0], label="f − f*, over f(0)")
        last = int(np.flatnonzero(shown)[-1])
        start = last - 1 if run.gauss_newton else run.identified
        if start < len(run.gaps) and run.gaps[start] > FLOOR:
            line = run.gaps[start] * run.predicted ** (k[start:] - start)
            kept = line > FLOOR / 10
            name = "Theorem 5.10" if run.gauss_newton else "conjugate gradients"
            ax.semilogy(k[start:][kept], line[kept], "--", color="0.4", linewidth=1, label=name)
        if run.identified <= last:
            ax.axvline(
                run.identified,
                color=COLOURS[1],
                linewidth=1,
                linestyle=":",
                label="zeros as in the limit",
            )
        ax.set_xlim(0, 1.05 * max(last, run.identified))
        ax.set_title(run.name, fontsize=11)
        ax.set_xlabel("iteration")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder for rates.png")
    parser.add_argument("--cost", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.cost:
        for name, X, rank, _ in problems():
            step, settling = cost(X, rank)
            share = 100 * settling / (REFRESH * step)
            print(
                f"{name}: an iteration {1e6 * step:.0f} us, setting to zero "
                f"{1e6 * settling:.0f} us every {REFRESH}, {share:.2f} % of the time"
            )
        return
    runs = []
    print("| data | free entries | flat directions | ω/ν | zeros (degenerate) | zeros found at | "
          "factor predicted | factor seen |")  # fmt: skip
    print("| --- " * 8 + "|")
    for name, X, rank, iterations in problems():
        run = follow(name, X, rank, iterations, arguments.seed)
        runs.append(run)
        print(
            f"| {name} | {run.free} | {run.flat} | {run.condition:.3g} | "
            f"{X.shape[0] * rank - run.free} ({run.degenerate}) | {run.identified} | "
            f"{run.predicted:.3g} | {run.seen:.3g} |",
            flush=True,
        )
    if arguments.out is not None:
        draw(runs).savefig(arguments.out / "rates.png", dpi=130)


if __name__ == "__main__":
    main()

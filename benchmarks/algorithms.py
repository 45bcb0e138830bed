"""Every method on the paper's synthetic data: E after so many iterations and so many seconds.

X = |G||G|^T + sigma |N| with n = 300, r = 20 and U_0 uniform(0, 1), the same for all methods. A run
lasts 20 seconds, or until the residual is rounding. Seconds are CPU seconds of one thread, so other
work on the machine does not count. Runs that are in the out folder already are not done again.

    python benchmarks/algorithms.py --jobs 2              # all of it, about 20 minutes
    python benchmarks/algorithms.py --only cd pgd --seeds 1 --max-time 2 --table /tmp/table.md
"""

from __future__ import annotations

import argparse
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import symnmf
from symnmf.archives import read_archive, write_archive
from symnmf.datasets import synthetic
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.solvers import SOLVERS

N, RANK, NOISES = 300, 20, (0.0, 0.1)
ITERATIONS, SECONDS = (100, 1000, 5000), (1.0, 5.0, 20.0)
PAPERS_OWN = ("symanls", "symhals", "a-symhals")  # these take the paper's adaptive lambda
FORMAT = "symnmf-benchmark-algorithms-1"
HOME = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    noise: float
    seed: int
    max_time: float

    def path(self, folder: Path) -> Path:
        return folder / f"{self.method}-{self.noise:g}-{self.seed}-{self.max_time:g}.npz"

    def run(self, folder: Path) -> None:
        """Run and write the history to the folder."""
        X, _ = synthetic(N, RANK, self.noise, random_state=self.seed)
        settings = Settings.of(
            self.method,
            "adaptive" if self.method in PAPERS_OWN else None,
            tol=1e-13,
            max_iter=10_000_000,
            max_time=self.max_time,
            record_every=10,
            clock=time.thread_time,
        )
        run = partial(solve, Problem.of(X, n_jobs=1), RANK, init="random", random_state=self.seed)
        # loads the compiled code, so that no clock counts it
        run(settings=settings.within(tol=0.0, max_iter=1))
        result = run(settings=settings)
        if result.status == "stopped":
            raise KeyboardInterrupt
        history = result.history
        write_archive(
            self.path(folder),
            {
                "format": np.array(FORMAT),
                "iteration": history["iteration"],
                "seconds": history["seconds"],
                "error": history["error"],
            },
        )


def reached(
    histories: list[dict[str, np.ndarray]], column: str, limit: float, max_time: float
) -> str:
    """Return the median E at a limit; marked where a run had ended before, a dash where unknown."""
    values, early = [], False
    for history in histories:
        where = history[column]
        if where[-1] < limit:
            if column == "iteration" and history["seconds"][-1] >= max_time:
                return "-"
            early = True
        values.append(history["error"][np.searchsorted(where, limit, side="right") - 1])
    return f"{np.median(values):.2e}" + ("\\*" if early else "")


def table(jobs: list[Job], folder: Path, max_time: float) -> str:
    """Return the table of what is in the folder, as Markdown."""
    seconds = [t for t in SECONDS if t <= max_time]
    seeds = len({job.seed for job in jobs})
    lines = [
        "# All methods on the paper's synthetic data",
        "",
        f"E = ||X - U U^T||^2 / ||X||^2, median over {seeds} seed(s); n = {N}, r = {RANK}, the "
        f"same start uniform(0, 1) for all. A run ends after {max_time:g} CPU seconds of one "
        f"thread in the solver, or when its residual is rounding. A dash: the time was over "
        f"before; a star: the run had ended. An iteration of lbfgs is 50 of SciPy's. Written by "
        f"`python benchmarks/algorithms.py --jobs 2` (symnmf {symnmf.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}).",
    ]
    heads = [
        "method",
        *(f"{k} iterations" for k in ITERATIONS),
        *(f"{t:g} s" for t in seconds),
        "ms per iteration",
    ]
    for noise in NOISES:
        lines += ["", f"## sigma = {noise:g}", ""]
        lines += ["| " + " | ".join(heads) + " |", "| --- " + "| ---: " * (len(heads) - 1) + "|"]
        for method in dict.fromkeys(job.method for job in jobs):
            paths = [j.path(folder) for j in jobs if j.method == method and j.noise == noise]
            found = [read_archive(path, FORMAT) for path in paths if path.exists()]
            if len(found) < len(paths):
                continue
            pace = np.median([1e3 * h["seconds"][-1] / h["iteration"][-1] for h in found])
            cells = [
                method,
                *(reached(found, "iteration", k, max_time) for k in ITERATIONS),
                *(reached(found, "seconds", t, max_time) for t in seconds),
                f"{pace:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare all methods on synthetic data.")
    parser.add_argument(
        "--only", nargs="+", choices=SOLVERS, default=[name for name in SOLVERS if name != "auto"]
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-time", type=float, default=max(SECONDS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--out", type=Path, default=HOME / "out" / "algorithms")
    parser.add_argument("--table", type=Path, default=HOME / "out" / "algorithms.md")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(method, noise, seed, args.max_time)
        for noise in NOISES
        for seed in range(args.seeds)
        for method in args.only
    ]
    missing = [job for job in jobs if not job.path(args.out).exists()]
    print(f"{len(jobs)} runs, {len(jobs) - len(missing)} of them done already", flush=True)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(job.run, args.out): job for job in missing}
        for future in as_completed(running):
            future.result()
            print("done:", running[future], flush=True)
    args.table.write_text(table(jobs, args.out, args.max_time))
    print("table:", args.table)


if __name__ == "__main__":
    main()

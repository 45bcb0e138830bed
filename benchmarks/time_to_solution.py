"""Seconds to within (1 + eps) of the best known E, for several methods from the same starts.

Two clocks: "seconds" is time in the solver without evaluation, "wall" is everything from the
call on. Peers are scikit-learn's coordinate descent NMF, whose W is made symmetric afterwards,
and SciPy's L-BFGS-B on the same objective. Timings are honest only while nothing else runs; on a
busy machine ``--cpu --jobs 1`` counts the CPU time of one thread instead.

    python benchmarks/time_to_solution.py --quick                  # about a minute
    python benchmarks/time_to_solution.py --full --out results/    # everything
    python benchmarks/time_to_solution.py --only coil20 --seeds 5 --cpu --jobs 1
"""

from __future__ import annotations

import argparse
import csv
import itertools
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf import datasets, graphs
from symnmf.metrics import clustering_accuracy
from symnmf.parallel import available_cores, one_blas_thread
from symnmf.run.problem import Problem as Checked
from symnmf.run.result import Snapshot
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.run.start import random_start, scaled_random_start
from symnmf.storage import SymmetricMatrix, as_symmetric
from symnmf.storage.symmetric import as_float32

tick = time.perf_counter

EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: An exact fit has no best E to come near to: reaching this counts.
EXACT = 1e-8


class Row(NamedTuple):
    """One point of one run."""

    seconds: float
    wall: float
    products: int
    error: float
    stationarity: float


@dataclass
class Trace:
    """One run of one method."""

    problem: str
    method: str
    seed: int
    rows: list[Row] = field(default_factory=list)
    accuracy: float = float("nan")

    def reach(self, level: float, column: str = "seconds") -> float:
        """Return the seconds (or products) to an error of ``level``, infinite if never."""
        hits = (float(getattr(row, column)) for row in self.rows if row.error <= level)
        return next(hits, float("inf"))

    @property
    def end(self) -> float:
        """The lowest error of the run."""
        return min(row.error for row in self.rows)


class Problem(NamedTuple):
    """A matrix to factorize."""

    rank: int
    make: Callable[[], tuple[Any, np.ndarray | None]]
    seconds: float


def _synthetic(n: int, r: int, noise: float) -> Problem:
    return Problem(
        r,
        lambda: (datasets.synthetic(n, r, noise, random_state=0)[0], None),
        4.0 if n <= 300 else 45.0,
    )


def _points(load: Callable[[], datasets.Dataset], rank: int) -> Problem:
    def make() -> tuple[Any, np.ndarray | None]:
        found = load()
        return graphs.build(found.data), found.target

    return Problem(rank, make, 3.0)


def _network(
    load: Callable[[], datasets.Dataset], rank: int, seconds: float, *, normalize: bool
) -> Problem:
    def make() -> tuple[Any, np.ndarray | None]:
        found = load()
        return graphs.normalize(found.data) if normalize else found.data, found.target

    return Problem(rank, make, seconds)


PROBLEMS = {
    "synthetic-300": _synthetic(300, 20, 0.1),
    "synthetic-300-exact": _synthetic(300, 20, 0.0),
    "synthetic-2000": _synthetic(2000, 50, 0.1),
    "orl": _points(partial(datasets.load, "orl"), 40),
    "coil20": _points(partial(datasets.load, "coil20"), 20),
    "mnist": _points(partial(datasets.load, "mnist_train3147"), 10),
    "tdt2": _points(partial(datasets.load, "TDT2_first3147"), 2),
    "email-eu-core": _network(partial(datasets.load, "email_eu_core"), 42, 3.0, normalize=True),
    "com-dblp": _network(partial(datasets.load, "com_dblp"), 50, 30.0, normalize=False),
}


def count_products(X: SymmetricMatrix) -> Callable[[], int]:
    """Make ``X`` count its products with factors; return what reads the count."""
    counter = itertools.count()
    done = [0]

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            done[0] = next(counter) + 1
            return method(*args, **options)

        return call

    for matrix in filter(None, (X, as_float32(X))):
        setattr(matrix, "matmul", counted(matrix.matmul))  # noqa: B010
    return lambda: done[0]


def run_own(
    X: Any, jobs: int | None, start: np.ndarray, trace: Trace, limit: float, **settings: Any
) -> np.ndarray:
    """Run one of this library's solvers."""
    problem = Checked.of(X, n_jobs=jobs)
    limits = Settings.of(**settings, tol=1e-9, max_iter=10**6, max_time=limit, clock=tick)
    run = partial(solve, problem, start.shape[1], init=start)
    run(settings=limits.within(tol=0.0, max_iter=12))  # compile
    products = count_products(problem.objective.storage)
    clock = time.perf_counter()

    def record(now: Snapshot) -> None:
        wall = time.perf_counter() - clock
        trace.rows.append(Row(now.seconds, wall, products(), now.error, now.stationarity))

    return run(settings=limits, callback=record).U


def run_lbfgsb(
    X: Any, jobs: int | None, start: np.ndarray, trace: Trace, limit: float
) -> np.ndarray:
    """Run SciPy's L-BFGS-B; its own values of f are the errors, so evaluation is free."""
    from scipy.optimize import Bounds, minimize

    matrix = as_symmetric(X, n_jobs=jobs)
    sqnorm, shape = matrix.sqnorm, start.shape
    clock = tick()
    calls, latest = [0], [0.0]

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        U = x.reshape(shape)
        product, gram = matrix.matmul(U), U.T @ U
        calls[0] += 1
        latest[0] = sqnorm - 2.0 * np.vdot(product, U) + np.vdot(gram, gram)
        return 0.5 * latest[0], 2.0 * (U @ gram - product).ravel()

    def record(x: np.ndarray) -> None:
        seconds = tick() - clock
        trace.rows.append(Row(seconds, seconds, calls[0], latest[0] / sqnorm, np.nan))
        if seconds > limit:
            raise StopIteration

    with one_blas_thread():
        found = minimize(
            value,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0.0, np.inf),
            callback=record,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0},
        )
    return found.x.reshape(shape)


def run_sklearn(
    X: Any, jobs: int | None, start: np.ndarray, trace: Trace, limit: float
) -> np.ndarray:
    """Run scikit-learn's NMF afresh for each number of iterations, since it shows no progress."""
    from sklearn.decomposition import non_negative_factorization

    matrix = as_symmetric(X, n_jobs=jobs)
    data = sp.csr_matrix(X) if sp.issparse(X) else X
    iterations, spent, U = 1, 0.0, start
    while spent < limit:
        clock = tick()
        W, H, _ = non_negative_factorization(
            data,
            start.copy(),
            np.ascontiguousarray(start.T),
            n_components=start.shape[1],
            init="custom",
            tol=0.0,
            max_iter=iterations,
        )
        seconds = tick() - clock
        spent += seconds
        tall, wide = np.linalg.norm(W, axis=0), np.linalg.norm(H, axis=1)
        U = W * np.sqrt(wide / np.where(tall > 0.0, tall, 1.0))
        product, gram = matrix.matmul(U), U.T @ U
        scale = np.vdot(product, U) / max(float(np.vdot(gram, gram)), 1e-300)
        error = float(1.0 - scale * np.vdot(product, U) / matrix.sqnorm)
        trace.rows.append(Row(seconds, seconds, 2 * iterations, error, np.nan))
        U = np.sqrt(scale) * U
        iterations *= 2
    return U


Runner = Callable[..., np.ndarray]
METHODS: dict[str, tuple[Runner, dict[str, Any], bool]] = {
    # name: what runs it, its settings, whether it gets the paper's unscaled start
    "a-symhals (paper)": (run_own, {"solver": "a-symhals", "coupling": "adaptive"}, True),
    "a-symhals (rising)": (run_own, {"solver": "a-symhals", "coupling": "rising"}, False),
    "hals-newton": (run_own, {"solver": "hals-newton"}, False),
    "sklearn NMF": (run_sklearn, {}, False),
    "L-BFGS-B": (run_lbfgsb, {}, False),
}


def run(
    name: str,
    seeds: Iterable[int],
    methods: Iterable[str],
    limit: float | None = None,
    jobs: int | None = None,
) -> list[Trace]:
    """Run the methods on one problem; the starts are the same draws, scaled but for the paper."""
    problem = PROBLEMS[name]
    traces = []
    X, labels = problem.make()
    for seed in seeds:
        matrix = as_symmetric(X, n_jobs=jobs)
        scaled = scaled_random_start(matrix, problem.rank, seed)
        raw = random_start(matrix, problem.rank, seed)
        for method in methods:
            runner, settings, unscaled = METHODS[method]
            trace = Trace(name, method, seed)
            start = raw if unscaled else scaled
            U = runner(X, jobs, start, trace, limit or problem.seconds, **settings)
            if labels is not None:
                trace.accuracy = clustering_accuracy(labels, U.argmax(axis=1))
            traces.append(trace)
            print(f"{name:20} {method:20} seed {seed}: E {trace.end:.8g}", flush=True)
    return traces


def _seconds(values: list[float]) -> str:
    middle = float(np.median(values))
    return f"{middle:.3g}" if np.isfinite(middle) else "-"


def table(traces: list[Trace]) -> str:
    """Write median seconds to each level as Markdown, per problem and method."""
    head = ["problem", "method", "median E", "accuracy"]
    head += [f"best + {epsilon:g}" for epsilon in EPSILONS]
    head += ["wall, best + 0.001", "own + 1e-5", "products to own + 1e-5"]
    lines = [head, ["---"] * len(head)]
    for problem in dict.fromkeys(trace.problem for trace in traces):
        here = [trace for trace in traces if trace.problem == problem]
        best = max(EXACT, min(trace.end for trace in here))
        for method in dict.fromkeys(trace.method for trace in here):
            own = [trace for trace in here if trace.method == method]
            ends = [(trace, max(EXACT, trace.end) * (1.0 + 1e-5)) for trace in own]
            lines.append(
                [
                    problem,
                    method,
                    f"{np.median([trace.end for trace in own]):.6g}",
                    f"{np.median([trace.accuracy for trace in own]):.3f}",
                    *(_seconds([t.reach(best * (1.0 + eps)) for t in own]) for eps in EPSILONS),
                    _seconds([trace.reach(best * 1.001, "wall") for trace in own]),
                    _seconds([trace.reach(level) for trace, level in ends]),
                    f"{np.median([trace.reach(level, 'products') for trace, level in ends]):.0f}",
                ]
            )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plot(traces: list[Trace], path: Path) -> None:
    """Draw the median time to (1 + eps) best E over the starts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from symnmf.plots import COLOURS

    problems = list(dict.fromkeys(trace.problem for trace in traces))
    colours = dict(zip(METHODS, COLOURS, strict=False))  # one colour per method in every panel
    columns = min(3, len(problems))
    rows = -(-len(problems) // columns)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(4.0 * columns, 3.3 * rows), squeeze=False, sharex=True
    )
    for axis in grid.flat[len(problems) :]:
        axis.remove()
    lines = {}
    for axis, problem in zip(grid.flat, problems, strict=False):
        here = [trace for trace in traces if trace.problem == problem]
        best = max(EXACT, min(trace.end for trace in here))
        for method in dict.fromkeys(trace.method for trace in here):
            own = [trace for trace in here if trace.method == method]
            times = np.array([[t.reach(best * (1 + eps)) for eps in EPSILONS] for t in own])
            # a start that does not get there counts as never: the median may still exist
            median = np.median(np.where(np.isfinite(times), times, np.inf), axis=0)
            shown = np.isfinite(median)
            if shown.any():
                (lines[method],) = axis.plot(
                    np.array(EPSILONS)[shown],
                    median[shown],
                    marker="o",
                    color=colours[method],
                )
        axis.set(xscale="log", yscale="log", title=problem, xlim=(2e-1, 5e-6))
    for axis in grid[:, 0]:
        axis.set_ylabel("seconds in the solver")
    for axis in grid[-1]:
        axis.set_xlabel("distance to the best E (relative)")
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=len(lines))
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=110)


def heading(seeds: int) -> str:
    """Say what was run, on what and with which versions."""
    packages = ("symnmf", "numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return (
        "# Time to solution\n\n"
        "Median seconds to within a fraction of the best E found on each problem, and (last "
        "columns) to within 1e-5 of each run's own end; where X has an exact fit, to E = 1e-8.\n"
        f"`python {' '.join(sys.argv)}`: {seeds} starts, the same for all methods; Python "
        f"{platform.python_version()}, {versions}; {_processor()}, {available_cores()} cores."
    )


def _processor() -> str:
    """Return the processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def write_csv(traces: list[Trace], path: Path) -> None:
    """Write every recorded point."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "method", "seed", *Row._fields])
        for trace in traces:
            writer.writerows([trace.problem, trace.method, trace.seed, *row] for row in trace.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two small problems, two starts")
    parser.add_argument("--full", action="store_true", help="all problems, all methods")
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, metavar="PROBLEM")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="starts; 5 unless told")
    parser.add_argument("--first", type=int, default=0, help="seed of the first start")
    parser.add_argument("--max-time", type=float, help="seconds per run; the problem's unless told")
    parser.add_argument("--jobs", type=int, help="threads; all cores unless told")
    parser.add_argument("--cpu", action="store_true", help="count CPU time; takes --jobs 1")
    parser.add_argument("--out", type=Path, help="folder for table.md, points.csv and plot.png")
    options = parser.parse_args()
    names = options.only or (list(PROBLEMS) if options.full else ["synthetic-300", "orl"])
    seeds = options.seeds or (2 if options.quick else 5)
    limit = options.max_time or (2.0 if options.quick else None)
    if options.cpu:
        if options.jobs != 1:
            parser.error("--cpu counts one thread: add --jobs 1")
        global tick
        tick = time.thread_time
    warnings.simplefilter("ignore")
    starts = range(options.first, options.first + seeds)
    traces = [t for name in names for t in run(name, starts, options.methods, limit, options.jobs)]
    text = f"{heading(seeds)}\n\n{table(traces)}\n"
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "table.md").write_text(text)
        write_csv(traces, options.out / "points.csv")
        plot(traces, options.out / "plot.png")


if __name__ == "__main__":
    main()

"""How often ``symnmf.select_rank`` finds a number that is known, and what a scan costs.

python benchmarks/rank.py planted         planted factors, block models, and nothing to find
python benchmarks/rank.py real            graphs and images, beside their number of classes
python benchmarks/rank.py cost            the scan 2..20 against five starts at 20
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.run.loop import solve
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.spectral import SpectralStarts


def mirrored(A: np.ndarray) -> np.ndarray:
    return np.triu(A) + np.triu(A, 1).T


def planted(n: int, r: int, sigma: float, seed: int) -> np.ndarray:
    return symnmf.datasets.synthetic(n, r, sigma, random_state=seed)[0]


def block_model(n: int, blocks: int, seed: int, degree: float = 20.0) -> sp.csr_array:
    """A degree-corrected block model: power-law degrees, edges mostly within blocks."""
    rng = np.random.default_rng(seed)
    block, weight = rng.integers(blocks, size=n), rng.pareto(2.5, n) + 0.5
    within = np.ones((blocks, blocks)) + 3.5 * blocks * np.eye(blocks)
    chance = np.outer(weight, weight) * within[np.ix_(block, block)]
    chance *= degree * n / chance.sum()
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


def random_graph(n: int, seed: int) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.05, 1)
    return sp.csr_array((upper + upper.T).astype(float))


def random_matrix(n: int, seed: int) -> np.ndarray:
    return mirrored(np.random.default_rng(seed).random((n, n)))


def repeat(name: str, make: Callable[[int], Any], ranks: range, seeds: int, **options: Any) -> None:
    found: Counter[Any] = Counter()
    began = time.process_time()
    for seed in range(seeds):
        selection = symnmf.select_rank(make(seed), ranks, random_state=seed, n_init=1, **options)
        found[selection.recommendation or "none"] += 1
    each = (time.process_time() - began) / seeds
    counts = ", ".join(f"{rank}: {count}" for rank, count in found.most_common())
    print(f"| {name} | {ranks[0]}..{ranks[-1]} | {seeds} | {counts} | {each:.1f} |", flush=True)


def known(args: argparse.Namespace) -> None:
    print("| what | ranks | seeds | recommended: how often | CPU s each |")
    print("| --- | --- | --- | --- | --- |")
    options = {"criteria": tuple(args.criteria)}
    seeds = args.seeds
    for r, most in ((3, 8), (8, 13), (20, 25)) if "factors" in args.what else ():
        for sigma in args.sigma:
            name = f"planted {r}, sigma = {sigma}, n = 200"
            repeat(name, partial(planted, 200, r, sigma), range(2, most + 1), seeds, **options)
    for blocks in (5, 10) if "blocks" in args.what else ():
        name = f"block model, {blocks} blocks, n = 600"
        repeat(name, partial(block_model, 600, blocks), range(2, 15), seeds, **options)
    if "nothing" not in args.what:
        return
    graph, noise = partial(random_graph, 400), partial(random_matrix, 150)
    repeat("Erdos-Renyi, n = 400", graph, range(2, 9), seeds, **options)
    repeat("uniform random matrix, n = 150", noise, range(2, 9), seeds, **options)


def graph_of(name: str) -> tuple[Any, int]:
    data = symnmf.datasets.load(name)
    assert data.target is not None
    classes = len(np.unique(data.target))
    if data.kind == "graph":
        return data.data, classes
    return symnmf.graphs.build(data.data, "self-tuning"), classes


def real(args: argparse.Namespace) -> None:
    print("| data | n | classes | recommended | held-out | stability | eigengap | Bethe | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in args.names:
        X, classes = graph_of(name)
        ranks = range(2, max(21, int(1.5 * classes) + 1))
        if classes > 25:
            ranks = range(2, int(1.5 * classes) + 1, 2)
        began = time.process_time()
        found = symnmf.select_rank(X, ranks, random_state=0)
        spent = time.process_time() - began
        told = [str(found.choices[one]) for one in ("heldout", "stability", "eigengap")]
        bethe = "" if found.bethe_hessian is None else found.bethe_hessian
        print(
            f"| {name} | {X.shape[0]} | {classes} | {found.recommendation or 'no clear number'} | "
            f"{' | '.join(told)} | {bethe} | {spent:.0f} |",
            flush=True,
        )


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU and wall seconds."""
    spent, began = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - spent, time.perf_counter() - began


def five_from_eigenvectors(X: Any, settings: Settings, jobs: int) -> None:
    """Run the five starts of the race, one after another and all to their end."""
    problem, starts = Problem.of(X, n_jobs=jobs).for_rank(20), SpectralStarts()
    for number in range(5):
        rng = np.random.default_rng(number)
        solve(problem, 20, settings, init=starts(number), random_state=rng)


def cost(args: argparse.Namespace) -> None:
    print(
        "| graph | threads | five random starts at 20, s: CPU, wall | five from eigenvectors |",
        end="",
    )
    print(" these as a race | scan 2..20 | scan / random | scan / eigenvectors |")
    print("| --- " * 8 + "|")
    settings = Settings.of(tol=1e-4)
    for name in args.names:
        X, _ = graph_of(name)
        for jobs in args.jobs:
            plan = Plan(20, settings, init="scaled-random", random_state=0, n_jobs=jobs)
            race = Plan(20, settings, random_state=0, n_jobs=jobs)
            calls: list[Callable[[], Any]] = [
                partial(plan.best, X),
                partial(five_from_eigenvectors, X, settings, jobs),
                partial(race.best, X),
                partial(symnmf.select_rank, X, range(2, 21), random_state=0, n_jobs=jobs),
            ]
            for call in calls:  # compile
                call()
            rounds = np.array([[timed(call) for call in calls] for _ in range(args.rounds)])
            seconds = " | ".join(f"{c:.2f}, {w:.2f}" for c, w in np.median(rounds, axis=0))
            ratios = np.median(rounds[:, [3]] / rounds[:, :2], axis=0)
            told = " | ".join(f"{c:.1f}, {w:.1f}" for c, w in ratios)
            print(f"| {name} | {jobs} | {seconds} | {told} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("planted")
    one.add_argument("--seeds", type=int, default=20)
    one.add_argument("--what", nargs="+", default=["factors", "blocks", "nothing"])
    one.add_argument("--sigma", type=float, nargs="+", default=[0.1])
    one.add_argument("--criteria", nargs="+", default=["heldout", "stability", "eigengap"])
    one.set_defaults(run=known)
    two = commands.add_parser("real")
    two.add_argument(
        "names", nargs="*", default=["football", "digits", "orl", "coil20", "email_eu_core"]
    )
    two.set_defaults(run=real)
    three = commands.add_parser("cost")
    three.add_argument("names", nargs="*", default=["orl", "digits"])
    three.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    three.add_argument("--rounds", type=int, default=5)
    three.set_defaults(run=cost)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()

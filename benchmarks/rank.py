"""How often ``symnmf.select_rank`` finds a number that is known, and what a scan costs.

python benchmarks/rank.py planted         planted factors, block models, and nothing to find
python benchmarks/rank.py real            graphs and images, beside their number of classes
python benchmarks/rank.py cost            the scan 2..20 against five starts at 20
python benchmarks/rank.py losses          hidden pairs judged by squares and by likelihoods
python benchmarks/rank.py auto            n_clusters="auto" on planted groups, shapes and nothing
python benchmarks/rank.py auto-cost       what "auto" costs, in fits with the number it finds
python benchmarks/rank.py verdict         how often data without clusters are called chance
python benchmarks/rank.py verdict-cost    what a verdict costs beside its fit
python benchmarks/rank.py weak            how many rows are right, by what leaves their clusters
python benchmarks/rank.py tree            ARI of symnmf.hierarchy beside Leiden
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from planted import equal_groups, lfr, points, preferential, same_degrees
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


def losses(args: argparse.Namespace) -> None:
    print("| what | true | seeds | " + " | ".join(args.losses) + " |")
    print("| --- | --- | --- |" + " --- |" * len(args.losses))
    cases: list[tuple[str, int, range, Callable[[int], Any]]] = [
        ("block model q = 2, SNR 1.6", 2, range(2, 7), partial(equal_groups, 2, 1.6)),
        ("block model q = 3, SNR 1.6", 3, range(2, 8), partial(equal_groups, 3, 1.6)),
        ("degree-corrected, 5 blocks", 5, range(2, 11), partial(block_model, 600, 5)),
        ("Erdos-Renyi", 1, range(2, 7), partial(equal_groups, 1, 0.0)),
        ("configuration model", 1, range(2, 7), same_degrees),
        ("LFR, mu = 0.3", 0, range(2, 41, 2), partial(lfr, 0.3)),
        *(
            (name, graph_of(name)[1], range(2, 21), lambda seed, name=name: graph_of(name)[0])
            for name in ("dolphins", "polbooks", "football")
        ),
    ]
    for name, true, ranks, make in cases:
        if args.only and not any(part in name for part in args.only):
            continue
        drawn = [make(seed) for seed in range(args.seeds)]
        told = []
        for loss in args.losses:
            found: Counter[Any] = Counter()
            for seed, graph in enumerate(drawn):
                X, number = graph if isinstance(graph, tuple) else (graph, 0)
                options = {"criteria": ("heldout",), "loss": loss, "n_init": 1}
                rank = symnmf.select_rank(X, ranks, random_state=seed, **options).recommendation
                found["none" if rank is None else rank - number] += 1
            told.append(", ".join(f"{k}: {count}" for k, count in found.most_common()))
        print(
            f"| {name} | {true or '0 is right'} | {args.seeds} | {' | '.join(told)} |", flush=True
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


# n_clusters="auto", the verdict and the tree ----------------------------------------------------


def number_of(data: Any, seed: int) -> int:
    """Return what "auto" finds in a graph or in points."""
    if sp.issparse(data):
        selection = symnmf.communities(data, "auto", random_state=seed, n_init=1).rank_selection
        assert selection is not None
        return int(selection.recommendation or 0)
    return int(symnmf.SymNMF("auto", random_state=seed, n_init=1).fit(data).n_clusters_)


def automatic(args: argparse.Namespace) -> None:
    print("| data | seeds | right | found: how often |")
    print("| --- | --- | --- | --- |")
    cases: list[tuple[str, Callable[[int], Any], range]] = [
        *(
            (f"block model q = {q}, SNR {snr}", partial(equal_groups, q, snr), range(q, q + 1))
            for q, snr in ((2, 1.5), (3, 1.6), (3, 1.3))
        ),
        ("Erdos-Renyi", partial(equal_groups, 1, 0.0), range(1, 2)),
        ("configuration model", same_degrees, range(1, 2)),
        ("Barabasi-Albert", preferential, range(1, 2)),
        *(
            (name, partial(points, name), right)
            for name, right in (
                ("uniform 2", range(1, 2)),
                ("uniform 6", range(1, 2)),
                ("blobs", range(3, 4)),
                ("random blobs 5 0.4", range(5, 6)),
                ("random blobs 5 0.6", range(5, 6)),
                ("random blobs 5 1.0", range(5, 6)),
                ("moons", range(2, 3)),
                ("circles 0.5", range(2, 3)),
                ("circles 0.8", range(2, 3)),
                ("wine", range(3, 4)),
                ("iris", range(2, 4)),
                ("digits", range(9, 15)),
            )
        ),
        *(
            (name, lambda seed, name=name: sp.csr_array(graph_of(name)[0]), right)
            for name, right in (("karate", range(2, 3)), ("football", range(10, 14)))
        ),
    ]
    for name, make, right in cases:
        if args.only and not any(part in name for part in args.only):
            continue
        found = [number_of(make(seed), seed) for seed in range(args.seeds)]
        tell(name, found, [number in right for number in found])
    for mixing in (0.1, 0.3):
        if args.only and "LFR" not in args.only:
            continue
        drawn = [lfr(mixing, seed) for seed in range(args.seeds)]
        found = [number_of(graph, seed) for seed, (graph, _) in enumerate(drawn)]
        near = [
            abs(one - true) <= max(1, 0.05 * true)
            for one, (_, true) in zip(found, drawn, strict=True)
        ]
        off = [one - true for one, (_, true) in zip(found, drawn, strict=True)]
        tell(f"LFR, mu = {mixing} (found less true)", off, near)


def tell(name: str, found: list[int], right: list[bool]) -> None:
    counts = ", ".join(f"{number}: {count}" for number, count in Counter(found).most_common())
    print(f"| {name} | {len(found)} | {sum(right)} | {counts} |", flush=True)


def automatic_cost(args: argparse.Namespace) -> None:
    print('| data | clusters | CPU s of "auto" beyond a fit | of a fit | ratio |')
    print("| --- | --- | --- | --- | --- |")
    for name in args.names:
        given = name in ("wine", "iris", "digits")
        data = points(name, 0) if given else sp.csr_array(symnmf.datasets.load(name).data)

        def fit(count: Any, data: Any = data, given: bool = given) -> Any:
            if given:
                return symnmf.SymNMF(count, random_state=0).fit(data)
            return symnmf.communities(data, count, random_state=0)

        model = fit("auto")
        clusters = int(model.n_clusters_) if given else int(model.rank_selection.recommendation)
        fit(clusters)
        both = np.array(
            [[timed(partial(fit, count))[0] for count in ("auto", clusters)] for _ in range(5)]
        )
        beyond, alone = np.median(both[:, 0] - both[:, 1]), np.median(both[:, 1])
        print(f"| {name} | {clusters} | {beyond:.2f} | {alone:.3f} | {beyond / alone:.1f} |")


def verdicts(args: argparse.Namespace) -> None:
    print("| data | clusters | draws | verdicts |")
    print("| --- | --- | --- | --- |")
    kinds: dict[str, Callable[[int], Any]] = {
        "Erdos-Renyi": lambda seed: equal_groups(1, 0.0, seed, args.n),
        "Barabasi-Albert": partial(preferential, n=args.n),
        "configuration": partial(same_degrees, n=args.n),
        "uniform 2": partial(points, "uniform 2"),
        "uniform 6": partial(points, "uniform 6"),
    }
    cases = [(name, k, make) for name, make in kinds.items() for k in args.clusters]
    for groups in (2, 3):
        cases.append(
            (f"block model q = {groups}, SNR 1.6", groups, partial(equal_groups, groups, 1.6))
        )
    for name, k, make in cases:
        if args.only and not any(part in name for part in args.only):
            continue
        words: Counter[str] = Counter()
        for seed in range(args.seeds):
            data = make(seed)
            if sp.issparse(data):
                quality = symnmf.communities(data, k, random_state=seed, n_init=args.starts).quality
            else:
                model = symnmf.SymNMF(k, random_state=seed, n_init=args.starts)
                quality = model.fit(data).quality_
            words[quality.verdict.word if quality.verdict else "none"] += 1
        told = ", ".join(f"{word}: {count}" for word, count in words.most_common())
        print(f"| {name} | {k} | {args.seeds} | {told} |", flush=True)


def verdict_cost(args: argparse.Namespace) -> None:
    from symnmf.cluster import pipeline as pipeline_module

    pipeline: Any = pipeline_module

    print("| data | clusters | CPU ms of the fit | of the verdict | ratio | draws | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    judged = pipeline.verdict_of
    cases: list[tuple[str, Any, int]] = [
        *((name, *graph_of(name)) for name in ("karate", "football", "email_eu_core", "cora")),
        *((name, points(name, 0), k) for name, k in (("wine", 3), ("iris", 3), ("digits", 10))),
        ("block model q = 3, SNR 1.6", equal_groups(3, 1.6, 0), 3),
        ("Erdos-Renyi, n = 600", equal_groups(1, 0.0, 0, 600), 10),
        ("uniform 6", points("uniform 6", 0), 10),
    ]
    for name, data, k in cases:

        def fit(data: Any = data, k: int = k) -> Any:
            if sp.issparse(data):
                return symnmf.communities(data, k, random_state=0).quality.verdict
            return symnmf.SymNMF(k, random_state=0).fit(data).quality_.verdict

        found = fit()
        seconds = []
        for _ in range(args.rounds):
            both = []
            for call in (judged, lambda *_, **__: None):
                pipeline.verdict_of = call
                both.append(timed(fit)[0])
            seconds.append(both)
        pipeline.verdict_of = judged
        whole, alone = 1e3 * np.min(seconds, axis=0)
        print(
            f"| {name} | {k} | {alone:.0f} | {whole - alone:.0f} | {whole / alone - 1:.1f} | "
            f"{found.draws} | {found.word} |",
            flush=True,
        )


def weak(args: argparse.Namespace) -> None:
    from symnmf.metrics import clustering_accuracy

    print("| groups | mean degree | SNR | leaves, as a part of chance | rows right |")
    print("| --- | --- | --- | --- | --- |")
    for groups, degree, n in ((3, 12.0, 800), (5, 12.0, 800), (10, 20.0, 1000), (3, 40.0, 800)):
        for snr in (1.4, 1.6, 1.8, 2.3):
            parts, right = [], []
            for seed in range(args.seeds):
                A = equal_groups(groups, snr, seed, n, degree)
                found = symnmf.communities(A, groups, random_state=seed)
                told = found.quality.verdict
                assert told is not None
                parts.append(told.conductance / told.null_conductance)
                right.append(clustering_accuracy(np.arange(n) % groups, found.labels))
            print(
                f"| {groups} | {degree:.0f} | {snr} | {np.mean(parts):.2f} | "
                f"{np.mean(right):.2f} |",
                flush=True,
            )


def tree(args: argparse.Namespace) -> None:
    import igraph

    import quality
    from symnmf.metrics import adjusted_rand

    print("| data | classes | leaves | ARI | ARI of Leiden | CPU s |")
    print("| --- | --- | --- | --- | --- | --- |")
    scores = []
    for name in args.names or list(quality.DATA):
        given = quality.problem(name, args.work)
        known = given.target >= 0
        began = time.process_time()
        found = symnmf.hierarchy(given.A, random_state=0)
        spent = time.process_time() - began
        upper = sp.coo_array(sp.triu(given.A, 1))
        graph = igraph.Graph(n=given.A.shape[0], edges=np.column_stack(upper.coords).tolist())
        graph.es["weight"] = upper.data
        leiden = np.array(
            graph.community_leiden("modularity", weights="weight", n_iterations=-1).membership
        )
        pair = [
            float(adjusted_rand(given.target[known], labels[known]))
            for labels in (found.labels, leiden)
        ]
        scores.append(pair)
        print(
            f"| {name} | {given.k} | {found.n_clusters} | {pair[0]:.3f} | {pair[1]:.3f} | "
            f"{spent:.1f} |",
            flush=True,
        )
    mean = np.mean(scores, axis=0)
    print(f"| mean | | | {mean[0]:.3f} | {mean[1]:.3f} | |")


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
    likely = commands.add_parser("losses")
    likely.add_argument("--seeds", type=int, default=5)
    likely.add_argument("--losses", nargs="+", default=["frobenius", "poisson"])
    likely.add_argument("--only", nargs="*", default=[])
    likely.set_defaults(run=losses)
    four = commands.add_parser("auto")
    four.add_argument("--seeds", type=int, default=20)
    four.add_argument("--only", nargs="*", default=[])
    four.set_defaults(run=automatic)
    five = commands.add_parser("auto-cost")
    names = ["wine", "iris", "digits", "karate", "football", "email_eu_core", "ego_facebook"]
    five.add_argument("names", nargs="*", default=names)
    five.set_defaults(run=automatic_cost)
    six = commands.add_parser("verdict")
    six.add_argument("--seeds", type=int, default=200)
    six.add_argument("--n", type=int, default=600)
    six.add_argument("--starts", type=int, default=5)
    six.add_argument("--clusters", type=int, nargs="+", default=[2, 10, 30])
    six.add_argument("--only", nargs="*", default=[])
    six.set_defaults(run=verdicts)
    six = commands.add_parser("verdict-cost")
    six.add_argument("--rounds", type=int, default=5)
    six.set_defaults(run=verdict_cost)
    six = commands.add_parser("weak")
    six.add_argument("--seeds", type=int, default=4)
    six.set_defaults(run=weak)
    seven = commands.add_parser("tree")
    seven.add_argument("names", nargs="*")
    seven.add_argument("--work", type=Path, default=Path("out") / "quality")
    seven.set_defaults(run=tree)
    warnings.simplefilter("ignore")  # what is measured is what they say
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()

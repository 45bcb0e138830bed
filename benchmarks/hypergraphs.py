"""Hypergraphs: labels, held-out hyperedges against Hy-MMSBM, planted groups, a million hyperedges.

    python benchmarks/hypergraphs.py school        # ARI and AUC; HGX's Hy-MMSBM if installed
    python benchmarks/hypergraphs.py planted       # only hyperedges of three and more have groups
    python benchmarks/hypergraphs.py million       # 1 000 000 hyperedges of sizes 2 to 10

``school`` reads hyper_high_school.npz from $SYMNMF_DATA. With ``--file F --labels L`` it reads one
hyperedge per line and one label per line (numbers from 1), as in the collection of Chodrow, Veldt
and Benson (github.com/PhilChodrow/HypergraphModularity). ``pip install hypergraphx`` for Hy-MMSBM.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import symnmf
from symnmf.graphs import Hypergraph

LARGEST = 25  # nodes of a hyperedge that is read from a file


def high_school() -> tuple[Hypergraph, np.ndarray]:
    """Contacts of 327 pupils, and their classes."""
    stored = np.load(Path(os.environ["SYMNMF_DATA"]) / "hyper_high_school.npz")
    names = list(range(int(stored["n"])))
    return Hypergraph.from_arrays(stored["members"], stored["indptr"], names=names), stored["y"]


def from_files(hyperedges: str, labels: str) -> tuple[Hypergraph, np.ndarray]:
    """Distinct hyperedges of 2 to 25 nodes, and labels."""
    truth = np.loadtxt(labels, dtype=int)
    with open(hyperedges) as lines:
        sets = {tuple(sorted({int(v) - 1 for v in line.split(",")})) for line in lines}
    kept = sorted(e for e in sets if 2 <= len(e) <= LARGEST)
    return Hypergraph(kept, nodes=range(len(truth))), truth


def factors(H: Hypergraph, k: int, seed: int) -> dict[str, np.ndarray]:
    """U of each method in the units of rates."""
    plain = symnmf.communities(H, k, random_state=seed)
    degrees = H.clique_graph().sum(axis=1)
    offset = plain.degree_offset * degrees[degrees > 0].mean()
    start = plain.result.U * np.sqrt(degrees + offset)[:, None]
    found = {"clique graph": start}
    for name, prior in (("poisson", 0.05), ("poisson, no prior", 0.0)):
        problem = H.problem(prior=prior)
        found[name] = symnmf.factorize(problem, k, init=start, tol=1e-4, max_iter=500).U
    opponent = hy_mmsbm(H, k, seed)
    return found if opponent is None else {**found, "Hy-MMSBM (HGX)": opponent}


def hy_mmsbm(H: Hypergraph, k: int, seed: int, starts: int = 5) -> np.ndarray | None:
    """HGX's own code with a diagonal affinity, the best likelihood of some starts."""
    try:
        import hypergraphx
        from hypergraphx.communities.hy_mmsbm.model import HyMMSBM
    except ImportError:
        return None
    n = len(H.names)
    G = hypergraphx.Hypergraph()
    G.add_nodes(list(range(n)))
    G.add_edges([tuple(map(int, e)) for e in H])
    best: tuple[float, Any] | None = None
    for start in range(starts):
        model = HyMMSBM(K=k, assortative=True, seed=100 * seed + start)
        model.fit(G, n_iter=200)
        value = float(model.log_likelihood(G))
        if best is None or value > best[0]:
            best = value, model.u * np.sqrt(np.diag(model.w))
    assert best is not None
    # HGX numbers nodes by its own encoder
    return np.asarray(best[1][G.get_mapping().transform(list(range(n)))])


def auc(U: np.ndarray, real: Hypergraph, random: Hypergraph) -> float:
    """The probability that a held-out hyperedge has a higher rate than a random set of its size."""
    ahead = real.rates(U) - random.rates(U)
    return float(np.mean(np.where(ahead == 0, 0.5, ahead > 0)))


def others(H: Hypergraph, like: Hypergraph, rng: np.random.Generator) -> Hypergraph:
    """Random sets of nodes of the same sizes that are no hyperedges."""
    known = {tuple(sorted(e)) for e in H}
    drawn = []
    for size in like.sizes:
        chosen = tuple(sorted(rng.choice(len(H.names), size, replace=False).tolist()))
        while chosen in known:
            chosen = tuple(sorted(rng.choice(len(H.names), size, replace=False).tolist()))
        drawn.append(chosen)
    return Hypergraph(drawn, nodes=H.names)


def school(H: Hypergraph, truth: np.ndarray, k: int, splits: int) -> None:
    """ARI of the whole and AUC of a fifth that is held out, over several splits."""
    print(H)
    for loss in ("frobenius", "poisson"):
        found = symnmf.communities(H, k, loss=loss, random_state=0)
        print(f"communities(loss={loss!r}): ARI {adjusted_rand_score(truth, found.labels):.4f}")
    scores: dict[str, list[float]] = {}
    for name, U in factors(H, k, 0).items():
        print(f"{name:20} ARI {adjusted_rand_score(truth, U.argmax(axis=1)):.3f}")
    for seed in range(splits):
        chosen = np.random.default_rng(seed).random(len(H)) < 0.2
        known, held = H.kept(~chosen), H.kept(chosen)
        random = others(H, held, np.random.default_rng(seed))
        for name, U in factors(known, k, seed).items():
            scores.setdefault(name, []).append(auc(U, held, random))
    for name, values in scores.items():
        print(f"{name:20} AUC {np.mean(values):.4f} ({splits} splits)")


def planted(seeds: int) -> None:
    """Random pairs, and larger hyperedges inside five groups; NMI of both losses."""
    for n, pairs, groups, sizes, mixed in (
        (300, 3000, 600, (3, 4), 0.0),
        (300, 3000, 300, (3, 4), 0.0),
        (300, 6000, 400, (3, 4, 5), 0.1),
    ):
        scores: dict[str, list[float]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            truth = np.repeat(np.arange(5), n // 5)
            drawn = [rng.choice(n, 2, replace=False) for _ in range(pairs)]
            for _ in range(groups):
                inside = np.flatnonzero(truth == rng.integers(5))
                pool = np.arange(n) if rng.random() < mixed else inside
                drawn.append(rng.choice(pool, rng.choice(sizes), replace=False))
            H = Hypergraph(drawn, nodes=range(n))
            graph = symnmf.communities(H.clique_graph(), 5, random_state=0)
            found = {"all sizes": graph.labels}
            for loss in ("frobenius", "poisson"):
                found[loss] = symnmf.communities(H, 5, loss=loss, random_state=0).labels
            for name, labels in found.items():
                scores.setdefault(name, []).append(normalized_mutual_info_score(truth, labels))
        print((n, pairs, groups, sizes, mixed), end=": ")
        print({name: round(float(np.mean(values)), 3) for name, values in scores.items()})


def million(loss: str, count: int = 1_000_000, n: int = 100_000, k: int = 10) -> None:
    """A planted hypergraph, four of five places inside a group."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % k
    own = np.repeat(np.arange(count), rng.integers(2, 11, count))
    group = rng.integers(k, size=count)
    inside = rng.integers(n // k, size=len(own)) * k + group[own]
    members = np.where(rng.random(len(own)) < 0.8, inside, rng.integers(n, size=len(own)))
    order = np.lexsort((members, own))
    members, own = members[order], own[order]
    new = np.concatenate([[True], (np.diff(members) != 0) | (np.diff(own) != 0)])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(own[new], minlength=count))])
    H = Hypergraph.from_arrays(members[new], indptr)
    small = Hypergraph(list(H.kept(np.arange(count) < 300)))
    symnmf.communities(small, 2, loss=loss, random_state=0)  # compiles
    began, cpu = time.perf_counter(), time.process_time()
    found = symnmf.communities(H, k, loss=loss, random_state=0)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    ari = adjusted_rand_score(truth, found.labels)
    print(f"{H}, loss={loss!r}: {seconds:.1f} s, {cpu:.1f} s CPU, ARI {ari:.3f}, {peak:.1f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["school", "planted", "million"])
    parser.add_argument("--file")
    parser.add_argument("--labels")
    parser.add_argument("-k", type=int, default=9)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--loss", default="frobenius")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    if told.what == "school":
        H, truth = from_files(told.file, told.labels) if told.file else high_school()
        school(H, truth, told.k, told.splits)
    elif told.what == "planted":
        planted(told.splits)
    else:
        million(told.loss)


if __name__ == "__main__":
    main()

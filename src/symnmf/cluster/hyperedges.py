"""Which sizes of hyperedges carry the groups, decided by hyperedges that were held out.

Meetings of two may be everyday noise while groups show in larger ones, or the other way round. So
three clique graphs are fitted to four fifths of the hyperedges: that of all sizes, that of pairs
and that of three nodes or more. Each is asked which of the other hyperedges are real, among random
ones of the same sizes with nodes drawn by their degrees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.graphs.adjacency import degrees
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.graphs.hypergraph import Hypergraph
from symnmf.interchange import to_host
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings

#: Hyperedges that are held out.
SHARE = 0.2

#: Hyperedges of two nodes, and of more, below which nothing can be said of either.
FEWEST = 50

#: Hyperedges beyond which all sizes are taken: three more fits would take most of the time.
MOST = 200_000

#: Hyperedges up to which several fifths are held out in turn, and how many of them.
FEW, REPEATS = 20_000, 3

#: Standard errors by which fewer sizes must do better before any are left out.
CLEARLY = 3.0

#: The fits that are compared need not be exact.
TOL, MOST_ITERATIONS = 1e-3, 100

ALL, PAIRS, LARGER = CHOICES = ("all", "pairs", "larger")


@dataclass(frozen=True)
class SizeChoice:
    """Which sizes were taken, and what held-out hyperedges said.

    Attributes
    ----------
    sizes : {"all", "pairs", "larger"}
    auc : dict
        For each choice the probability that it puts a real hyperedge above a random one, the mean
        of that of pairs and of larger ones; empty if there was nothing to compare.
    """

    sizes: str
    auc: dict[str, float]

    def of(self, H: Hypergraph) -> Hypergraph:
        """Return the hyperedges of these sizes."""
        return _of(H, self.sizes)

    @property
    def reason(self) -> str | None:
        """What is to be said where some were left out."""
        if self.sizes == ALL:
            return None
        gone = "three nodes or more" if self.sizes == PAIRS else "two nodes"
        return (
            f"hyperedges of {gone} were left out, since those that were held out are told from "
            f"random ones better without (AUC {self.auc[self.sizes]:.2f}, with all sizes "
            f"{self.auc[ALL]:.2f})"
        )


def choose_sizes(H: Hypergraph, clusters: int, seed: int = 0) -> SizeChoice:
    """Return which sizes of hyperedges to cluster by."""
    counts = [int(np.count_nonzero(part)) for part in (H.sizes == 2, H.sizes > 2)]
    if min(counts) < FEWEST or len(H) > MOST or clusters < 2:
        return SizeChoice(ALL, {})
    rng = np.random.default_rng(seed)
    fold = rng.integers(round(1 / SHARE), size=len(H))
    repeats = REPEATS if len(H) <= FEW else 1
    pairs = np.concatenate([H.sizes[fold == number] == 2 for number in range(repeats)])
    wins = [_wins(H, fold == number, clusters, rng) for number in range(repeats)]
    won = {choice: np.concatenate([one[choice] for one in wins]) for choice in CHOICES}
    parts = (pairs, ~pairs)
    auc = {c: float(np.mean([won[c][part].mean() for part in parts])) for c in CHOICES}
    best = max((PAIRS, LARGER), key=auc.__getitem__)
    gains = [(won[best] - won[ALL])[part] for part in parts]
    spread = 0.5 * np.sqrt(sum(gain.var() / len(gain) for gain in gains))
    clear = auc[best] - auc[ALL] > CLEARLY * spread
    return SizeChoice(best if clear else ALL, auc)


def _wins(
    H: Hypergraph, held: np.ndarray, clusters: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return for each choice whether a held-out hyperedge has a higher rate than a random one."""
    known, real = H.kept(~held), H.kept(held)
    random = _drawn_by_degree(H, real, rng)
    wins = {}
    for choice in CHOICES:
        B = _fitted(_of(known, choice), clusters)
        ahead = real.rates(B) - random.rates(B)
        wins[choice] = np.where(ahead == 0, 0.5, ahead > 0)
    return wins


def _of(H: Hypergraph, choice: str) -> Hypergraph:
    if choice == ALL:
        return H
    return H.kept(H.sizes == 2 if choice == PAIRS else H.sizes > 2)


def _fitted(H: Hypergraph, clusters: int) -> np.ndarray:
    """Return U of the clique graph, in the units of the graph."""
    A = H.clique_graph()
    scaled = with_degree_offset(A, clusters)
    settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS)
    plan = Plan(clusters, settings, n_init=1, random_state=0, basis=scaled.basis)
    known = degrees(A)
    roots = np.sqrt(known + (scaled.tau or 0.0) * known[known > 0].mean())
    return np.asarray(to_host(plan.best(scaled.graph).U), np.float64) * roots[:, None]


def _drawn_by_degree(H: Hypergraph, like: Hypergraph, rng: np.random.Generator) -> Hypergraph:
    """Return random hyperedges of the sizes of ``like`` with nodes drawn by their degrees in H."""
    members = like.members.copy()
    own = np.repeat(np.arange(len(like)), like.sizes)
    again = np.ones(len(members), bool)
    for _ in range(50):
        members[again] = rng.choice(H.members, int(again.sum()))
        order = np.lexsort((members, own))
        twice = np.zeros(len(members), bool)
        twice[order[1:]] = (np.diff(members[order]) == 0) & (np.diff(own[order]) == 0)
        again = twice
        if not again.any():
            break
    return like.with_members(members[~again], own[~again])

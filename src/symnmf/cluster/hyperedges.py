"""Which sizes of hyperedges carry the groups, decided by hyperedges that were held out.

Meetings of two may be everyday noise while groups show in larger ones, or the other way round. So
three clique graphs are fitted to four fifths of the hyperedges: that of all sizes, that of pairs
and that of three nodes or more. Each is asked which of the other hyperedges are real, among random
ones of the same sizes with nodes drawn by their degrees.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import degrees
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.graphs.hypergraph import Hypergraph
from symnmf.interchange import to_host
from symnmf.run.choosing import MOST_ITERATIONS, TOL, Answers, Choice, choose
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings

#: Hyperedges of either kind below which nothing can be said of it.
FEWEST = 50

#: The part of the hyperedges that is held out: more than of pairs, since there are fewer.
SHARE = 0.2

#: Times that a node which is drawn twice for a hyperedge is drawn again.
DRAWS = 50

QUICK = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS)

ALL, PAIRS, LARGER = "all", "pairs", "larger"


def reason(choice: Choice) -> str | None:
    """Return what is to be said where some sizes were left out."""
    if choice.value == ALL:
        return None
    gone = "three nodes or more" if choice.value == PAIRS else "two nodes"
    auc = dict(choice.tried)
    return (
        f"hyperedges of {gone} were left out, since those that were held out are told from "
        f"random ones better without (AUC {auc[choice.value]:.2f}, with all sizes {auc[ALL]:.2f})"
    )


def choose_sizes(H: Hypergraph, clusters: int) -> Choice:
    """Return which sizes of hyperedges to cluster by: "all", "pairs" or "larger"."""
    if min(np.count_nonzero(H.sizes == 2), np.count_nonzero(H.sizes > 2)) < FEWEST or clusters < 2:
        return Choice(ALL)

    def split(rng: np.random.Generator) -> Callable[[str], Answers]:
        held = rng.random(len(H)) < SHARE
        known, real = H.kept(~held), H.kept(held)
        random = _drawn_by_degree(H, real, rng)
        pairs = real.sizes == 2

        def answers(sizes: str) -> Answers:
            B = _fitted(of_sizes(known, sizes), clusters)
            ahead = real.rates(B) - random.rates(B)
            wins = np.where(ahead == 0, 0.5, ahead > 0)
            return [wins[pairs], wins[~pairs]]

        return answers

    return choose(ALL, lambda sizes: (PAIRS, LARGER), split)


def of_sizes(H: Hypergraph, sizes: str) -> Hypergraph:
    """Return the hyperedges of these sizes."""
    return H if sizes == ALL else H.kept((H.sizes == 2) == (sizes == PAIRS))


def _fitted(H: Hypergraph, clusters: int) -> np.ndarray:
    """Return U of the clique graph, in the units of the graph."""
    A = H.clique_graph()
    scaled = with_degree_offset(A, clusters)
    plan = Plan(clusters, QUICK, n_init=1, random_state=0, basis=scaled.basis)
    known = degrees(A)
    roots = np.sqrt(known + scaled.tau * known[known > 0].mean())
    return np.asarray(to_host(plan.search(scaled.graph).best.U), np.float64) * roots[:, None]


def _drawn_by_degree(H: Hypergraph, like: Hypergraph, rng: np.random.Generator) -> Hypergraph:
    """Return random hyperedges of the sizes of ``like`` with nodes drawn by their degrees in H."""
    own, indptr = np.repeat(np.arange(len(like)), like.sizes), like.incidence.indptr
    members = rng.choice(H.members, len(own))
    for _ in range(DRAWS):
        order = np.lexsort((members, own))
        twice = order[1:][(np.diff(members[order]) == 0) & (np.diff(own[order]) == 0)]
        if not len(twice):
            break
        members[twice] = rng.choice(H.members, len(twice))
    drawn = like.kept(np.ones(len(like), bool))
    drawn.incidence = sp.csr_array((np.ones(len(own)), members, indptr), like.incidence.shape)
    return drawn

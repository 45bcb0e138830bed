"""How many clusters there are, with no range given: from eigenvalues and draws without clusters.

Two kinds of data need two readings of the same eigenvalues. A network has as many groups as
eigenvalues lie above those of random graphs with its degrees, unless it can be described in about
as few nats with fewer. A neighbour graph of points has local structure everywhere, so it is above
any such random graph; there the number is where the eigenvalues drop furthest, measured by what a
single cloud of points shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from symnmf import calls, nulls
from symnmf.graphs.adjacency import normalized
from symnmf.graphs.locality import joins_neighbours
from symnmf.graphs.partitions import Partition
from symnmf.parallel import one_blas_thread
from symnmf.run.centres import nearest_centres
from symnmf.run.spectral import Basis
from symnmf.run.start import RandomState, as_generator
from symnmf.selection.choosing_rank import Choice
from symnmf.selection.description import description_length
from symnmf.selection.found import RankSelection

#: Chance with which an eigenvalue of a graph without clusters is taken for a cluster.
LEVEL = 0.01

#: What is added to the degrees of a network, in mean degrees: with nothing added its leading
#: eigenvectors belong to whiskers, and not to groups.
OFFSET = 1.0

#: Eigenvalues to begin with; twice as many follow until the answer is inside. While all of them are
#: above chance, at least AT_LEAST are looked at, since groups that are merged explain little.
FIRST, AT_LEAST, MOST = 16, 64, 256

#: The answer is inside the range where it is at most this part of it.
INSIDE = 0.7

#: A rise of 1 - eigenvalue by more than this factor is taken before any other. Groups that hang
#: together by a few edges have it; so has a single curve, whose values are as 1, 4 and 9.
SHARP = 3.5

#: Clusters inside components are real where 1 - lambda is at least this part of their conductance.
#: Pieces of rings, the worst case of curves, have at most 0.17, and blobs that touch 0.2 and more.
TIGHT = 0.2

#: Both as parts of what one cloud of points has: values below FINE are as good as 0, which is
#: asked first; COARSE finds a drop among values that are all well above 0.
FINE, COARSE = 0.02, 0.4

#: Eigenvalues of a neighbour graph that give its scale.
LOCAL = 60

#: Components smaller than this part of the nodes are no clusters, nor those of under 5 nodes.
SMALL_PART, SMALL = 0.01, 5

#: A number of groups is as good as the best where it misses less than this part of what that saves.
NEGLIGIBLE = 0.02

#: Where a description has fewer groups than eigenvalues say by at most this part, these decide:
#: the groups that are described are read off eigenvectors, and small ones may be missed.
NEARLY = 0.2

#: Where a description has about as many groups as eigenvalues say, more are tried, by this part of
#: them: a small group can be too small for an eigenvalue of its own and be plain to see beside it.
FURTHER = 3

#: n K^3 / 3 up to which labels are read off for each number of clusters up to K, and with care.
EVERY_NUMBER = 2e9

#: Draws that have to do where ``max_time`` is over.
FEWEST_DRAWS = 3

Draw = Callable[[np.random.Generator], Any]


def count_clusters(
    A: Any,
    *,
    draw: Draw | None = None,
    neighbours: bool | None = None,
    random_state: RandomState = None,
) -> RankSelection:
    """Say how many clusters a graph has, and why; 1 if there are none.

    Parameters
    ----------
    A : csr_array or ndarray of shape (n, n)
        Nonnegative and symmetric: the adjacency matrix of a network, or a graph of points.
    draw : callable or None
        For graphs of points: makes the graph of a single cloud of points from a generator, in the
        way that A was made.
    neighbours : bool or None
        Whether edges join what is near, as in a neighbour graph whose points are not at hand; None
        to judge by the graph.
    random_state : int, Generator, RandomState or None
        For the draws without clusters.

    Returns
    -------
    RankSelection
        ``recommendation``, ``reason``, ``choices`` of the criteria, ``table``.
    """
    rng = as_generator(random_state)
    inside = _in_large_components(A)
    graph = A if inside.all() else _restricted(A, inside)
    n = graph.shape[0]
    if n < 4 or (graph.nnz if sp.issparse(graph) else np.count_nonzero(graph)) == 0:
        return _found(1, "There are too few edges for more than one cluster.", {}, {})
    parts = int(connected_components(sp.csr_array(graph), directed=False)[0])
    with one_blas_thread():  # the threads of BLAS slow down an eigensolver with short vectors
        try:
            if draw is not None:
                return _of_points(graph, parts, draw, rng)
            if joins_neighbours(graph) if neighbours is None else neighbours:
                return _of_neighbours(graph, parts)
            return _of_network(graph, parts, rng)
        except _TimeIsUp:
            fall = "is one component" if parts == 1 else f"falls into {parts} components"
            reason = f"The time for the call ended before eigenvalues were known; the graph {fall}."
            return _found(parts, reason, {}, {})


# Networks -------------------------------------------------------------------------------------


def _of_network(A: Any, parts: int, rng: np.random.Generator) -> RankSelection:
    """Count eigenvalues above random graphs; describe the graph with as many groups, and fewer."""
    edges = A / (A.data.mean() if sp.issparse(A) else A.mean())  # weights as numbers of edges
    scaled = normalized(edges, OFFSET)
    limit = nulls.upper_limit(_null_values(edges, rng), LEVEL)
    lengths: dict[int, float] = {1: description_length(edges, np.zeros(edges.shape[0], int))}
    most, tried = min(MOST, max(edges.shape[0] // 3, 2)), FIRST
    while True:
        basis = leading(scaled, min(tried, most))
        above = max(1 + int(np.sum(basis.values[1:] > limit)), parts)
        shortest, reach = _described(edges, basis, above, lengths), above
        nearly = above > 1 and shortest >= (1.0 - NEARLY) * above
        if nearly and _cheap(edges.shape[0], above):
            reach = above + above // FURTHER + 1
            if _described(edges, basis, reach, lengths) > above:
                shortest = min(lengths, key=lengths.__getitem__)
        seen = len(basis.values)
        open_end = reach >= seen and (seen < AT_LEAST or shortest > INSIDE * above)
        if not open_end or seen >= most or calls.out_of_time():
            break
        tried *= 2
    choices = {
        "null": Choice(None if above == 1 else above, 1, above),
        "description": Choice(None if shortest == 1 else shortest, 1, max(above, shortest)),
    }
    if parts > 1:
        choices["components"] = Choice(parts, parts, parts)
    table = _table(basis.values, limit)
    table["description"] = np.array([lengths.get(int(k), np.nan) for k in table["rank"]])
    at_end = open_end and above >= seen
    number, reason = _reason_of_network(above, shortest, parts, at_end=at_end)
    return _found(number, reason, choices, table)


def _reason_of_network(above: int, shortest: int, parts: int, *, at_end: bool) -> tuple[int, str]:
    if above == 1:
        return 1, "No eigenvalue is above those of random graphs with the same degrees."
    told = f"{above - 1} eigenvalue{'s lie' if above > 2 else ' lies'} above those of random graphs"
    told += " with the same degrees" + ", and more may follow" * at_end
    if parts == above:
        return parts, f"The graph falls into {parts} components, and {told}."
    if shortest == 1:
        return (
            above,
            f"{told}, one less than the number; but the graph takes as few nats to describe "
            f"without groups, so the number is uncertain.",
        )
    if shortest > above:
        most = f"The graph is described in the fewest nats with {shortest} groups"
        return shortest, f"{most}; {told}."
    if shortest >= (1.0 - NEARLY) * above:
        agree = "agrees" if shortest == above else f"has {shortest} groups, nearly as many"
        return above, f"{told}, and the shortest description of the graph {agree}."
    number = max(shortest, parts)
    first = (
        f"The graph has {parts} components"
        if number > shortest
        else f"The graph is described in the fewest nats, or nearly, with {shortest} groups"
    )
    return number, f"{first}; {told}, so there is structure inside them."


def _described(A: Any, basis: Basis, most: int, lengths: dict[int, float]) -> int:
    """Describe A with up to ``most`` groups; return the fewest groups that do it well."""
    for k in _numbers(A.shape[0], min(most, len(basis.values)), lengths):
        first = basis.leading(k)
        # labels by axes can save a few nats by accident, and more care takes ten times as long
        labels = nearest_centres(first) if _cheap(A.shape[0], k) else first.labels()
        lengths[k] = description_length(A, labels)
    return _fewest(lengths)


def _fewest(lengths: dict[int, float]) -> int:
    """Return the smallest number whose description is about as short as the shortest."""
    best = min(lengths.values())
    enough = best + NEGLIGIBLE * (lengths[1] - best)
    return min(k for k, length in lengths.items() if length <= enough)


def _numbers(n: int, most: int, known: dict[int, float]) -> list[int]:
    """Return the numbers of clusters to try that are not known yet: all, or fewer of many."""
    wanted: Any = range(2, most + 1)
    if not _cheap(n, most):
        wanted = sorted({round(k) for k in np.geomspace(2, most, 16)})
    return [k for k in wanted if k not in known]


def _cheap(n: int, most: int) -> bool:
    return n * float(most) ** 3 / 3 <= EVERY_NUMBER


def _null_values(A: Any, rng: np.random.Generator) -> list[float]:
    """Return the second eigenvalue of random graphs with the same degrees.

    The spread of small graphs is wide, and it takes more draws to know it.
    """
    size = A.nnz if sp.issparse(A) else A.size
    draws = 40 if size < 5_000 else 20 if size < 100_000 else 6 if size < 2_000_000 else 3
    values: list[float] = []
    while len(values) < draws and (len(values) < FEWEST_DRAWS or not calls.out_of_time()):
        drawn = normalized(nulls.same_degrees(A, rng), OFFSET)
        values.append(float(leading(drawn, 2).values[1]))
    return values


# Weighted graphs, and graphs of points --------------------------------------------------------


def _of_neighbours(A: Any, parts: int) -> RankSelection:
    """Take the drop, measured by the eigenvalues further down, where no points are there to ask."""
    scaled = normalized(A)
    count = min(LOCAL, max(A.shape[0] // 4, 2))
    values = leading(scaled, count).values
    found = _dropping(A, scaled, _extrapolated(values, parts), parts, one_needs=2.0)
    choices = {"drop": found.choice}
    if parts > 1:
        choices["components"] = Choice(parts, parts, parts)
    reason = f"{found.said}; edges join what is near, so it is the shape of the data that is found."
    return _found(found.number, reason, choices, _table(found.values))


def _extrapolated(values: np.ndarray, parts: int) -> float:
    """Return 1 - lambda_2 of one cloud that has the given values further down.

    By Weyl's law 1 - lambda_j grows as a power of j; the values after the first quarter give it.
    """
    apart = np.maximum(1.0 - values / values[0], 1e-12)
    number = np.arange(1, len(apart) + 1)
    further = slice(max(len(apart) // 4, min(parts, len(apart) - 2)), None)
    if len(apart[further]) < 4:
        return float(apart[-1])
    power, level = np.polyfit(np.log(number[further]), np.log(apart[further]), 1)
    return float(np.exp(level + power * np.log(2.0)))


def _of_points(A: Any, parts: int, draw: Draw, rng: np.random.Generator) -> RankSelection:
    """Take the drop, measured by what the graph of a single cloud of points shows."""
    n = A.shape[0]
    draws = 3 if n <= 3000 else 1
    clouds = [leading(normalized(draw(rng)), 2).values[1] for _ in range(draws)]
    single = 1.0 - float(np.mean(clouds))
    found = _dropping(A, normalized(A), max(single, 1e-6), parts)
    choices = {"drop": found.choice}
    if parts > 1:
        choices["components"] = Choice(parts, parts, parts)
    return _found(found.number, f"{found.said}.", choices, _table(found.values, 1.0 - single))


@dataclass(frozen=True)
class _Drop:
    number: int
    said: str
    choice: Choice
    values: np.ndarray


def _dropping(A: Any, scaled: Any, single: float, parts: int, one_needs: float = 1.0) -> _Drop:
    """Return after which eigenvalue 1 - lambda rises most, of at least ``parts``.

    ``single`` is 1 - lambda_2 of one cloud, and ``one_needs`` how many times larger than any other
    the first rise has to be for one cluster. Rises are logarithms; what is small beside ``single``
    counts as 0. Where one cloud is ruled out, the first look is for a gap as between components.
    Clusters inside components are taken instead where the largest rise shows some.
    """
    n = scaled.shape[0]
    most, tried = min(MOST, max(n // 3, 2)), FIRST
    while True:
        basis = leading(scaled, min(max(tried, parts + 2), most) + 1)
        values = basis.values
        apart = np.maximum(1.0 - values / values[0], 0.0)
        low = min(parts, len(apart) - 1)
        fine, rise = (_rises(apart[low - 1 :], part * single) for part in (FINE, COARSE))
        rise[: max(2 - low, 0)] /= one_needs
        fine[: max(2 - low, 0)] = 0.0  # that the first is above 0 says that the graph is connected
        number, first = (low + int(np.argmax(one)) for one in (rise, fine))
        sharp = bool(fine.max() > np.log(SHARP)) and number > 1
        if sharp and not (number > first and _tightness(A, basis, apart, number) >= TIGHT):
            rise, number = fine, first
        else:
            sharp = False
        if number <= INSIDE * (len(values) - 1) or len(values) > most or calls.out_of_time():
            break
        tried *= 2
    near = low + np.flatnonzero(rise >= 0.8 * rise.max())
    choice = Choice(None if number == 1 else number, int(near[0]), int(near[-1]))
    return _Drop(number, _said(number, parts, sharp, rise, low), choice, values)


def _tightness(A: Any, basis: Basis, apart: np.ndarray, number: int) -> float:
    """Return the sum of 1 - lambda over the sum of the conductances of so many clusters.

    Cheeger's inequality: conductances lie between 1 - lambda and its root. Separate clusters are
    near the lower end, the pieces of a curve near the upper one.
    """
    labels = nearest_centres(basis.leading(number))
    leaving = np.nansum(Partition.of(A, labels, number).conductance)
    return float(apart[:number].sum() / max(leaving, 1e-12))


def _rises(apart: np.ndarray, floor: float) -> np.ndarray:
    return np.asarray(np.diff(np.log(apart + floor)))


def _said(number: int, parts: int, sharp: bool, rise: np.ndarray, low: int) -> str:
    if number == 1:
        return "The eigenvalues fall off as those of one cloud of points do, without a clear drop"
    if number == parts:
        return f"The graph falls into {parts} components, and no eigenvalues mark clusters in them"
    others = np.argsort(-rise)[1:2] + low
    second = f"; the next largest drop is after {int(others[0])}" if others.size else ""
    if sharp:
        almost = "nearly as far as after separate components"
        return f"The eigenvalues drop after {number}, {almost}{second}"
    return f"The eigenvalues drop furthest after {number}{second}"


# Eigenvalues ----------------------------------------------------------------------------------


def leading(scaled: Any, count: int) -> Basis:
    """Return the leading eigenpairs; components one by one, since each repeats the value 1."""
    n = scaled.shape[0]
    if n <= 300 or count >= n // 2:
        values, vectors = np.linalg.eigh(scaled.toarray() if sp.issparse(scaled) else scaled)
        return Basis(np.ascontiguousarray(vectors[:, : -count - 1 : -1]), values[: -count - 1 : -1])
    parts, part = connected_components(scaled, directed=False) if sp.issparse(scaled) else (1, None)
    if parts == 1:
        return _of_one_component(scaled, count)
    values = np.full(count, -1.0)
    vectors = np.zeros((n, count))
    for number in range(parts):
        rows = np.flatnonzero(part == number)
        if rows.size == 1:
            continue
        mine = leading(sp.csr_array(scaled[rows][:, rows]), min(count, rows.size))
        merged = np.concatenate([values, mine.values])
        order = np.argsort(-merged, kind="stable")[:count]
        wide = np.zeros((n, len(merged)))
        wide[:, :count] = vectors
        wide[rows, count:] = mine.vectors
        values, vectors = merged[order], wide[:, order]
    return Basis(vectors, values)


class _TimeIsUp(Exception):
    """The call has to return before eigenvalues have converged."""


def _of_one_component(scaled: Any, count: int) -> Basis:
    n = scaled.shape[0]

    def product(v: np.ndarray) -> np.ndarray:
        if calls.out_of_time():
            raise _TimeIsUp
        return np.asarray(scaled @ v)

    timed = LinearOperator((n, n), matvec=product, dtype=scaled.dtype)
    start = 1.0 + np.random.default_rng(0).random(n)
    try:
        values, vectors = eigsh(timed, k=count, which="LA", v0=start, tol=1e-5, maxiter=20 * n)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
    order = np.argsort(-values)
    return Basis(np.ascontiguousarray(vectors[:, order]), values[order])


def _in_large_components(A: Any) -> np.ndarray:
    """Which nodes are in components that may be clusters; all, if there is no such component."""
    _, part = connected_components(sp.csr_array(A), directed=False)
    sizes = np.bincount(part)
    connected = sizes[sizes > 1].sum()
    large = sizes >= max(SMALL, SMALL_PART * connected)
    inside = np.asarray(large[part])
    return inside if inside.any() else np.asarray(sizes[part] > 0)


def _restricted(A: Any, inside: np.ndarray) -> Any:
    rows = np.flatnonzero(inside)
    return sp.csr_array(sp.csr_array(A)[rows][:, rows]) if sp.issparse(A) else A[np.ix_(rows, rows)]


def _table(values: np.ndarray, limit: float = float("nan")) -> dict[str, np.ndarray]:
    return {
        "rank": np.arange(1, len(values) + 1),
        "eigenvalue": values,
        "null_eigenvalue": np.full(len(values), limit),
        "gap": values - np.append(values[1:], np.nan),
    }


def _found(
    number: int, reason: str, choices: dict[str, Choice], table: dict[str, np.ndarray]
) -> RankSelection:
    return RankSelection(number, reason, choices, table, None)

"""From scores to a choice: each criterion's own, and one recommendation with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: A rank is as good as the best where it misses less than this share of what the best gains.
NEGLIGIBLE = 0.005


@dataclass(frozen=True)
class Choice:
    """What one criterion says.

    Attributes
    ----------
    rank : int or None
        Its choice; None where it sees no clusters.
    low, high : int
        The ranks it cannot tell from its choice.
    at_edge : bool
        Whether the error still falls at the largest rank, so that the choice may be larger.
    so_far : bool
        Whether it rests on some of its runs only, since the search was stopped.
    """

    rank: int | None
    low: int
    high: int
    at_edge: bool = False
    so_far: bool = False

    @property
    def sharp(self) -> bool:
        """Whether all the ranks it cannot tell from its choice are near it."""
        return self.rank is not None and _near(self.low, self.rank) and _near(self.high, self.rank)

    def __str__(self) -> str:
        so_far = ", so far" if self.so_far else ""
        if self.rank is None:
            return "none" + so_far
        span = "" if self.low == self.high else f" ({self.low} to {self.high})"
        return f"{self.rank}{span}" + (", still falling" if self.at_edge else "") + so_far


def by_heldout(ranks: Sequence[int], errors: np.ndarray) -> Choice:
    """Return the smallest rank whose error, fold by fold, is within one standard error of the best.

    ``errors`` has a row for each fold and a column for each rank, of which the first is 1.
    """
    mean = errors.mean(axis=0)
    best = int(np.argmin(mean))
    apart = errors - errors[:, [best]]
    spread = apart.std(axis=0, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0 * mean
    margin = NEGLIGIBLE * (mean[0] - mean[best])
    equal = np.flatnonzero(apart.mean(axis=0) <= np.maximum(spread, margin))
    chosen = int(equal[0])
    if chosen == 0 and ranks[0] == 1:
        return Choice(None, 1, int(ranks[equal[-1]]))
    tried = sum(rank > 1 for rank in ranks)
    at_edge = ranks[chosen] == ranks[-1] and tried > 1  # one alone shows no trend
    return Choice(int(ranks[chosen]), int(ranks[chosen]), int(ranks[equal[-1]]), at_edge)


def by_stability(ranks: Sequence[int], excess: np.ndarray, spread: np.ndarray) -> Choice:
    """Return the rank whose runs agree most beyond what degrees alone bring about."""
    best = int(np.argmax(excess))
    near = np.flatnonzero(excess >= excess[best] - spread[best])
    low, high = int(ranks[near[0]]), int(ranks[near[-1]])
    clear = excess[best] > max(2.0 * spread[best], 0.05)
    return Choice(int(ranks[best]) if clear else None, low, high)


def by_eigengap(ranks: Sequence[int], values: np.ndarray) -> Choice:
    """Return the rank after which the eigenvalues fall furthest."""
    usable = [rank for rank in ranks if rank < len(values)]
    gaps = np.array([values[rank - 1] - values[rank] for rank in usable])
    best = int(np.argmax(gaps))
    near = np.flatnonzero(gaps >= 0.8 * gaps[best])
    clear = gaps[best] > 2.0 * float(np.median(gaps))
    rank = int(usable[best]) if clear and usable[best] > 1 else None
    return Choice(rank, int(usable[near[0]]), int(usable[near[-1]]))


def recommend(choices: dict[str, Choice], ranks: Sequence[int]) -> tuple[int | None, str]:
    """Return a rank, or None, and one sentence that says why."""
    heldout = choices.get("heldout")
    tried = [rank for rank in ranks if rank > 1]
    others = {name: found for name, found in choices.items() if name != "heldout"}
    if heldout is not None and heldout.rank is None:
        return None, "One factor predicts hidden pairs as well as more do."
    if len(tried) == 1:
        better = ", and it predicts hidden pairs better than one factor" if heldout else ""
        return None, f"Only {tried[0]} was tried{better}; try a range of numbers."
    if heldout is not None and not heldout.at_edge:
        rank = heldout.rank
        assert rank is not None
        return rank, (
            f"Fewer than {rank} predict hidden pairs worse and more do not better"
            f"{_support(others, rank)}."
        )
    votes = [found.rank for found in others.values() if found.rank is not None]
    for found in others.values():
        # two that say nearly anything agree by chance
        if found.rank is None or not found.sharp:
            continue
        near = {name: other for name, other in others.items() if _near(other.rank, found.rank)}
        if len(near) > 1:
            same = [name for name, other in near.items() if other.rank == found.rank]
            if len(same) > 1:
                return found.rank, f"{' and '.join(same).capitalize()} agree on it."
            return found.rank, f"{same[0].capitalize()} says so{_support(near, found.rank, same)}."
    if heldout is not None:
        return None, (
            f"The held-out error still falls at {heldout.rank}, the most that was tried, and "
            f"{_disagreement(others)}."
        )
    if len(votes) == 1:
        return votes[0], f"It is what {next(n for n, c in others.items() if c.rank)} says."
    return None, f"{_disagreement(others).capitalize()}."


def _support(others: dict[str, Choice], rank: int, named: Sequence[str] = ()) -> str:
    """Return which criteria, but those named, say the same as ``rank`` and which nearly do."""
    same = [name for name, found in others.items() if found.rank == rank and name not in named]
    near = [
        f"{name} ({found.rank})"
        for name, found in others.items()
        if found.rank != rank and _near(found.rank, rank)
    ]
    clauses = []
    if same:
        clauses.append(f"{' and '.join(same)} say{'s' * (len(same) == 1)} the same")
    if near:
        clauses.append(f"{' and '.join(near)} {'is' if len(near) == 1 else 'are'} close to it")
    return "; " * bool(clauses) + ", and ".join(clauses)


def _disagreement(others: dict[str, Choice]) -> str:
    """Return what the other criteria say where no number comes of it, as a clause."""
    clear = [name for name, found in others.items() if found.rank is not None]
    if not others:
        return "no other criterion was asked"
    if not clear:
        return f"{' and '.join(others)} see{'s' * (len(others) == 1)} no clusters"
    if len(clear) == 1:
        return f"{clear[0]} alone does not decide"
    return f"{' and '.join(clear)} do not point at one number"


def _near(found: int | None, rank: int) -> bool:
    return found is not None and abs(found - rank) <= max(1, round(0.1 * rank))

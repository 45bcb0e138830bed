"""The paper's sentences as checks on numbers that come out true or false, seed by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from symnmf.experiments.runs import Absent, Runs


class Outcome(NamedTuple):
    """Whether a claim held for one seed, and the figures that decided it."""

    holds: bool
    figures: str


Check = Callable[[Runs, int], Outcome]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what is checked of it.

    Attributes
    ----------
    key : str
        A short name, unique over all experiments.
    quote : str
        The paper's words.
    checked : str
        What exactly is looked at.
    ours : str
        Which thresholds are this library's choice and not the paper's; empty where none is.
    check : callable
        From the runs and a seed to an :class:`Outcome`.
    """

    key: str
    quote: str
    checked: str
    ours: str
    check: Check


@dataclass(frozen=True)
class Verdict:
    """A claim with its outcome per seed; ``reason`` says why there is none."""

    claim: Claim
    outcomes: dict[int, Outcome]
    reason: str = ""

    @property
    def held(self) -> int:
        return sum(outcome.holds for outcome in self.outcomes.values())

    @property
    def word(self) -> str:
        """holds, mixed, fails or not checked: the badge."""
        if not self.outcomes:
            return "not checked"
        if self.held == len(self.outcomes):
            return "holds"
        return "mixed" if self.held else "fails"

    @property
    def sentence(self) -> str:
        count = len(self.outcomes)
        if not count:
            return f"not checked: {self.reason}"
        if count == 1:
            return "holds (one seed)" if self.held else "does not hold (one seed)"
        if self.held == count:
            return f"holds in all {count} seeds"
        if self.held:
            return f"holds in {self.held} of {count} seeds"
        return f"holds in none of {count} seeds"


def judge(claim: Claim, runs: Runs) -> Verdict:
    """Check a claim for every seed."""
    outcomes: dict[int, Outcome] = {}
    reason = "" if runs.curves else "no run was done"
    for seed in runs.seeds:
        try:
            outcome = claim.check(runs, seed)
        except Absent as absent:
            reason = str(absent)
            continue
        outcomes[seed] = Outcome(bool(outcome.holds), outcome.figures)
    return Verdict(claim, outcomes, reason)

"""The paper's sentences as checks on numbers, one verdict per sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reproduction.runs import Absent, Runs


class Part(NamedTuple):
    """One clause or case of a sentence for one seed; ``holds`` is None where it is undecided."""

    what: str
    holds: bool | None
    figures: str


Check = Callable[[Runs, int], list[Part]]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and how it is read.

    Attributes
    ----------
    key : str
        A short name, unique over all experiments.
    quote : str
        The paper's words.
    reading : str
        What is compared, and which thresholds are this library's choice.
    check : callable
        From the runs and a seed to the parts.
    paper : callable or None
        The same check on the figures of the paper's own table.
    """

    key: str
    quote: str
    reading: str
    check: Check
    paper: Callable[[], list[Part]] | None = None


@dataclass(frozen=True)
class PartVerdict:
    """One part over all seeds."""

    what: str
    outcomes: dict[int, Part]

    @property
    def word(self) -> str:
        return _word([part.holds for part in self.outcomes.values()])

    @property
    def count(self) -> str:
        """In how many seeds it holds, of how many."""
        held = sum(part.holds is True for part in self.outcomes.values())
        return f"{held} of {len(self.outcomes)}"


@dataclass(frozen=True)
class Verdict:
    """A claim with its parts; ``reason`` says why there are none.

    ``mirrored`` is the verdict on the same sentence where the noise is mirrored to make X
    symmetric, where that was run.
    """

    claim: Claim
    parts: list[PartVerdict]
    reason: str = ""
    mirrored: Verdict | None = field(default=None)

    @property
    def _all(self) -> list[bool | None]:
        return [outcome.holds for part in self.parts for outcome in part.outcomes.values()]

    @property
    def word(self) -> str:
        """holds, partly, fails, undecided or not checked: the badge.

        What is said of several methods or settings does not hold where it is open for one of them.
        """
        word = _word(self._all)
        unsettled = any(part.word == "undecided" for part in self.parts)
        return "partly" if word == "holds" and unsettled else word

    @property
    def held(self) -> int:
        return sum(holds is True for holds in self._all)

    @property
    def failed(self) -> int:
        return sum(holds is False for holds in self._all)

    @property
    def undecided(self) -> int:
        return sum(holds is None for holds in self._all)

    @property
    def sentence(self) -> str:
        """The counts behind the word."""
        if not self.parts:
            return f"not checked: {self.reason}"
        told = [f"{self.held} of {len(self._all)} cases hold"]
        told += [f"{self.failed} do not"] if self.failed else []
        told += [f"{self.undecided} undecided"] if self.undecided else []
        return ", ".join(told)


def _word(outcomes: list[bool | None]) -> str:
    """A sentence fails where cases speak against it and none for it, however many are undecided."""
    decided = [holds for holds in outcomes if holds is not None]
    if not outcomes:
        return "not checked"
    if decided and not any(decided):
        return "fails"
    if 2 * len(decided) < len(outcomes):
        return "undecided"
    return "holds" if all(decided) else "partly"


def gathered(parts: Iterable[tuple[int, Part]]) -> list[PartVerdict]:
    """Put the parts of all seeds together by what they are about."""
    found: dict[str, dict[int, Part]] = {}
    for seed, part in parts:
        holds = None if part.holds is None else bool(part.holds)
        found.setdefault(part.what, {})[seed] = part._replace(holds=holds)
    return [PartVerdict(what, outcomes) for what, outcomes in found.items()]


def judge(claim: Claim, runs: Runs) -> Verdict:
    """Check a claim for every seed, with the noise as the paper writes it and mirrored."""
    verdict = _judge(claim, runs.literal())
    mirrored = runs.mirrored()
    if not mirrored.curves:
        return verdict
    second = _judge(claim, mirrored)
    return Verdict(claim, verdict.parts, verdict.reason, second if second.parts else None)


def _judge(claim: Claim, runs: Runs) -> Verdict:
    parts: list[tuple[int, Part]] = []
    reason = "" if runs.curves else "no run was done"
    for seed in runs.seeds:
        try:
            parts += [(seed, part) for part in claim.check(runs, seed)]
        except Absent as absent:
            reason = str(absent)
    return Verdict(claim, gathered(parts), reason)

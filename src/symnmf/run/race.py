"""When to give a start up: as soon as it can be seen to end above one that has ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symnmf.run.result import Result

#: A start has to promise to be better by more than this part of the error.
SAME = 1e-6

#: A decrease is compared with that of as many iterations before.
STRIDE = 8

#: How much more than the forecast a start is trusted to gain: decreases come in bursts.
TRUST = 30.0


class Race:
    """Starts measured against the least value of those that ran to their end.

    A start that has settled loses a steady factor of its distance from its limit per iteration,
    so two decreases in a row forecast the limit. The start is given up where the forecast, with
    some trust added, does not come below the error to beat. The decision depends on the start's
    own errors and that one number.
    """

    def __init__(self) -> None:
        self._to_beat = -np.inf
        self._errors: dict[int, list[float]] = {}
        self._lost: set[int] = set()

    def open(self, finished: Sequence[Result | None]) -> None:
        """From now on, measure starts against these."""
        errors = [r.value for r in finished if r is not None and np.isfinite(r.value)]
        if errors:
            self._to_beat = min(errors) * (1 - SAME)

    def see(self, start: int, error: float) -> bool:
        """Take in the latest error of a start; True where it is to be given up."""
        if self._to_beat == -np.inf:
            return False
        errors = self._errors.setdefault(start, [])
        errors.append(error)
        if len(errors) <= 2 * STRIDE or self._limit(errors) < self._to_beat:
            return False
        self._lost.add(start)
        return True

    def remember(self, start: int, errors: Sequence[float]) -> None:
        """Take in what a start had reached before it was interrupted."""
        self._errors[start] = list(errors)

    def lost(self, start: int) -> bool:
        """Whether a start was given up."""
        return start in self._lost

    @staticmethod
    def _limit(errors: list[float]) -> float:
        now, before, earlier = errors[-1], errors[-1 - STRIDE], errors[-1 - 2 * STRIDE]
        gain, previous = before - now, earlier - before
        if gain <= 0:
            return now
        ratio = min(gain / previous, 0.95) if previous > 0 else 0.95
        return now - TRUST * gain * ratio / (1 - ratio)

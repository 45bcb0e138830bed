"""A bound on the best possible error, in numbers and in words."""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

#: Gap from which on a result counts as the best possible, where nothing else is said.
GLOBAL_TOL = 1e-6

#: A larger gap says little about U: the bound is far away.
LOOSE = 0.1

How = Literal["eigenvalues", "prices", "none"]

WAYS = {
    "eigenvalues": "from the leading eigenvalues of X",
    "prices": "from the leading eigenvalues of X + N, N >= 0 chosen to raise the bound",
    "none": "no bound is known",
}


@dataclass(frozen=True)
class Bound:
    """A lower bound on the objective of every U >= 0 with this many columns.

    Attributes
    ----------
    value : float
        The bound: no U has a smaller objective, including the terms added to the misfit. NaN if no
        bound is known.
    error : float
        The same as a relative error E; NaN if terms are added to the misfit.
    reached, reached_error : float
        The objective and E of the U that the bound is compared with.
    gap : float
        The largest fraction by which the objective could be lower; 0 if it is 0, and NaN if no
        bound is known.
    rank : int
        Columns of U.
    how : {"eigenvalues", "prices", "none"}
        The source of the bound: the leading eigenvalues of X, or of X + N for an N >= 0 found by a
        search; "none" if no bound is known.
    failure : float
        The probability that the bound is wrong. With 0 it always holds, up to the rounding that was
        allowed for. Otherwise the eigenvalues come from products with X alone, and ten random
        vectors were used to check that none was missed.
    steps : int
        Steps of the search for N.
    seconds : float
        The time that it took.
    rounding : float
        An E below this cannot be told from 0.
    tol : float
        U counts as a global minimum if the gap is at most this.
    """

    value: float
    error: float
    reached: float
    reached_error: float
    gap: float
    rank: int
    how: How
    failure: float = 0.0
    steps: int = 0
    seconds: float = field(default=0.0, repr=False, compare=False)
    rounding: float = 0.0
    tol: float = GLOBAL_TOL

    @property
    def known(self) -> bool:
        """Whether there is a bound at all."""
        return self.how != "none"

    @property
    def proved_global(self) -> bool:
        """Whether U is a global minimum: no other is better by more than ``tol`` of it."""
        return self.known and self.gap <= self.tol

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if not self.known:
            return "No bound on the best possible error is known for this problem."
        columns = f"{self.rank} column{'s' if self.rank != 1 else ''}"
        if self.reached_error <= self.rounding:
            return f"The best possible: U U^T is X to rounding ({self.reached_error:.2g})."
        plain = np.isfinite(self.error)
        what = "an error" if plain else "an objective"
        least, own = (self.error, self.reached_error) if plain else (self.value, self.reached)
        if plain and least <= 0.0 and not self.proved_global:
            return (
                f"The bound on the best possible is {rounded_down(least, 5)}, which says nothing "
                f"of this one ({own:.5g}): X may have an exact factorization."
            )
        digits = shown_digits(own, least)
        told = (
            f"No U with {columns} has {what} below {rounded_down(least, digits)}; "
            f"this one has {own:.{digits}g}"
        )
        if self.proved_global:
            return f"{told}: a global minimum to {percent(max(self.gap, 1e-15))}."
        if self.gap > LOOSE:
            return f"{told}. This bound is loose: the best may be up to {percent(self.gap)} lower."
        return f"{told}, within {percent(self.gap)}."

    def __str__(self) -> str:
        if not self.known:
            return self.sentence
        ground = (
            "holds up to the rounding allowed for"
            if self.failure == 0.0
            else f"holds with probability 1 - {self.failure:.0e}"
        )
        steps = f", {self.steps} steps" if self.steps else ""
        return f"{self.sentence}\n  {WAYS[self.how]}; {ground} ({self.seconds:.2g} s{steps})"


def shown_digits(value: float, other: float) -> int:
    """Return how many digits tell two numbers apart, five at least."""
    apart = abs(value - other) / max(abs(value), abs(other), np.finfo(float).tiny)
    return int(np.clip(np.ceil(-np.log10(max(apart, 1e-12))) + 1, 5, 12))


def rounded_down(value: float, digits: int) -> str:
    """Return a number of so many digits that is not above ``value``, so that a bound stays one."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    exact = decimal.Decimal(value)
    places = exact.adjusted() - digits + 1
    down = exact.quantize(decimal.Decimal(1).scaleb(places), rounding=decimal.ROUND_FLOOR)
    return f"{float(down):.{digits}g}"


def percent(part: float) -> str:
    """Return a part of something in percent, two digits, rounded up so that "within" stays true."""
    exact = decimal.Decimal(100.0 * part)
    places = min(exact.adjusted() - 1, 0)
    up = exact.quantize(decimal.Decimal(1).scaleb(places), rounding=decimal.ROUND_CEILING)
    return f"{up:f}%"

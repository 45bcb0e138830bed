"""Schedules for lambda, the weight of ||U - V||^2 in the split problem."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.run.memory import Kept, Layout
from symnmf.run.objective import identity
from symnmf.run.state import Point, State
from symnmf.storage import SymmetricMatrix
from symnmf.storage.spectrum import lanczos, spectrum

__all__ = [
    "Adaptive",
    "Coupling",
    "Fixed",
    "Geometric",
    "LargestEntrySquared",
    "Rising",
    "Shrinking",
    "Theory",
    "TheoryPaper",
    "as_coupling",
]

#: Least computed lambda, in units of ||X||_F: strong convexity is what the theorems stand on.
LEAST = 1e-8


def _require_positive(value: float, argument: str) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and value > 0):
        raise InputError(f"{argument} must be a positive number, got {value!r}.")


class Coupling(ABC):
    """A rule for lambda. Parameters only: what it remembers goes into ``state.schedule``."""

    #: how the first lambda grows with X: 0 for the caller's own number, 1 for one in X's units
    power: ClassVar[int] = 1

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        """Return what ``State.schedule`` holds for an n x n matrix X of ``dtype``."""
        return {}

    @abstractmethod
    def start(self, X: SymmetricMatrix, state: State) -> float:
        """Return lambda for the first iteration, from X and the start U_0 = V_0."""

    def next(self, X: SymmetricMatrix, state: State) -> float:
        """Return lambda for the iteration after ``state``; by default the same again."""
        return state.coupling


@dataclass(frozen=True)
class Adaptive(Coupling):
    """The paper's rule (eq. update lambda):

    ``lambda_{k+1} = lambda_k (||U_k||^2 + ||V_k||^2) / (2 |<U_k, V_k>|)``, from ``initial``.

    It is computed as 1 + (||U - V||^2) / (2 <U, V>), the same number without the cancellation;
    with more than two factors both are sums over all pairs.
    The rule has no unit of its own, so ``initial`` does not follow the scale of X.
    """

    power: ClassVar[int] = 0

    initial: float = 1e-5

    def __post_init__(self) -> None:
        _require_positive(self.initial, "coupling's initial value")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return self.initial

    def next(self, X: SymmetricMatrix, state: State) -> float:
        pairs = itertools.combinations(state.factors, 2)
        sums = np.sum([X.ops.pair(p.values, q.values) for p, q in pairs], axis=0)
        apart, together = float(sums[0]), float(sums[1])
        if together <= 0.0:  # orthogonal factors (both zero, say): the formula is not defined
            return state.coupling
        grown = state.coupling * (1.0 + apart / (2.0 * together))
        return grown if np.isfinite(grown) else state.coupling


@dataclass(frozen=True)
class Fixed(Coupling):
    """A constant lambda."""

    power: ClassVar[int] = 0

    value: float

    def __post_init__(self) -> None:
        _require_positive(self.value, "coupling")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return float(self.value)


@dataclass(frozen=True)
class Geometric(Coupling):
    """Kuang, Yun and Park (2015): lambda grows by ``factor`` until ||U-V||/||V|| < ``until``."""

    power: ClassVar[int] = 0

    initial: float = 1e-5
    factor: float = 1.01
    until: float = 1e-8

    def __post_init__(self) -> None:
        _require_positive(self.initial, "coupling's initial value")
        if not self.factor > 1.0:
            raise InputError(f"coupling's factor must be above 1, got {self.factor!r}.")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return self.initial

    def next(self, X: SymmetricMatrix, state: State) -> float:
        apart, _, second = X.ops.pair(state.U.values, state.V.values)
        if apart < self.until**2 * second:
            return state.coupling
        grown = state.coupling * self.factor
        return grown if np.isfinite(grown) else state.coupling


@dataclass(frozen=True)
class LargestEntrySquared(Coupling):
    """The fixed lambda = max(X)^2 of Kuang's published code; it does not follow the scale of X."""

    power: ClassVar[int] = 2

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return X.largest() ** 2


def _misfit(X: SymmetricMatrix, U0: Point) -> float:
    """Return ||X - U_0 U_0^T||_F."""
    total = identity(X, X.ops.inner(U0.product(X), U0.values), U0.gram, U0.gram)
    return float(np.sqrt(max(total, 0.0)))


def papers_bound(X: SymmetricMatrix, U0: Point) -> float:
    """Return the paper's lambda-bar of Theorem 3 for the start U_0 = V_0,

    1/2 (||X||_2 + ||X - U_0 U_0^T||_F - sigma_n(X)).
    """
    ends = spectrum(X)
    return 0.5 * (ends.norm + _misfit(X, U0) - ends.smallest)


@dataclass(frozen=True)
class TheoryPaper(Coupling):
    """A fixed lambda just above the paper's lambda-bar, so that its Theorem 3 holds.

    ``margin`` covers the accuracy of the Lanczos eigenvalues.
    """

    margin: float = 1.01

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return max(self.margin * papers_bound(X, state.U), LEAST * X.norm)


@dataclass(frozen=True)
class Theory(Coupling):
    """A fixed lambda just above 1/2 ||X - U_0 U_0^T||_F, enough by Theorem 3'.

    docs/smaller-lambda.md has the proof.
    """

    margin: float = 1.01

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return max(self.margin * 0.5 * _misfit(X, state.U), LEAST * X.norm)


def _objective(X: SymmetricMatrix, state: State) -> float:
    """Return 2 g(U, V) = ||X - U V^T||^2 + lambda ||U - V||^2, without a product."""
    U, V = state.U, state.V
    _, mixed, apart, _ = X.ops.split(U.product(X), U.values, V.values)
    return max(identity(X, mixed, U.gram, V.gram), 0.0) + state.coupling * apart


@dataclass(frozen=True)
class Shrinking(Coupling):
    """lambda follows the objective down, lambda = margin/2 sqrt(2 g), in steps of a tenth or more.

    It never rises and is never below what Theorem 1' asks for; docs/smaller-lambda.md has the
    proof. Below a relative misfit of ``trusted`` the objective has no digits left in which to
    follow it.
    """

    margin: float = 1.01
    step: float = 0.9
    trusted: float = 1e-3

    def _target(self, X: SymmetricMatrix, state: State) -> float:
        misfit = max(np.sqrt(_objective(X, state)), self.trusted * X.norm)
        return float(self.margin * 0.5 * misfit)

    def start(self, X: SymmetricMatrix, state: State) -> float:
        state.coupling = 0.0  # U_0 = V_0: the second term of the objective is 0
        return self._target(X, state)

    def next(self, X: SymmetricMatrix, state: State) -> float:
        target = self._target(X, state)
        return target if target <= self.step * state.coupling else state.coupling


@dataclass(frozen=True)
class Rising(Coupling):
    """A small lambda that rises on evidence against it, with the guarantee of a large one.

    It begins at ``max(share * trace(V^T V) / r, curvature * |lambda_min(X)|)``: along a direction
    (D, -D) the curvature of the split objective contains <X - U U^T, D D^T> + 2 lambda ||D||^2,
    so lambda of about half ``|lambda_min|`` keeps U and V together as a rule. It rises by
    ``growth`` where U and V stay further apart than U moves, and with the factors where these
    have grown by ``follow``; never where 2 lambda > sqrt(2 g) already, since Theorem 3' then
    holds for what is left of the run. So it rises finitely often, and U = V in the limit:
    docs/smaller-lambda.md.
    """

    share: float = 0.1
    curvature: float = 0.55
    growth: float = 1.5
    follow: float = 1.1

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        return {"previous": Kept((n, rank), dtype, least=0.0, tall=True)}

    def _level(self, state: State) -> float:
        return self.share * float(np.trace(state.V.gram)) / state.rank

    def start(self, X: SymmetricMatrix, state: State) -> float:
        state.schedule["previous"] = X.ops.copy(state.U.values)
        low_end = max(0.0, -lanczos(X).smallest)
        return max(self._level(state), self.curvature * low_end, LEAST * X.norm)

    def next(self, X: SymmetricMatrix, state: State) -> float:
        previous = state.schedule["previous"]
        apart, moved = X.ops.distances(state.U.values, state.V.values, previous)
        state.schedule["previous"] = X.ops.copy(state.U.values, out=previous)
        rounding = (1e3 * np.finfo(X.dtype).eps) ** 2 * float(np.trace(state.V.gram))
        stuck = state.iteration > 5 and apart > max(25.0 * moved, rounding)
        wanted = max(self._level(state), self.growth * state.coupling if stuck else 0.0)
        if wanted < self.follow * state.coupling:
            return state.coupling
        safe = 2.0 * state.coupling > np.sqrt(_objective(X, state))
        return state.coupling if safe else wanted


COUPLINGS: dict[str, type[Coupling]] = {
    "adaptive": Adaptive,
    "geometric": Geometric,
    "rising": Rising,
    "shrinking": Shrinking,
    "theory": Theory,
    "theory-paper": TheoryPaper,
    "kuang-fixed": LargestEntrySquared,
}


def as_coupling(coupling: str | float | Coupling) -> Coupling:
    """Return the schedule a name, a number (fixed) or an object stands for."""
    if isinstance(coupling, Coupling):
        return coupling
    if isinstance(coupling, str):
        return lookup(coupling, COUPLINGS, "coupling")()
    _require_positive(coupling, "coupling")
    return Fixed(float(coupling))

"""Schedules for lambda, the weight of ||U - V||^2 in the split problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.matrices import SymmetricMatrix
from symnmf.matrices.spectrum import lanczos, spectrum
from symnmf.naming import lookup
from symnmf.run.objective import identity
from symnmf.run.state import Point, State


def _require_positive(value: float, argument: str) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and value > 0):
        raise InputError(f"{argument} must be a positive number, got {value!r}.")


class Penalty(ABC):
    """A rule for lambda. Parameters only: what it remembers goes into ``state.schedule``."""

    #: how the first lambda grows with X: 0 for the caller's own number, 1 for one in X's units
    power: ClassVar[int] = 1
    #: what of ``State.schedule`` is as tall as U, and so lives where U does
    tall_memory: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def start(self, X: SymmetricMatrix, state: State) -> float:
        """Return lambda for the first iteration, from X and the start U_0 = V_0."""

    def next(self, X: SymmetricMatrix, state: State) -> float:
        """Return lambda for the iteration after ``state``; by default the same again."""
        return state.penalty


@dataclass(frozen=True)
class Adaptive(Penalty):
    """The paper's rule (eq. update lambda):

    lambda_{k+1} = lambda_k (||U_k||^2 + ||V_k||^2) / (2 |<U_k, V_k>|), from ``initial``.

    It is computed as 1 + (||U - V||^2) / (2 <U, V>), the same number without the cancellation.
    The rule has no unit of its own, so ``initial`` does not follow the scale of X.
    """

    power: ClassVar[int] = 0

    initial: float = 1e-5

    def __post_init__(self) -> None:
        _require_positive(self.initial, "penalty's initial value")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return self.initial

    def next(self, X: SymmetricMatrix, state: State) -> float:
        apart, together, _ = X.ops.pair(state.U.values, state.V.values)
        if together <= 0.0:  # orthogonal factors (both zero, say): the formula is not defined
            return state.penalty
        grown = state.penalty * (1.0 + apart / (2.0 * together))
        return grown if np.isfinite(grown) else state.penalty


@dataclass(frozen=True)
class Fixed(Penalty):
    """A constant lambda."""

    power: ClassVar[int] = 0

    value: float

    def __post_init__(self) -> None:
        _require_positive(self.value, "penalty")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return float(self.value)


@dataclass(frozen=True)
class Geometric(Penalty):
    """Kuang, Yun and Park (2015): lambda grows by ``factor`` until ||U-V||/||V|| < ``until``."""

    power: ClassVar[int] = 0

    initial: float = 1e-5
    factor: float = 1.01
    until: float = 1e-8

    def __post_init__(self) -> None:
        _require_positive(self.initial, "penalty's initial value")
        if not self.factor > 1.0:
            raise InputError(f"penalty's factor must be above 1, got {self.factor!r}.")

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return self.initial

    def next(self, X: SymmetricMatrix, state: State) -> float:
        apart, _, second = X.ops.pair(state.U.values, state.V.values)
        if apart < self.until**2 * second:
            return state.penalty
        grown = state.penalty * self.factor
        return grown if np.isfinite(grown) else state.penalty


@dataclass(frozen=True)
class LargestEntrySquared(Penalty):
    """The fixed lambda = max(X)^2 of Kuang's published code; it does not follow the scale of X."""

    power: ClassVar[int] = 2

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return X.largest() ** 2


def theory_bound(X: SymmetricMatrix, U0: Point) -> float:
    """Return the paper's lambda-bar of Theorem 3 for the start U_0 = V_0,

    1/2 (||X||_2 + ||X - U_0 U_0^T||_F - sigma_n(X)).
    """
    ends = spectrum(X)
    misfit = identity(X, X.ops.inner(U0.product(X), U0.values), U0.gram, U0.gram)
    return 0.5 * (ends.norm + float(np.sqrt(max(misfit, 0.0))) - ends.smallest)


@dataclass(frozen=True)
class Theory(Penalty):
    """A fixed lambda just above lambda-bar, so that Theorem 3 holds for the whole run.

    ``margin`` covers the accuracy of the Lanczos eigenvalues.
    """

    margin: float = 1.01

    def start(self, X: SymmetricMatrix, state: State) -> float:
        return self.margin * theory_bound(X, state.U)


@dataclass(frozen=True)
class Robust(Penalty):
    """A rule whose lambda scales with X, so that c^2 X from c U_0 gives c U.

    lambda = max(share * trace(V^T V) / r, curvature * |lambda_min(X)|, floor). Along a direction
    (D, -D) the curvature of the split objective contains <X - U U^T, D D^T> + 2 lambda ||D||^2,
    so lambda of about half |lambda_min| keeps U and V together; the first term keeps it in
    proportion with the factors; and ``floor`` rises by ``growth`` whenever U and V stay further
    apart than U moves.
    """

    tall_memory: ClassVar[frozenset[str]] = frozenset({"previous"})

    share: float = 0.1
    curvature: float = 0.55
    growth: float = 1.5

    def _level(self, X: SymmetricMatrix, state: State) -> float:
        trace, schedule = float(np.trace(state.V.gram)), state.schedule
        return max(
            self.share * trace / state.rank,
            self.curvature * float(schedule["low_end"]),
            float(schedule["floor"]),
        )

    def start(self, X: SymmetricMatrix, state: State) -> float:
        low_end = max(0.0, -lanczos(X).smallest)
        state.schedule["low_end"] = np.array(low_end)
        # never zero, whatever the start: strong convexity is what the theorems stand on
        state.schedule["floor"] = np.array(1e-8 * X.norm)
        state.schedule["previous"] = X.ops.copy(state.U.values)
        return self._level(X, state)

    def next(self, X: SymmetricMatrix, state: State) -> float:
        apart, _, second = X.ops.pair(state.U.values, state.V.values)
        previous = state.schedule["previous"]
        moved, _, _ = X.ops.pair(state.U.values, previous)
        if state.iteration > 5 and apart > 1e-12 * second and apart > 25.0 * moved:
            state.schedule["floor"] = np.array(self.growth * state.penalty)
        state.schedule["previous"] = X.ops.copy(state.U.values, out=previous)
        return self._level(X, state)


PENALTIES: dict[str, type[Penalty]] = {
    "adaptive": Adaptive,
    "robust": Robust,
    "geometric": Geometric,
    "theory": Theory,
    "kuang-fixed": LargestEntrySquared,
}


def as_penalty(penalty: str | float | Penalty) -> Penalty:
    """Return the schedule a name, a number (fixed) or an object stands for."""
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str):
        return lookup(penalty, PENALTIES, "penalty")()
    _require_positive(penalty, "penalty")
    return Fixed(float(penalty))

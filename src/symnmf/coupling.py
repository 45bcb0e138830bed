"""Schedules for lambda, the weight of ||U - V||^2 in the split problem."""

from __future__ import annotations

import dataclasses
import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, is_dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import TINY_TO_HUGE, check_fields, check_ranges
from symnmf.errors import InputError
from symnmf.kinds import is_number
from symnmf.naming import lookup, shown
from symnmf.objectives import MatrixObjective, Objective
from symnmf.state import Kept, Layout, State
from symnmf.storage.spectrum import host_product, lanczos_ends

__all__ = ["Adaptive", "Geometric", "Rising", "Shrinking"]

#: Least computed lambda, in units of ||X||_F: strong convexity is what the theorems stand on.
LEAST = 1e-8


class Coupling(ABC):
    """A rule for lambda. Parameters only: what it remembers goes into ``state.schedule``."""

    #: whether it is defined for matrices only
    for_matrices: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if is_dataclass(self):
            check_fields(self)

    def memory(self, f: Objective, rank: int) -> Layout:
        """Return what ``State.schedule`` holds for factors of ``rank`` columns."""
        return {}

    def check(self, f: Objective) -> None:
        """Refuse an objective that the rule is not for, before any work is done."""
        if self.for_matrices and not isinstance(f, MatrixObjective):
            raise InputError(
                f"coupling {type(self).__name__} is for matrices; use 'adaptive', 'theory', "
                f"'shrinking' or a number for a tensor."
            )

    @abstractmethod
    def start(self, f: Objective, state: State) -> float:
        """Return lambda for the first iteration, from X and the start U_0 = V_0."""

    def next(self, f: Objective, state: State) -> float:
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

    initial: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, initial=TINY_TO_HUGE)

    def start(self, f: Objective, state: State) -> float:
        return self.initial

    def next(self, f: Objective, state: State) -> float:
        pairs = [(p.values, q.values) for p, q in itertools.combinations(state.factors, 2)]
        apart = sum(f.ops.apart(*pair) for pair in pairs)
        together = sum(f.ops.inner(*pair) for pair in pairs)
        if together <= 0.0:  # orthogonal factors (both zero, say): the formula is not defined
            return state.coupling
        grown = state.coupling * (1.0 + apart / (2.0 * together))
        return grown if np.isfinite(grown) else state.coupling


@dataclass(frozen=True)
class Fixed(Coupling):
    """A constant lambda."""

    value: float

    def __post_init__(self) -> None:
        if not (is_number(self.value) and np.isfinite(float(self.value)) and self.value > 0):
            raise InputError(f"coupling must be a positive number, got {shown(self.value)}.")

    def start(self, f: Objective, state: State) -> float:
        return float(self.value)


@dataclass(frozen=True)
class Geometric(Coupling):
    """Kuang, Yun and Park (2015): lambda grows by ``factor`` until ||U-V||/||V|| < ``until``."""

    initial: float = 1e-5
    factor: float = 1.01
    until: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, initial=TINY_TO_HUGE, factor=(1.0, 1e100), until=(0.0, 1e100))

    def start(self, f: Objective, state: State) -> float:
        return self.initial

    def next(self, f: Objective, state: State) -> float:
        apart = f.ops.apart(state.U.values, state.V.values)
        if math.sqrt(apart) < self.until * math.sqrt(state.V.size):
            return state.coupling
        grown = state.coupling * self.factor
        return grown if np.isfinite(grown) else state.coupling


@dataclass(frozen=True)
class LargestEntrySquared(Coupling):
    """The fixed lambda = max(X)^2 of Kuang's published code; it does not follow the scale of X."""

    def start(self, f: Objective, state: State) -> float:
        return f.largest() ** 2


def _start_misfit(f: Objective, state: State) -> float:
    """Return 2 g at the start U_0 = V_0: for the plain objective, ||X - U_0 U_0^T||_F^2."""
    return f.twice_split(dataclasses.replace(state, coupling=0.0))


def _least(f: Objective) -> float:
    return LEAST / f.step_length()


def papers_bound(f: Objective, state: State) -> float:
    """Return the paper's lambda-bar of Theorem 3 for the start U_0 = V_0,

    1/2 (||X||_2 + ||X - U_0 U_0^T||_F - sigma_n(X)).
    """
    ends = lanczos_ends(f.shape[0], lambda v: host_product(f.storage, v), steps=100)
    return 0.5 * (max(map(abs, ends)) - ends.smallest) + f.coupling_bound(_start_misfit(f, state))


@dataclass(frozen=True)
class TheoryPaper(Coupling):
    """A fixed lambda just above the paper's lambda-bar, so that its Theorem 3 holds.

    ``margin`` covers the accuracy of the Lanczos eigenvalues.
    """

    for_matrices: ClassVar[bool] = True

    margin: float = 1.01

    def start(self, f: Objective, state: State) -> float:
        return max(self.margin * papers_bound(f, state), _least(f))


@dataclass(frozen=True)
class Theory(Coupling):
    """A fixed lambda just above the objective's bound for the start, enough by Theorem 3'.

    For 1/2 ||X - U U^T||_F^2 the bound is 1/2 ||X - U_0 U_0^T||_F; with weights of at most 1 the
    norm is that of the observed entries with their weights. docs/theory/rules.md has the proof.
    """

    margin: float = 1.01

    def start(self, f: Objective, state: State) -> float:
        return max(self.margin * f.coupling_bound(_start_misfit(f, state)), _least(f))


@dataclass(frozen=True)
class Shrinking(Coupling):
    """lambda follows the objective's bound at 2 g down, in steps of a tenth or more.

    It never rises and is never below what Theorem 1' asks for; docs/theory/rules.md has the
    proof. Below a relative misfit of ``trusted`` the objective has no digits left in which to
    follow it.
    """

    margin: float = 1.01
    step: float = 0.9
    trusted: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, step=(0.0, 1.0), trusted=(0.0, 1.0))

    def _target(self, f: Objective, state: State) -> float:
        twice = max(f.twice_split(state), self.trusted**2 * f.sqnorm)
        return self.margin * f.coupling_bound(twice)

    def start(self, f: Objective, state: State) -> float:
        state.coupling = 0.0  # U_0 = V_0: the second term of the objective is 0
        return self._target(f, state)

    def next(self, f: Objective, state: State) -> float:
        target = self._target(f, state)
        return target if target <= self.step * state.coupling else state.coupling


@dataclass(frozen=True)
class Rising(Coupling):
    """A small lambda that rises on evidence against it, with the guarantee of a large one.

    It begins at ``max(share * trace(V^T V) / r, curvature * |lambda_min(X)|)``: along a direction
    (D, -D) the curvature of the split objective contains <X - U U^T, D D^T> + 2 lambda ||D||^2,
    so lambda of about half ``|lambda_min|`` keeps U and V together as a rule. It rises by
    ``growth`` where U and V stay further apart than U moves, and with the factors where these
    have grown by ``follow``; never above the bound of Theorem 3' already, since Theorem 3' then
    holds for what is left of the run. So it rises finitely often, and U = V in the limit:
    docs/theory/rules.md.
    """

    for_matrices: ClassVar[bool] = True

    share: float = 0.1
    curvature: float = 0.55
    growth: float = 1.5
    follow: float = 1.1

    def memory(self, f: Objective, rank: int) -> Layout:
        return {"previous": Kept((f.shape[0], rank), f.dtype, least=0.0, tall=True)}

    def _level(self, state: State) -> float:
        return self.share * float(np.trace(state.V.gram)) / state.rank

    def start(self, f: Objective, state: State) -> float:
        state.schedule["previous"] = f.ops.copy(state.U.values)
        assert isinstance(f, MatrixObjective)
        nothing = f.ops.zeros((f.shape[0], 1), f.dtype)
        ends = lanczos_ends(  # of W o X
            f.shape[0], lambda v: f.residual_times_array(nothing, nothing, v[:, None])[:, 0]
        )
        low_end = max(0.0, -ends.smallest)
        return max(self._level(state), self.curvature * low_end, _least(f))

    def next(self, f: Objective, state: State) -> float:
        previous = state.schedule["previous"]
        apart, moved = (f.ops.apart(state.U.values, V) for V in (state.V.values, previous))
        state.schedule["previous"] = f.ops.copy(state.U.values, out=previous)
        rounding = (1e3 * np.finfo(f.dtype).eps) ** 2 * float(np.trace(state.V.gram))
        stuck = state.iteration > 5 and apart > max(25.0 * moved, rounding)
        wanted = max(self._level(state), self.growth * state.coupling if stuck else 0.0)
        if wanted < self.follow * state.coupling:
            return state.coupling
        safe = state.coupling > f.coupling_bound(f.twice_split(state))
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
    return Fixed(coupling)

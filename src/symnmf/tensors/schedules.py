"""Schedules for lambda, the weight of sum_{p<q} ||U_p - U_q||^2; see docs/theory/tensors.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.coupling import Adaptive, Coupling, as_coupling
from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.run.objective import measure
from symnmf.run.state import State
from symnmf.tensors.measuring import fitting_sqnorm
from symnmf.tensors.tensor import SymmetricTensor


def theory_bound(order: int, norm: float, misfit: float) -> float:
    r"""Return a lambda above which a monotone run from equal factors ends with equal factors.

    With rho = ``misfit`` = ||T - [[U_0, ..., U_0]]|| and M = ||T|| + rho it is the larger of
    rho (2^(d-1) M)^((d-2)/d) / d and (2^(d-2) rho^(d-1) / d)^(2/d); of order 2, rho / 2.
    """
    total = norm + misfit
    large = misfit * (2.0 ** (order - 1) * total) ** ((order - 2) / order) / order
    small = (2.0 ** (order - 2) * misfit ** (order - 1) / order) ** (2.0 / order)
    return max(large, small)


def _require_all_observed(T: SymmetricTensor, name: str) -> None:
    if not T.repeats_observed:
        raise InputError(
            f"coupling {name!r} needs every entry of T observed, or a column could grow unseen; "
            f"use 'adaptive', a number, or repeated='observed'."
        )


@dataclass(frozen=True)
class TensorTheory(Coupling):
    """A fixed lambda just above the bound of the start."""

    margin: float = 1.01

    def start(self, X: SymmetricTensor, state: State) -> float:  # type: ignore[override]
        _require_all_observed(X, "theory")
        sqnorm = fitting_sqnorm(X, [state.U.values] * X.order, state.U.product(X))
        return self.margin * theory_bound(X.order, X.norm, float(np.sqrt(sqnorm)))


@dataclass(frozen=True)
class TensorShrinking(TensorTheory):
    """The bound at the objective reached so far, followed down in steps of a tenth or more.

    It never rises, and neither does the objective; where that ends above zero there are finitely
    many steps, so that the analysis of a constant lambda holds from the last one on.
    """

    step: float = 0.9

    def next(self, X: SymmetricTensor, state: State) -> float:  # type: ignore[override]
        reached = float(np.sqrt(2.0 * measure(X, state).objective))
        bound = self.margin * theory_bound(X.order, X.norm, reached)
        # never zero, whatever the fit: strong convexity is what the theorem stands on
        floor = 1e-12 * X.norm ** (2.0 - 2.0 / X.order)
        target = max(bound, floor)
        return target if target <= self.step * state.coupling else state.coupling


COUPLINGS: dict[str, Any] = {
    "adaptive": Adaptive,
    "theory": TensorTheory,
    "shrinking": TensorShrinking,
}


def default_coupling(T: SymmetricTensor) -> Coupling:
    """Return the schedule where the caller names none: the guarantee where it can be had."""
    return TensorShrinking() if T.repeats_observed else Adaptive()


def as_tensor_coupling(coupling: str | float | Coupling) -> Coupling:
    """Return the schedule a name, a number (fixed) or an object stands for."""
    if isinstance(coupling, str):
        chosen: Coupling = lookup(coupling, COUPLINGS, "coupling")()
        return chosen
    return as_coupling(coupling)

"""What the theorems say about a finished run, checked numerically. It can say no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.matrices import SymmetricMatrix, as_symmetric
from symnmf.matrices.spectrum import spectrum
from symnmf.parallel import one_blas_thread
from symnmf.run.objective import measure, rounding_level
from symnmf.run.result import History, Result
from symnmf.run.state import State
from symnmf.run.units import Units

#: By how much of itself an objective may rise through rounding, per precision of X.
ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}


@dataclass(frozen=True)
class Certificate:
    """What was reached, in numbers and in one sentence.

    Attributes
    ----------
    consensus : float
        ||U - V||_F / ||V||_F.
    stationarity : float
        Natural residual of the original problem at U, relative to the start's.
    penalised_stationarity : float
        The same for the split problem at (U, V) with the run's last lambda.
    theorem1_left, theorem1_right : float
        ||U V^T||_2 and 2 lambda + sigma_n(X). Where the first is smaller, Theorem 1 says that a
        critical point of the split problem has U = V and is critical for the original one.
    penalty, penalty_bound : float
        The run's last lambda, and lambda-bar of Theorem 3 for the run's start. Above the bound
        convergence to U = V is guaranteed beforehand.
    monotone : bool
        Whether the recorded objective never rose while lambda was constant.
    status : str
        How the run ended.
    splits : bool
        Whether the method had two factors; without, the theorems on lambda do not apply.
    at_rounding : bool
        Whether the residual is as small as the precision of X lets it be.
    tol : float
        What ``consensus`` and ``stationarity`` had to be under.
    """

    consensus: float
    stationarity: float
    penalised_stationarity: float
    theorem1_left: float
    theorem1_right: float
    penalty: float
    penalty_bound: float
    monotone: bool
    status: str
    splits: bool
    at_rounding: bool
    tol: float

    @property
    def theorem1(self) -> bool:
        """Whether the condition of Theorem 1 holds."""
        return self.theorem1_left < self.theorem1_right

    @property
    def certified(self) -> bool:
        """Whether U is, to ``tol``, one factor and a critical point of the original problem."""
        return self.consensus <= self.tol and self._stationary

    @property
    def _stationary(self) -> bool:
        return self.stationarity <= self.tol or self.at_rounding

    @property
    def _only_rounding(self) -> bool:
        return self.at_rounding and self.stationarity > self.tol

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.certified:
            point = f"U is a critical point of symmetric NMF to the tolerance {self.tol:.2g}"
            if not self.splits:
                return f"Certified: {point}."
            return f"Certified: U = V and {point}."
        reasons = []
        if self.consensus > self.tol:
            reasons.append(f"U and V differ by {self.consensus:.2g}")
        if not self._stationary:
            reasons.append(f"U is not stationary ({self.stationarity:.2g})")
        return (
            f"Not certified: {' and '.join(reasons)}, above {self.tol:.2g}; let the run go on"
            + (" or raise the penalty." if self.consensus > self.tol else ".")
        )

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"  stationarity of the original problem   {self.stationarity:.3e}"
            + (" (the precision of X allows no less)" if self._only_rounding else ""),
        ]
        if self.splits:
            relation, holds = ("<", "holds") if self.theorem1 else (">=", "does not hold")
            above = "above" if self.penalty > self.penalty_bound else "below"
            lines += [
                f"  stationarity of the penalised problem  {self.penalised_stationarity:.3e}",
                f"  consensus ||U - V|| / ||V||            {self.consensus:.3e}",
                f"  Theorem 1's condition {holds}: ||U V^T||_2 = {self.theorem1_left:.4g} "
                f"{relation} 2 lambda + sigma_n(X) = {self.theorem1_right:.4g}",
                f"  Theorem 3: lambda = {self.penalty:.4g}, {above} the bound "
                f"{self.penalty_bound:.4g}",
            ]
        rose = "never rose" if self.monotone else "ROSE"
        when = " while lambda was constant" if self.splits else ""
        lines.append(f"  the objective {rose}{when}; run ended: {self.status}")
        return "\n".join(lines)


def certify(X: Any, result: Result, *, tol: float = 1e-5) -> Certificate:
    """Check a result against the matrix it came from; see :class:`Certificate`."""
    matrix = as_symmetric(X)
    if matrix.shape[0] != result.U.shape[0]:
        raise InputError(
            f"X has {matrix.shape[0]} rows but the result has {result.U.shape[0]}; pass the "
            f"matrix that was factorized."
        )
    units = Units.of(matrix)
    scaled = units.matrix(matrix)
    splits = result.penalty > 0.0
    U = units.factor_in(result.U)
    V = units.factor_in(result.V) if splits else U
    penalty = result.penalty / units.square
    with one_blas_thread():
        ops = scaled.ops
        state = State.at(scaled, ops.put(U), ops.put(V) if splits else None, penalty=penalty)
        return _certify(scaled, state, result, splits, units, tol)


def _certify(
    X: SymmetricMatrix, state: State, result: Result, splits: bool, units: Units, tol: float
) -> Certificate:
    ends = spectrum(X)
    at_rounding = False
    if X.sqnorm == 0.0:
        consensus = stationarity = penalised = 0.0 if not state.U.gram.any() else np.inf
    else:
        measured = measure(X, state)
        consensus = measured.disagreement
        at_rounding = measured.residual <= rounding_level(X, state.U)
        reference = result.start_residual * X.norm**1.5
        stationarity = measured.residual / reference if reference > 0.0 else 0.0
        if splits and reference > 0.0:
            penalised = _split_residual(X, state) / reference
        else:
            penalised = stationarity
    # the nonzero eigenvalues of (U V^T)(V U^T) are those of (U^T U)(V^T V)
    top = float(np.sqrt(max(np.linalg.eigvals(state.U.gram @ state.V.gram).real.max(), 0.0)))
    misfit = result.start_misfit / units.square
    bound = 0.5 * (ends.norm + misfit - ends.smallest)
    return Certificate(
        consensus=consensus,
        stationarity=stationarity,
        penalised_stationarity=penalised,
        theorem1_left=top * units.square,
        theorem1_right=(2.0 * state.penalty + ends.smallest) * units.square,
        penalty=result.penalty,
        penalty_bound=bound * units.square,
        monotone=never_rose(result.history, ROUNDING[X.dtype]),
        status=result.status,
        splits=splits,
        at_rounding=at_rounding,
        tol=tol,
    )


def _split_residual(X: SymmetricMatrix, state: State) -> float:
    """Return the natural residual of g(U, V) in both factors, with step 1/||X||_F."""
    ops, t = X.ops, 1.0 / X.norm
    total = 0.0
    for own, other, sign in ((state.U, state.V, 1.0), (state.V, state.U, -1.0)):
        pull = ops.combine((state.penalty, state.U.values), (-state.penalty, state.V.values))
        # grad_U g = U V^T V - X V + lambda (U - V), half of what `gradient` returns
        slope = ops.combine(
            (0.5, ops.gradient(own.values, other.product(X), other.gram)), (sign, pull)
        )
        moved = ops.combine((1.0, own.values), (-1.0, ops.descend(own.values, slope, t)))
        total += ops.inner(moved, moved)
    return float(np.sqrt(total) / t)


def never_rose(history: History, slack: float = ROUNDING[np.dtype(np.float64)]) -> bool:
    """Return whether the objective never rose (beyond rounding) while lambda was constant."""
    objective, penalty = history["objective"], history["penalty"]
    constant = np.abs(np.diff(penalty)) <= 1e-12 * np.abs(penalty[1:])
    if not len(objective):
        return True
    # rounding is in proportion to ||X||^2, which the first objective stands for
    allowed = objective[:-1] * (1.0 + slack) + 1e-3 * slack * objective[0]
    return bool(np.all(objective[1:][constant] <= allowed[constant]))

"""What the theorems say about a finished run, checked numerically. It can say no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.parallel import one_blas_thread
from symnmf.run.objective import REFERENCE_SHARE, measure, rounding_level
from symnmf.run.problem import Problem
from symnmf.run.result import History, Result
from symnmf.run.state import State
from symnmf.storage import SymmetricMatrix
from symnmf.storage.spectrum import largest_eigenvalue

__all__ = ["Certificate", "certify"]

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
        Natural residual of the original problem at U, over a tenth of ||X||_F ||U||_F.
    penalized_stationarity : float
        The same for the split problem at (U, V) with the run's last lambda.
    curvature : float
        mu, the largest eigenvalue of (U V^T + V U^T) / 2 - X. Where it is below 2 lambda, a
        critical point of the split problem has U = V and is critical for the original one
        (Theorem 1', docs/smaller-lambda.md). NaN for a method without lambda.
    consensus_bound : float
        What Theorem 1' says ||U - V||_F / ||V||_F cannot exceed, from the gradients as they are;
        infinite where its condition does not hold.
    coupling, coupling_bound : float
        The run's last lambda, and 1/2 ||X - U_0 U_0^T||_F: a constant lambda above it is enough
        for U = V, whatever happens later (Theorem 3').
    constant_coupling : bool
        Whether lambda stayed what it was.
    monotone : bool
        Whether the recorded objective never rose while lambda did not.
    status : str
        How the run ended.
    splits : bool
        Whether the method had two factors; without, the theorems on lambda do not apply.
    dead_columns : tuple of int
        Columns of U that are zero.
    at_rounding : bool
        Whether the residual is as small as the precision of X lets it be.
    tol : float
        What had to be met.
    """

    consensus: float
    stationarity: float
    penalized_stationarity: float
    curvature: float
    consensus_bound: float
    coupling: float
    coupling_bound: float
    constant_coupling: bool
    monotone: bool
    status: str
    splits: bool
    dead_columns: tuple[int, ...]
    at_rounding: bool
    tol: float

    @property
    def theorem1(self) -> bool:
        """Whether the condition of Theorem 1' holds: mu < 2 lambda."""
        return self.splits and self.curvature < 2.0 * self.coupling

    @property
    def theorem3(self) -> bool:
        """Whether that of Theorem 3' does: lambda constant and above the bound for the start."""
        return self.splits and self.constant_coupling and self.coupling > self.coupling_bound

    @property
    def ground(self) -> Literal["residual", "theorem"] | None:
        """What the certificate rests on.

        "residual": the residual of the original problem, measured at U, is within ``tol``.
        "theorem": that of the split problem is, and Theorem 1' bounds ||U - V|| by ``tol``.
        """
        if self.stationarity <= self.tol or self.at_rounding:
            return "residual"
        if self.penalized_stationarity <= self.tol and self.consensus_bound <= self.tol:
            return "theorem"
        return None

    @property
    def certified(self) -> bool:
        """Whether U is, to ``tol``, a critical point of the original problem."""
        return self.ground is not None

    @property
    def _only_rounding(self) -> bool:
        return self.at_rounding and self.stationarity > self.tol

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        point = f"U is a critical point of symmetric NMF to the tolerance {self.tol:.2g}"
        if self.ground == "theorem":
            return f"Certified by Theorem 1': U = V to {self.consensus_bound:.2g}, so {point}."
        if self.certified and not self.splits:
            return f"Certified: {point}."
        if self.certified and self.consensus <= self.tol:
            return f"Certified by its residual: U = V and {point}."
        if self.certified:
            return (
                f"Certified by its residual: {point}, though V still differs from it by "
                f"{self.consensus:.2g}."
            )
        if not np.isfinite(self.stationarity):
            return "Not certified: U is zero or not finite; start from another point."
        apart = self.consensus > self.tol
        return (
            f"Not certified: U is not stationary ({self.stationarity:.2g}, above {self.tol:.2g})"
            + (f" and U and V differ by {self.consensus:.2g}" if apart else "")
            + "; let the run go on"
            + (" or raise the coupling." if apart else ".")
        )

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"  stationarity of the original problem   {self.stationarity:.3e}"
            + (" (the precision of X allows no less)" if self._only_rounding else ""),
        ]
        if self.splits:
            lines += self._on_lambda()
        if self.dead_columns:
            count, names = len(self.dead_columns), ", ".join(map(str, self.dead_columns))
            lines.append(
                f"  {count} zero column{'s' if count > 1 else ''} ({names}): critical, but as a "
                f"rule a saddle; try another start or solver='auto'"
            )
        rose = "never rose" if self.monotone else "ROSE"
        when = " while lambda did not" if self.splits else ""
        lines.append(f"  the objective {rose}{when}; run ended: {self.status}")
        return "\n".join(lines)

    def _on_lambda(self) -> list[str]:
        relation, holds = ("<", "holds") if self.theorem1 else (">=", "does not hold")
        bounded = f", so ||U - V|| / ||V|| <= {self.consensus_bound:.3g}" if self.theorem1 else ""
        lines = [
            f"  stationarity of the penalised problem  {self.penalized_stationarity:.3e}",
            f"  consensus ||U - V|| / ||V||            {self.consensus:.3e}",
            f"  Theorem 1' {holds}: mu = {self.curvature:.4g} {relation} 2 lambda = "
            f"{2.0 * self.coupling:.4g}{bounded}",
        ]
        if self.constant_coupling:
            above = "above" if self.theorem3 else "not above"
            lines.append(
                f"  Theorem 3': lambda = {self.coupling:.4g}, {above} the bound "
                f"{self.coupling_bound:.4g} of the start"
            )
        return lines


def certify(X: Any, result: Result, *, tol: float = 1e-5, **observing: Any) -> Certificate:
    """Check a result against the matrix it came from; see :class:`Certificate`.

    ``observing`` is what :func:`symnmf.factorize` was told of X besides: mask, weights, missing,
    ignore_diagonal, allow_negative.
    """
    problem = Problem.of(X, **observing)
    matrix = problem.X
    if matrix.shape[0] != result.U.shape[0]:
        raise InputError(
            f"X has {matrix.shape[0]} rows but the result has {result.U.shape[0]}; pass the "
            f"matrix that was factorized."
        )
    splits = result.coupling > 0.0
    lambdas = result.history["coupling"]
    known: dict[str, Any] = {
        "coupling": result.coupling,
        "coupling_bound": 0.5 * result.start_misfit,
        "constant_coupling": bool(np.all(lambdas == result.coupling)),
        "monotone": never_rose(result.history, ROUNDING[matrix.dtype]),
        "status": result.status,
        "splits": splits,
        "dead_columns": tuple(map(int, result.dead_columns)),
        "tol": tol,
    }
    problem = problem.for_rank(result.U.shape[1], warn=False)
    units, scaled = problem.units, problem.scaled
    U = units.factor_in(to_host(result.U))
    V = units.factor_in(to_host(result.V)) if splits else U
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        ops, coupling = scaled.ops, result.coupling / units.coupling
        state = State.at(scaled, ops.put(U), ops.put(V) if splits else None, coupling=coupling)
        return Certificate(**known, **_measured(scaled, state, splits, units.data))


def _measured(X: SymmetricMatrix, state: State, splits: bool, unit: float) -> dict[str, Any]:
    """Return what is computed from X and the factors; ``unit`` is that of X."""
    found = {"at_rounding": False, "curvature": np.nan, "consensus_bound": np.inf}
    if X.sqnorm == 0.0:
        number = 0.0 if not state.U.gram.any() else np.inf
        return found | dict.fromkeys(
            ("consensus", "stationarity", "penalized_stationarity"), number
        )
    now = measure(X, state)
    found |= {
        "consensus": now.disagreement,
        "stationarity": now.stationarity if np.isfinite(now.error) else np.inf,
        "penalized_stationarity": now.stationarity,
        "at_rounding": now.stationarity <= rounding_level(X.dtype),
    }
    if splits and np.isfinite(now.error):
        found |= _split_measured(X, state, unit)
    return found


def _split_measured(X: SymmetricMatrix, state: State, unit: float) -> dict[str, Any]:
    """Return what concerns the split problem at (U, V) with lambda."""
    get = X.ops.get
    U, V = (get(point.values).astype(np.float64) for point in (state.U, state.V))
    pull = state.coupling * (U - V)
    first, second = state.U.values, state.V.values
    slope_U = U @ state.V.gram - get(X.product_at(first, second, gram=state.V.gram)) + pull
    slope_V = V @ state.U.gram - get(X.product_at(second, first, gram=state.U.gram)) - pull
    moved = np.minimum(U, slope_U / X.norm), np.minimum(V, slope_V / X.norm)
    curvature = largest_eigenvalue(X.shape[0], lambda v: -X.residual_times(first, second, v))
    left = _unbalanced(U, slope_U) - _unbalanced(V, slope_V)
    margin, size = 2.0 * state.coupling - curvature, np.linalg.norm(V)
    bound = np.linalg.norm(left) / margin if margin > 0.0 else np.inf
    return {
        "penalized_stationarity": float(
            np.linalg.norm(np.hstack(moved)) / (REFERENCE_SHARE * np.linalg.norm(U))
        ),
        "curvature": curvature * unit,
        "consensus_bound": float(bound / size),
    }


def _unbalanced(factor: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the part of a gradient that the bounds do not balance; zero at a critical point."""
    return np.where(factor > 0.0, slope, np.minimum(slope, 0.0))


def never_rose(history: History, slack: float = ROUNDING[np.dtype(np.float64)]) -> bool:
    """Return whether the objective never rose (beyond rounding) while lambda did not."""
    objective, coupling = history["objective"], history["coupling"]
    still = np.diff(coupling) <= 1e-12 * np.abs(coupling[1:])
    if not len(objective):
        return True
    # rounding is in proportion to ||X||^2, which the first objective stands for
    allowed = objective[:-1] * (1.0 + slack) + 1e-3 * slack * objective[0]
    return bool(np.all(objective[1:][still] <= allowed[still]))

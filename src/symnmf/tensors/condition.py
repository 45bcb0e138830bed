"""What the theorem says about a finished run on a tensor, checked numerically. It can say no."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.parallel import one_blas_thread
from symnmf.run.certificate import ROUNDING, never_rose
from symnmf.run.objective import REFERENCE_SHARE, measure, rounding_level
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.state import Point, State
from symnmf.run.units import Units
from symnmf.storage.spectrum import largest_eigenvalue
from symnmf.tensors.checking import as_tensor
from symnmf.tensors.measuring import step_length
from symnmf.tensors.schedules import theory_bound
from symnmf.tensors.tensor import SymmetricTensor


@dataclass(frozen=True)
class TensorCertificate:
    """What was reached, in numbers and in one sentence.

    Attributes
    ----------
    consensus : float
        The largest ||U_p - U_q||_F / ||U_q||_F.
    stationarity : float
        Natural residual of the original problem at U, over a tenth of ||U||_F.
    penalized_stationarity : float
        The same for the split problem with the run's last lambda.
    theorem_left, theorem_right : float
        The largest lambda_max of the residual contracted with the columns of all factors but two,
        over all pairs and columns, and d lambda. Where the first is smaller, a critical point of
        the split problem has equal factors and is critical for the original one.
    coupling, coupling_bound : float
        The run's last lambda, and the bound for the run's start above which equal factors are
        guaranteed beforehand (NaN where repeated indices are not observed: there is none).
    monotone : bool
        Whether the recorded objective never rose while lambda was constant.
    status : str
        How the run ended.
    order : int
        d.
    splits : bool
        Whether the method had d factors; without, the theorem does not apply.
    at_rounding : bool
        Whether the residual is as small as the precision of T lets it be.
    tol : float
        What ``consensus`` and ``stationarity`` had to be under.
    """

    consensus: float
    stationarity: float
    penalized_stationarity: float
    theorem_left: float
    theorem_right: float
    coupling: float
    coupling_bound: float
    monotone: bool
    status: str
    order: int
    splits: bool
    at_rounding: bool
    tol: float

    @property
    def theorem(self) -> bool:
        """Whether the condition of the theorem holds."""
        return self.theorem_left < self.theorem_right

    @property
    def certified(self) -> bool:
        """Whether U is, to ``tol``, one factor and a critical point of the original problem."""
        return self.consensus <= self.tol and self._stationary

    @property
    def _stationary(self) -> bool:
        return self.stationarity <= self.tol or self.at_rounding

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.certified:
            point = "U is a critical point of symmetric tensor factorization to the tolerance"
            return (
                f"Certified: {'equal factors, and ' if self.splits else ''}{point} {self.tol:.2g}."
            )
        reasons = []
        if self.consensus > self.tol:
            reasons.append(f"the factors differ by {self.consensus:.2g}")
        if not self._stationary:
            reasons.append(f"U is not stationary ({self.stationarity:.2g})")
        raised = " or raise the coupling" if self.consensus > self.tol else ""
        return (
            f"Not certified: {' and '.join(reasons)}, above {self.tol:.2g}; let the run go "
            f"on{raised}."
        )

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"  stationarity of the original problem   {self.stationarity:.3e}",
        ]
        if self.splits:
            relation, holds = ("<", "holds") if self.theorem else (">=", "does not hold")
            above = "above" if self.coupling > self.coupling_bound else "not above"
            lines += [
                f"  stationarity of the penalised problem  {self.penalized_stationarity:.3e}",
                f"  consensus max ||U_p - U_q|| / ||U_q||  {self.consensus:.3e}",
                f"  the theorem's condition {holds}: lambda_max of the contracted residuals "
                f"{self.theorem_left:.4g} {relation} "
                f"{self.order} lambda = {self.theorem_right:.4g}",
            ]
            if np.isfinite(self.coupling_bound):
                lines.append(
                    f"  beforehand: lambda = {self.coupling:.4g}, {above} the bound "
                    f"{self.coupling_bound:.4g}"
                )
        rose = "never rose" if self.monotone else "ROSE"
        when = " while lambda was constant" if self.splits else ""
        lines.append(f"  the objective {rose}{when}; run ended: {self.status}")
        return "\n".join(lines)


def certify(T: Any, result: Result, *, tol: float = 1e-5) -> TensorCertificate:
    """Check a result against the tensor it came from; see :class:`TensorCertificate`."""
    problem = T if isinstance(T, Problem) else Problem.of(as_tensor(T))
    tensor, units = problem.X, problem.units
    if (tensor.shape[0], tensor.order) != (result.U.shape[0], result.order):
        raise InputError(
            f"T has {tensor.shape[0]} rows and order {tensor.order} but the result has "
            f"{result.U.shape[0]} and {result.order}; pass the tensor that was factorized."
        )
    scaled: SymmetricTensor = problem.scaled  # type: ignore[assignment]
    splits = result.coupling > 0.0
    given = (result.U, result.V, *result.others) if splits else (result.U,)
    points = [Point(scaled.ops, scaled.ops.put(units.factor_in(factor))) for factor in given]
    state = State(points[0], points[1] if splits else points[0], others=points[2:])
    state.coupling = units.coupling_in(result.coupling, 0) if splits else 0.0
    with one_blas_thread():
        return _certify(scaled, state, result, units, tol)


def _certify(
    T: SymmetricTensor, state: State, result: Result, units: Units, tol: float
) -> TensorCertificate:
    splits = state.V is not state.U
    at_rounding, left = False, 0.0
    if T.sqnorm == 0.0:
        consensus = stationarity = penalised = 0.0 if not state.U.gram.any() else np.inf
    else:
        measured = measure(T, state)
        consensus = measured.disagreement
        at_rounding = measured.stationarity <= rounding_level(T.dtype)
        stationarity = penalised = measured.stationarity
        if splits:
            penalised = split_stationarity(T, state)
            left = contracted_residual(T, [point.values for point in state.factors])
    misfit = result.start_misfit / units.data
    bound = theory_bound(T.order, T.norm, misfit) if T.repeats_observed else np.nan
    return TensorCertificate(
        consensus=consensus,
        stationarity=stationarity,
        penalized_stationarity=penalised,
        theorem_left=left * units.coupling,
        theorem_right=T.order * result.coupling,
        coupling=result.coupling,
        coupling_bound=bound * units.coupling,
        monotone=never_rose(result.history, ROUNDING[T.dtype]),
        status=result.status,
        order=T.order,
        splits=splits,
        at_rounding=at_rounding,
        tol=tol,
    )


def split_stationarity(T: SymmetricTensor, state: State) -> float:
    """Return the natural residual of g in all factors, in the unit of ``stationarity``."""
    factors = [point.values for point in state.factors]
    step, total = step_length(T), 0.0
    for p, own in enumerate(factors):
        others = [factor for q, factor in enumerate(factors) if q != p]
        gram = np.prod([point.gram for q, point in enumerate(state.factors) if q != p], axis=0)
        product, hidden = T.contract(others), T.model.hidden(factors, p)
        slope = own @ gram - product - (0.0 if hidden is None else hidden)
        slope += state.coupling * sum(own - other for other in others)
        moved = np.minimum(own, step * slope)
        total += float(np.vdot(moved, moved))
    return float(np.sqrt(total / np.trace(state.U.gram)) / REFERENCE_SHARE)


def contracted_residual(T: SymmetricTensor, factors: Sequence[np.ndarray]) -> float:
    r"""Return the largest :math:`\lambda_{max}` of :math:`sym\,R(\cdot, \cdot, w_j)`.

    R = [[U_1, ..., U_d]] - T over the observed entries, contracted with column j of all factors but
    two; the largest over all pairs of factors and all columns.
    """
    worst = -np.inf
    for pair in itertools.combinations(range(T.order), 2):
        rest = [q for q in range(T.order) if q not in pair]
        for j in range(factors[0].shape[1]):
            columns = {q: factors[q][:, j].astype(np.float64) for q in rest}
            worst = max(worst, _largest_eigenvalue(T, factors, pair, columns))
    return float(worst)


def _largest_eigenvalue(
    T: SymmetricTensor,
    factors: Sequence[np.ndarray],
    pair: tuple[int, int],
    columns: dict[int, np.ndarray],
) -> float:
    n, given = T.shape[0], T.contracted(list(columns.values()))
    first, second = pair

    def multiply(vectors: np.ndarray) -> np.ndarray:
        fitted = np.column_stack(
            [
                T.model.against(factors, first, {second: v, **columns})
                + T.model.against(factors, second, {first: v, **columns})
                for v in vectors.T
            ]
        )
        return np.asarray(0.5 * fitted - given @ vectors)

    return largest_eigenvalue(n, multiply)

"""What the theorems say about a finished run, checked numerically. It can say no."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from symnmf.arguments import checked
from symnmf.bounds.bound import Bound
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.objectives import Objective
from symnmf.objectives.objective import REFERENCE_SHARE, rounding_level
from symnmf.parallel import one_blas_thread
from symnmf.run.bounding import quick_bound
from symnmf.run.inspection import looked_at
from symnmf.run.problem import Problem
from symnmf.run.result import History, Result
from symnmf.run.uniqueness import Uniqueness
from symnmf.state import Point, State
from symnmf.steps.second_order import NEGATIVE

#: By how much of itself an objective may rise through rounding, per precision of X.
ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}

#: By how much of ||X||^2 two values of one problem may differ through rounding.
SAME_VALUE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}

#: The objective without weights and terms.
PLAIN = "1/2 ||X - U U^T||^2"


@dataclass(frozen=True)
class Certificate:
    """How good a result is, in numbers and in one sentence.

    Attributes
    ----------
    consensus : float
        ||U - V||_F / ||V||_F.
    stationarity : float
        Natural residual of the original problem at U, relative to a tenth of ||X||_F ||U||_F.
    penalized_stationarity : float
        The same for the split problem at (U, V) with the run's last lambda.
    curvature : float
        mu, the largest eigenvalue of (U V^T + V U^T) / 2 - X, with weights of W o that. If it is
        below d lambda, d = 2, a critical point of the split problem has U = V and is critical for
        the original one (Theorem 1', docs/theory/coupling.md). For a tensor of order d, see
        docs/howto/hypergraphs.md. NaN for a method without lambda.
    consensus_bound : float
        The bound of Theorem 1' on ||U - V||_F / ||V||_F, from the gradients; infinite if its
        condition does not hold.
    coupling, coupling_bound : float
        The run's last lambda, and the objective's bound for the start, 1/2 ||X - U_0 U_0^T||_F for
        the plain one: a constant lambda above it guarantees U = V (Theorem 3'). NaN if there is
        none.
    constant_coupling : bool
        Whether lambda was constant.
    monotone : bool
        Whether the recorded objective never rose while lambda did not.
    status : str
        How the run ended.
    splits : bool
        Whether the method had several factors; otherwise the theorems on lambda do not apply.
    factors : int
        How many the method had: 1, 2 for a split method, d for one on a tensor of order d.
    problem_name : str
        What the sentences call the problem.
    objective : str
        What was minimised.
    dead_columns : tuple of int
        Columns of U that are zero.
    at_rounding : bool
        Whether the residual is as small as the precision of X allows.
    precision : str
        That precision: "float32" or "float64".
    worst_component : float
        The largest stationarity of a connected component of X, each at its own scale; that of X
        itself if it is connected. The norm of X would hide a small component. An entry connects two
        rows if it is above a thousandth of the largest entry of both, or a tenth of that of one.
    components : int
        The number of components.
    lowest_curvature : float
        The lowest curvature of the objective at U that was found, relative to ||X||_F: on the
        entries above 0, and within a column on entries that are 0 with gradient 0. NaN if it was
        not computed: for tensors, and if U is not stationary to 1e-4.
    strict : bool
        Whether every entry that is 0 has a positive gradient, so that the curvature on the others
        says whether U is a local minimum.
    curvature_steps : int
        Lanczos steps, with one product with X each; the true minimum may be slightly lower.
    falls : bool
        Whether the objective falls along some direction: one of negative curvature, or a new
        column instead of a zero one.
    grown_rows : tuple of int
        Rows of U that can grow without limit because of hidden entries.
    zero_is_best : bool
        Whether U = 0 and no column v >= 0 lowers the objective.
    uniqueness : Uniqueness or None
        Whether other factors have the same U U^T, from the zeros of U; None for tensors.
    bound : Bound or None
        A lower bound on the error of every U >= 0 with as many columns; see
        :meth:`symnmf.Result.bound`, which searches longer. None for more than 50 000 rows.
    tol : float
        The tolerance to be met.
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
    factors: int
    problem_name: str
    objective: str
    dead_columns: tuple[int, ...]
    at_rounding: bool
    precision: str
    worst_component: float
    components: int
    lowest_curvature: float
    strict: bool
    curvature_steps: int
    falls: bool
    grown_rows: tuple[int, ...]
    zero_is_best: bool
    uniqueness: Uniqueness | None
    bound: Bound | None
    tol: float

    @property
    def theorem1(self) -> bool:
        """Whether the condition of Theorem 1' holds: mu < d lambda, d = 2 for a matrix."""
        return self.splits and self.curvature < self.factors * self.coupling

    @property
    def theorem3(self) -> bool:
        """Whether that of Theorem 3' does: lambda constant and above the bound for the start."""
        return self.splits and self.constant_coupling and self.coupling > self.coupling_bound

    @property
    def ground(self) -> Literal["residual", "theorem"] | None:
        """What the certificate rests on.

        "residual": the residual of the original problem, measured at U, is within ``tol``, in every
        component of X.
        "theorem": that of the split problem is, and Theorem 1' bounds ||U - V|| by ``tol``. Both
        are norms over all of X, so where X has components each must be stationary too.
        """
        if self.grown_rows or self.falls:
            return None
        small = self.stationarity <= self.tol or self.at_rounding
        if self.zero_is_best or (small and self.worst_component <= self.tol):
            return "residual"
        everywhere = self.components == 1 or self.worst_component <= self.tol
        small = self.penalized_stationarity <= self.tol and self.consensus_bound <= self.tol
        if small and everywhere:
            return "theorem"
        return None

    @property
    def certified(self) -> bool:
        """Whether U is, to ``tol``, a critical point of the original problem and no saddle."""
        return self.ground is not None

    @property
    def _only_rounding(self) -> bool:
        return self.at_rounding and self.stationarity > self.tol

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.zero_is_best:
            return "Certified: U = 0 is the answer, since no column v >= 0 lowers the objective."
        reached = f"to the tolerance {self.tol:.2g}"
        if self._only_rounding:
            reached = f"to {self.stationarity:.2g}, which is all that {self.precision} allows"
        point = f"U is a critical point of {self.problem_name} {reached}{self._order_two}"
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
        if self.grown_rows:
            return (
                f"Not certified: U grows without limit in {rows_named(self.grown_rows)}, since "
                f"entries of X are hidden there; add ridge= to the problem, or observe the "
                f"diagonal."
            )
        if self.falls:
            return (
                "Not certified: U is a critical point, but a saddle. The objective falls along a "
                "direction; go on from here with solver='auto', or try another start."
            )
        if not np.isfinite(self.stationarity):
            return "Not certified: U is zero or not finite; start from another point."
        apart = self.consensus > self.tol
        if self.stationarity <= self.tol and not apart:
            return (
                f"Not certified: U is not stationary in a component of X "
                f"({self.worst_component:.2g} at its own scale, above {self.tol:.2g}); let the run "
                f"go on."
            )
        return (
            f"Not certified: U is not stationary ({self.stationarity:.2g}, above {self.tol:.2g})"
            + (f" and U and V differ by {self.consensus:.2g}" if apart else "")
            + "; let the run go on"
            + (" or raise the coupling." if apart else ".")
        )

    @property
    def _order_two(self) -> str:
        """What the curvature adds to the sentence."""
        if self.lowest_curvature >= NEGATIVE:
            local = "a local minimum to second order"
            return f", and {local}" if self.strict else ", with no way down to second order found"
        return ""

    def __str__(self) -> str:
        if self.zero_is_best:
            return self.verdict
        lines = [
            self.verdict,
            f"  stationarity of the original problem   {self.stationarity:.3e}"
            + (" (the precision of X allows no less)" if self._only_rounding else ""),
        ]
        if self.components > 1:
            lines.append(
                f"  the worst of {self.components} components of X      "
                f"{self.worst_component:.3e} at its own scale"
            )
        if np.isfinite(self.lowest_curvature):
            lines.append(
                f"  lowest curvature found                 {self.lowest_curvature:.3e} "
                f"({self.curvature_steps} Lanczos steps)"
            )
        if self.splits:
            lines += self._on_lambda()
        if self.bound is not None and self.bound.known:
            lines.append(f"  {self.bound.sentence}")
        if self.uniqueness is not None:
            lines.append(f"  {self.uniqueness}")
        if self.dead_columns:
            count, names = len(self.dead_columns), ", ".join(map(str, self.dead_columns))
            better = "a column there lowers" if self.falls else "no column was found that lowers"
            lines.append(
                f"  {count} zero column{'s' if count > 1 else ''} ({names}): {better} the objective"
            )
        if self.objective != PLAIN:
            lines.append(f"  minimised: {self.objective}")
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
            f"  Theorem 1' {holds}: mu = {self.curvature:.4g} {relation} {self.factors} lambda = "
            f"{self.factors * self.coupling:.4g}{bounded}",
        ]
        if self.constant_coupling and np.isfinite(self.coupling_bound):
            above = "above" if self.theorem3 else "not above"
            lines.append(
                f"  Theorem 3': lambda = {self.coupling:.4g}, {above} the bound "
                f"{self.coupling_bound:.4g} of the start"
            )
        return lines


@checked()
def certify(problem: Any, result: Result, *, tol: float = 1e-5) -> Certificate:
    """Check a result against the problem it was fitted to; see :class:`Certificate`.

    ``problem`` is a :class:`symnmf.Problem`, X if the problem had no other options, or None for
    the problem that the result remembers.
    """
    problem = problem_of(problem, result).for_rank(result.U.shape[1], warn=False)
    f = problem.objective
    splits = result.coupling > 0.0
    given = (*result.factors, *result.others) if splits else result.factors[:1]
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        points = [Point(f.ops, f.ops.put(to_host(factor))) for factor in given]
        state = State(points[0], points[1] if splits else points[0], others=points[2:])
        state.coupling = result.coupling if splits else 0.0
        bound = np.nan
        if f.bounded and splits:
            start = result.start_misfit
            bound = f.coupling_bound(start * start)  # ** raises where it overflows
        return Certificate(
            **_measured(f, state, splits),
            coupling=result.coupling,
            coupling_bound=bound,
            constant_coupling=bool(np.all(result.history["coupling"] == result.coupling)),
            monotone=_never_rose(result.history, ROUNDING[f.dtype]),
            status=result.status,
            splits=splits,
            factors=len(state.factors),
            problem_name=f.problem_name,
            objective=problem.objective.describe(),
            dead_columns=tuple(map(int, result.dead_columns)),
            precision=str(f.dtype),
            **looked_at(f, points[0], tol),
            bound=quick_bound(problem, result),
            tol=tol,
        )


def rows_named(rows: Sequence[int]) -> str:
    """Return "row 3" or "rows 3, 7 and 12 more" for a sentence."""
    shown = ", ".join(map(str, rows[:3]))
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def problem_of(given: Any, result: Result) -> Problem:
    """Return what a result is to be checked against; refuse what it was not fitted to."""
    if not isinstance(result, Result):
        raise InputError(f"result must be a symnmf.Result, got {type(result).__name__}.")
    if given is None:
        if result.problem is None:
            raise InputError(
                "the result was saved or pickled without X; pass X, or the Problem if it had "
                "options besides X."
            )
        return result.problem
    problem = Problem.of(given)
    f, rows = problem.objective, result.factors[0].shape[0]
    if f.shape[0] != rows:
        raise InputError(
            f"X has {f.shape[0]} rows but the result has {rows}; pass the matrix that was "
            f"factorized."
        )
    if result.status != "diverged" and not _same_problem(problem, result):
        raise InputError(
            f"the result was not fitted to {f.describe()} for this X; pass what was factorized, as "
            f"a symnmf.Problem if there was a mask, weights or a term."
        )
    return problem


def _same_problem(problem: Problem, result: Result) -> bool:
    """Whether a result can belong to a problem, by the value at its U."""
    f = problem.for_rank(result.U.shape[1], warn=False).objective
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        value = f.value(Point(f.ops, f.ops.put(result.factors[0].astype(f.dtype))))
    return bool(abs(value - result.value) <= SAME_VALUE[f.dtype] * (f.sqnorm + abs(result.value)))


def _measured(f: Objective, state: State, splits: bool) -> dict[str, Any]:
    """Return what is computed from the factors."""
    found = {"at_rounding": False, "curvature": np.nan, "consensus_bound": np.inf}
    if f.sqnorm == 0.0:
        number = 0.0 if not state.U.gram.any() else np.inf
        return found | dict.fromkeys(
            ("consensus", "stationarity", "penalized_stationarity"), number
        )
    now = f.measure(state)
    found |= {
        "consensus": now.disagreement,
        "stationarity": now.stationarity if np.isfinite(now.error) else np.inf,
        "penalized_stationarity": now.stationarity,
        "at_rounding": now.stationarity <= rounding_level(f.dtype),
    }
    if splits and np.isfinite(now.error):
        found |= _split_measured(f, state)
    return found


def _split_measured(f: Objective, state: State) -> dict[str, Any]:
    """Return what concerns the split problem at its factors with lambda."""
    factors = [f.ops.get(point.values).astype(np.float64) for point in state.factors]
    slopes, step = f.split_gradients(state), f.step_length()
    moved = [np.minimum(own, step * slope) for own, slope in zip(factors, slopes, strict=True)]
    curvature = f.split_curvature(state)
    left = [_unbalanced(own, slope) for own, slope in zip(factors, slopes, strict=True)]
    margin, bound = len(factors) * state.coupling - curvature, float("inf")
    if margin > 0.0:
        bound = max(
            float(np.linalg.norm(left[p] - left[q]) / np.linalg.norm(factors[q])) / margin
            for p, q in itertools.combinations(range(len(factors)), 2)
        )
    return {
        "penalized_stationarity": float(
            np.linalg.norm(np.hstack(moved)) / (REFERENCE_SHARE * np.linalg.norm(factors[0]))
        ),
        "curvature": curvature,
        "consensus_bound": bound,
    }


def _unbalanced(factor: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the part of a gradient that the bounds do not balance; zero at a critical point."""
    return np.where(factor > 0.0, slope, np.minimum(slope, 0.0))


def _never_rose(history: History, slack: float) -> bool:
    """Return whether the objective never rose (beyond rounding) while lambda did not."""
    objective, coupling = history["objective"], history["coupling"]
    still = np.diff(coupling) <= 1e-12 * np.abs(coupling[1:])
    if not len(objective):
        return True
    # rounding is in proportion to ||X||^2, which the first objective stands for
    allowed = objective[:-1] * (1.0 + slack) + 1e-3 * slack * objective[0]
    return bool(np.all(objective[1:][still] <= allowed[still]))

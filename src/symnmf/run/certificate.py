"""What the theorems say about a finished run, checked numerically. It can say no."""

from __future__ import annotations

import itertools
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


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How good a result is, in numbers and in one sentence.

    Attributes
    ----------
    stationarity : float
        Natural residual of the original problem at U, relative to a tenth of ||X||_F ||U||_F.
    tol : float
        The tolerance to be met.
    objective : str
        What was minimised.
    monotone : bool
        Whether the recorded objective never rose while lambda did not.
    factors : int
        How many the method had: 1, 2 for a split method, d for one on a tensor of order d. With one
        there is no lambda, and the numbers that concern it say nothing.
    dead_columns : tuple of int
        Columns of U that are zero.
    at_rounding : bool
        Whether the residual is as small as the precision of X allows.
    worst_component, components : float and int
        The largest stationarity of a connected component of X, each at its own scale, which the
        norm of X could hide, and the number of components. An entry connects two rows if it is
        above a thousandth of the largest entry of both, or a tenth of that of one.
    lowest_curvature : float
        The lowest curvature of the objective at U that was found, relative to ||X||_F: on the
        entries above 0, and within a column on entries that are 0 with gradient 0. The true
        minimum may be slightly lower. NaN for tensors, for a U of more than eleven million
        entries, and if U is not stationary to 1e-4.
    strict : bool
        Whether every entry that is 0 has a positive gradient, so that the curvature on the others
        says whether U is a local minimum.
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
    coupling, coupling_bound : float
        The run's last lambda, and the objective's bound for the start, 1/2 ||X - U_0 U_0^T||_F for
        the plain one: a constant lambda above it guarantees U = V (Theorem 3'). NaN if there is
        none, or lambda was not constant.
    consensus : float
        ||U - V||_F / ||V||_F.
    penalized_stationarity : float
        The stationarity of the split problem at (U, V) with that lambda.
    curvature : float
        mu, the largest eigenvalue of (U V^T + V U^T) / 2 - X, with weights of W o that. If it is
        below d lambda, d = 2, a critical point of the split problem has U = V and is critical for
        the original one (Theorem 1', docs/theory/coupling.md). For a tensor of order d, see
        docs/howto/hypergraphs.md.
    consensus_bound : float
        The bound of Theorem 1' on ||U - V||_F / ||V||_F, from the gradients; infinite if its
        condition does not hold.
    """

    stationarity: float
    tol: float
    objective: str
    monotone: bool
    factors: int = 1
    dead_columns: tuple[int, ...] = ()
    at_rounding: bool = False
    worst_component: float = 0.0
    components: int = 1
    lowest_curvature: float = np.nan
    strict: bool = False
    falls: bool = False
    grown_rows: tuple[int, ...] = ()
    zero_is_best: bool = False
    uniqueness: Uniqueness | None = None
    bound: Bound | None = None
    coupling: float = 0.0
    coupling_bound: float = np.nan
    consensus: float = 0.0
    penalized_stationarity: float = np.inf
    curvature: float = np.nan
    consensus_bound: float = np.inf

    @property
    def theorem1(self) -> bool:
        """Whether the condition of Theorem 1' holds: mu < d lambda, d = 2 for a matrix."""
        return self.curvature < self.factors * self.coupling

    @property
    def theorem3(self) -> bool:
        """Whether that of Theorem 3' does: lambda constant and above the bound for the start."""
        return self.coupling > self.coupling_bound

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
        return "theorem" if small and everywhere else None

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
        if self.certified:
            return self._what_holds()
        if self.grown_rows:
            return (
                f"Not certified: U grows without limit in {len(self.grown_rows)} rows (the first "
                f"is {self.grown_rows[0]}), since entries of X are hidden there; add ridge= to the "
                f"problem, or observe the diagonal."
            )
        if self.falls:
            return (
                "Not certified: U is a critical point, but a saddle. The objective falls along a "
                "direction; go on from here with solver='auto', or try another start."
            )
        if not np.isfinite(self.stationarity):
            return "Not certified: U is zero or not finite; start from another point."
        where, reached, advice = "", self.stationarity, "let the run go on"
        if self.consensus > self.tol:
            advice = f"U and V differ by {self.consensus:.2g}; {advice} or raise the coupling"
        elif self.stationarity <= self.tol:
            where, reached = " in a component of X", self.worst_component
        return (
            f"Not certified: U is not stationary{where} ({reached:.2g}, above {self.tol:.2g}); "
            f"{advice}."
        )

    def _what_holds(self) -> str:
        point = f"U is a critical point to the tolerance {self.tol:.2g}"
        if self._only_rounding:
            point = f"U is a critical point to {self.stationarity:.2g}, as far as rounding allows"
        if self.lowest_curvature >= NEGATIVE:
            local = "a local minimum to second order"
            point += f", and {local}" if self.strict else ", with no way down to second order found"
        if self.ground == "theorem":
            return f"Certified by Theorem 1': U = V to {self.consensus_bound:.2g}, so {point}."
        apart = ""
        if self.consensus > self.tol:
            apart = f", though V still differs from it by {self.consensus:.2g}"
        return f"Certified{' by its residual' if self.factors > 1 else ''}: {point}{apart}."

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  {name:<38} {text}" for name, text in self._lines())])

    def _lines(self) -> list[tuple[str, str]]:
        """Return what there is to say beside the verdict, with a name for each."""
        lines = [("minimised", self.objective)]
        if self.zero_is_best:
            return lines
        least = " (rounding allows no less)" if self._only_rounding else ""
        lines.append(("stationarity of the original problem", f"{self.stationarity:.3e}{least}"))
        if self.components > 1:
            worst = f"{self.worst_component:.3e} at its own scale"
            lines.append((f"the worst of {self.components} components of X", worst))
        if np.isfinite(self.lowest_curvature):
            lines.append(("lowest curvature found", f"{self.lowest_curvature:.3e}"))
        if self.factors > 1:
            lines += self._on_lambda()
        if self.bound is not None and self.bound.known:
            lines.append(("the best possible", self.bound.sentence))
        if self.uniqueness is not None:
            lines.append(("uniqueness", str(self.uniqueness)))
        if self.dead_columns:
            names = ", ".join(map(str, self.dead_columns))
            better = "a column there lowers" if self.falls else "no column was found that lowers"
            lines.append(("zero columns", f"{names}: {better} the objective"))
        rose = "never rose" if self.monotone else "ROSE"
        when = " while lambda did not" if self.factors > 1 else ""
        return [*lines, ("the objective", f"{rose}{when}")]

    def _on_lambda(self) -> list[tuple[str, str]]:
        relation, holds = ("<", "holds") if self.theorem1 else (">=", "does not hold")
        bounded = f", so ||U - V|| / ||V|| <= {self.consensus_bound:.3g}" if self.theorem1 else ""
        most = self.factors * self.coupling
        condition = f"mu = {self.curvature:.4g} {relation} {self.factors} lambda = {most:.4g}"
        lines = [
            ("stationarity of the penalised problem", f"{self.penalized_stationarity:.3e}"),
            ("consensus ||U - V|| / ||V||", f"{self.consensus:.3e}"),
            (f"Theorem 1' {holds}", f"{condition}{bounded}"),
        ]
        if np.isfinite(self.coupling_bound):
            above = "above" if self.theorem3 else "not above"
            bound = f"{above} the bound {self.coupling_bound:.4g} of the start"
            lines.append(("Theorem 3'", f"lambda = {self.coupling:.4g}, {bound}"))
        return lines


@checked()
def certify(problem: Any, result: Result, *, tol: float = 1e-5) -> Certificate:
    """Check a result against the problem it was fitted to; see :class:`Certificate`.

    ``problem`` is a :class:`symnmf.Problem`, X if the problem had no other options, or None for
    the problem that the result remembers.
    """
    problem = problem_of(problem, result).for_rank(result.U.shape[1], warn=False)
    f, splits = problem.objective, result.coupling > 0.0
    given = (*result.factors, *result.others) if splits else result.factors[:1]
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        points = [Point(f.ops, f.ops.put(to_host(factor))) for factor in given]
        state = State(points[0], points[1] if splits else points[0], others=points[2:])
        state.coupling = result.coupling if splits else 0.0
        return Certificate(
            **_measured(f, state),
            **(_on_lambda(f, state, result) if splits else {}),
            monotone=_never_rose(result.history, ROUNDING[f.dtype]),
            objective=f.describe(),
            dead_columns=tuple(map(int, result.dead_columns)),
            **looked_at(f, points[0], tol),
            bound=quick_bound(problem, result),
            tol=tol,
        )


def problem_of(given: Any, result: Result) -> Problem:
    """Return what a result is to be checked against; refuse what it was not fitted to."""
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


def _measured(f: Objective, state: State) -> dict[str, Any]:
    """Return what concerns the original problem at U, and how far the factors are apart."""
    if f.sqnorm == 0.0:
        number = 0.0 if not state.U.gram.any() else np.inf
        return {"consensus": number, "stationarity": number}
    now = f.measure(state)
    return {
        "consensus": now.disagreement,
        "stationarity": now.stationarity if np.isfinite(now.error) else np.inf,
        "at_rounding": now.stationarity <= rounding_level(f.dtype),
    }


def _on_lambda(f: Objective, state: State, result: Result) -> dict[str, Any]:
    """Return what concerns the split problem at its factors with lambda."""
    known = {"factors": len(state.factors), "coupling": state.coupling}
    if f.bounded and bool(np.all(result.history["coupling"] == state.coupling)):
        known["coupling_bound"] = f.coupling_bound(result.start_misfit * result.start_misfit)
    factors = [f.ops.get(point.values).astype(np.float64) for point in state.factors]
    if f.sqnorm == 0.0 or not all(np.isfinite(factor).all() for factor in factors):
        return known
    slopes, step = f.split_gradients(state), f.step_length()
    both = list(zip(factors, slopes, strict=True))
    moved = np.hstack([np.minimum(own, step * slope) for own, slope in both])
    # the part of a gradient that the bounds do not balance; zero at a critical point
    left = [np.where(own > 0.0, slope, np.minimum(slope, 0.0)) for own, slope in both]
    curvature, bound = f.split_curvature(state), np.inf
    margin = len(factors) * state.coupling - curvature
    if margin > 0.0:
        bound = max(
            float(np.linalg.norm(left[p] - left[q]) / np.linalg.norm(factors[q])) / margin
            for p, q in itertools.combinations(range(len(factors)), 2)
        )
    moved_by = np.linalg.norm(moved) / (REFERENCE_SHARE * np.linalg.norm(factors[0]))
    return known | {
        "penalized_stationarity": float(moved_by),
        "curvature": curvature,
        "consensus_bound": bound,
    }


def _never_rose(history: History, slack: float) -> bool:
    """Return whether the objective never rose (beyond rounding) while lambda did not."""
    objective, coupling = history["objective"], history["coupling"]
    still = np.diff(coupling) <= 1e-12 * np.abs(coupling[1:])
    if not len(objective):
        return True
    # rounding is in proportion to ||X||^2, which the first objective stands for
    allowed = objective[:-1] * (1.0 + slack) + 1e-3 * slack * objective[0]
    rises = np.flatnonzero(still & (objective[1:] > allowed))
    # a run that begins in float32 goes on with X itself, which differs by the rounding of float32
    once = objective[:-1][rises] * (1.0 + ROUNDING[np.dtype(np.float32)])
    return len(rises) <= 1 and bool(np.all(objective[1:][rises] <= once))

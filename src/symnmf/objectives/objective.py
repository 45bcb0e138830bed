"""What an objective is: all that solvers, couplings, the loop and the certificate ask of f."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from symnmf.objectives.terms import Term
from symnmf.ops import Factor, Line, Ops, RowSolver
from symnmf.parallel import Threads
from symnmf.state import Point, State, Sums
from symnmf.storage import SymmetricArray, SymmetricMatrix

#: The unit of stationarity, as a share of ||X||_F ||U||_F. A residual of the whole of it is that of
#: a gradient with nothing balanced yet; a tenth is nearer to where ordinary starts begin.
REFERENCE_SHARE = 0.1

#: ||U||_F below which squares of what is left are too small to be numbers:
#: as good as U = 0.
LEAST_SIZE = 1e-140

Coefficients = tuple[float, ...]


@dataclass(frozen=True)
class Measurement:
    """One evaluation of a state.

    For a method with one factor ``objective`` is ``value``, and both measures of ||U - V|| are 0.
    """

    objective: float  # g(U, V), what a split method minimises: with lambda/2 ||U - V||^2
    value: float  # f(U), what is minimised: half the misfit and the added terms
    error: float  # E = ||X - U U^T||^2 / ||X||^2, the misfit to the data alone
    consensus: float  # ||U - V||_F
    disagreement: float  # ||U - V||_F / ||V||_F
    #: How far U is from a critical point of f, whatever the run began with: the natural residual
    #: ||U - max(U - t grad f(U), 0)||_F / t with t = 1/||X||_F, over a tenth of ||X||_F ||U||_F.
    #: Infinite at U = 0, which is critical and never an answer.
    stationarity: float


class Objective(ABC):
    """A function f of U >= 0 that measures how well U explains X.

    Everything that depends on what is minimised is asked here, and nowhere else: solvers and
    couplings, starts, the loop and the certificate know an Objective, and no X behind it.

    Attributes
    ----------
    storage : SymmetricArray
        X, or where entries have weights W o X: products for starts and spectra.
    homogeneous : bool
        Whether the product at s U is s times that at U.
    bounded : bool
        Whether level sets are bounded, so that bounds on lambda hold.
    """

    homogeneous: bool = True
    bounded: bool = True
    #: whether every entry of X counts, and as much as any other
    unit_weights: bool = True
    #: the rows of which nothing is observed, or None if there are none
    unseen: np.ndarray | None = None
    #: what is added to the misfit
    terms: tuple[Term, ...] = ()
    #: the solver that ``solver="auto"`` stands for, or its name; "auto" for that one itself
    default_solver: ClassVar[Any] = "auto"
    #: factors that the model is a product of, which a split method tells apart
    split_factors: int = 2
    #: the rule for lambda where neither the caller nor the solver names one
    default_coupling: str = "rising"

    def __init__(self, storage: SymmetricArray) -> None:
        self.storage: Any = storage
        #: rows of the factor that belong to rows of X; others stand below them
        self.rows: int = storage.shape[0]

    # --- what X is

    @property
    def ops(self) -> Ops:
        """The operations on factors, which live where X does."""
        return self.storage.ops

    @property
    def shape(self) -> tuple[int, ...]:
        """That of X: (n, n) for a matrix."""
        return self.storage.shape

    @property
    def dtype(self) -> np.dtype:
        """The precision of X and of the factors."""
        return self.storage.dtype

    @property
    def signed(self) -> bool:
        """Whether X has negative entries."""
        return self.storage.signed

    @property
    def nonnegative(self) -> bool:
        """Whether X has none."""
        return not self.signed

    @property
    def plain_misfit(self) -> bool:
        """Whether f is 1/2 ||X - U U^T||^2 with every entry of X counted once, and nothing else."""
        return False

    @property
    def sqnorm(self) -> float:
        """||X||_F^2 with the weights of the misfit: the unit of E."""
        return self.storage.sqnorm

    @property
    def norm(self) -> float:
        """The root of ``sqnorm``."""
        return math.sqrt(self.sqnorm)

    def largest(self) -> float:
        """Return the largest entry of X, or a bound of that order."""
        return self.storage.largest()

    @property
    def entries(self) -> SymmetricMatrix | None:
        """Access to single entries of X, or None where they cannot be read or are not all."""
        return None

    @property
    def term_slope(self) -> float:
        """How fast an entry of U that leaves 0 raises the added terms."""
        return sum(term.slope for term in self.terms)

    @property
    def term_curvature(self) -> float:
        """A bound on the second derivative of the added terms."""
        return sum(term.size for term in self.terms)

    @property
    def spectral(self) -> bool:
        """Whether the eigenvectors of the storage say where U is.

        With gaps or negative entries they say little.
        """
        return self.unit_weights and not self.signed

    def describe(self) -> str:
        """Return f in a formula, for people."""
        return " + ".join([self.describe_misfit(), *(term.describe() for term in self.terms)])

    def describe_misfit(self) -> str:
        """Return f without its terms in a formula."""
        return "1/2 ||X - U U^T||^2"

    def digest(self) -> str:
        """Return a fingerprint of all there is to f."""
        return " + ".join([self.digest_misfit(), *(term.describe() for term in self.terms)])

    def digest_misfit(self) -> str:
        """Return a fingerprint of f without its terms."""
        return self.storage.digest()

    # --- f at a point

    @abstractmethod
    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        """Return the product at U, see ``Point.product``, and the sums if they come along."""

    @abstractmethod
    def sums(self, U: Point, product: Factor) -> Sums:
        """Return the sums of w (x - m)^2, w x m and w m^2; the first to what digits it has."""

    @abstractmethod
    def misfit(self, U: Point) -> float:
        """Return the sum of w (x - m)^2 in digits that can be trusted."""

    def added(self, U: Point) -> float:
        """Return what the added terms are at U."""
        return 0.0

    def split_added(self, state: State) -> float:
        """Return what the added terms are at the factors of a split method."""
        return 0.0

    def value(self, U: Point) -> float:
        """Return f(U)."""
        return 0.5 * self.misfit(U) + self.added(U)

    def curvature(self, gram: np.ndarray) -> np.ndarray:
        """Return the r x r matrix K with U K - P the gradient up to a factor, from U^T U."""
        return gram

    @property
    def factor_norm(self) -> float:
        """||U||_F where a U of one column explains all of X."""
        return float(self.norm ** (1.0 / self.split_factors))

    def step_length(self) -> float:
        """Return the t of the natural residual, which makes t grad f a factor."""
        return (self.factor_norm / self.norm) ** 2

    def reach(self) -> float:
        """Return the same for U K - P in place of the gradient."""
        return self.split_factors * self.step_length()

    def best_multiple(self, U: Point) -> float:
        """Return the s >= 0 that minimises f(s U)."""
        _, fit, size = U.sums(self)
        return float((max(fit, 0.0) / size) ** (1.0 / self.split_factors)) if size > 0.0 else 1.0

    def stationarity(self, U: Point) -> float:
        """Return the ``stationarity`` of a ``Measurement`` at U."""
        size = math.sqrt(max(U.size, 0.0))
        if size < LEAST_SIZE:
            return np.inf
        moved = U.natural_residual
        if moved is None:
            K, step = self.curvature(U.gram), 0.5 * self.reach()
            moved = self.ops.natural_residual(U.values, U.product(self), K, step)
        return float(moved / (REFERENCE_SHARE * size))

    def measure(self, state: State) -> Measurement:
        """Evaluate a state; one product with X only where the step left none behind."""
        U = state.U
        misfit = self.misfit(U)
        value = 0.5 * misfit + self.added(U)
        split = (value, 0.0, 0.0) if state.V is U else self.split_value(state)
        objective, apart, disagreement = split
        return Measurement(
            objective=objective,
            value=value,
            error=self.relative(misfit),
            consensus=math.sqrt(apart),
            disagreement=disagreement,
            stationarity=U.stationarity(self),
        )

    def relative(self, misfit: float) -> float:
        """Return E for a misfit."""
        return misfit / self.sqnorm

    def split_value(self, state: State) -> tuple[float, float, float]:
        """Return g at the factors of a split method, ||U - V||^2 and ||U - V|| / ||V||.

        Of more than two factors: the sum over all pairs, and the largest.
        """
        apart, worst = 0.0, 0.0
        for first, second in itertools.combinations(state.factors, 2):
            gap = self.ops.apart(first.values, second.values)
            apart, worst = apart + gap, max(worst, _share(gap, second.size))
        split = 0.5 * self.split_misfit(state) + self.split_added(state)
        return split + 0.5 * state.coupling * apart, apart, worst

    def twice_split(self, state: State) -> float:
        """Return 2 g(U, V)."""
        return 2.0 * self.split_value(state)[0]

    @abstractmethod
    def split_misfit(self, state: State) -> float:
        """Return the sum of w (x - m)^2 over the model m of all factors.

        X is not looked at again where that is possible.
        """

    # --- moving

    @abstractmethod
    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        """Return P with P - F (V^T V) = S V, S the weighted residual at F V^T.

        F is ``factor``, V is ``other`` and ``gram`` is V^T V where it is known; ``out`` may be
        overwritten.
        """

    @abstractmethod
    def along(
        self, U: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        """Return the way from U to ``target`` and the coefficients c_1, c_2, ... of f on it.

        ``target`` and ``out`` may be overwritten.
        """

    @abstractmethod
    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        """Return max(U + t D, 0), the product there if it came for free, and t D.

        All four factors may be overwritten.
        """

    def aim(self, U: Point) -> Factor:
        """Return the product that a step should aim with, whose curvature is that of U^T U.

        Where entries of a row are hidden, that curvature is too large and a step too short by as
        much; a line search then says how much of the longer one is taken.
        """
        return U.product(self)

    @abstractmethod
    def split_step(self, rows: RowSolver, state: State) -> None:
        """Minimise over each factor in turn, the others fixed; put the new points in place."""

    # --- what the theorems on lambda ask

    @abstractmethod
    def coupling_bound(self, twice: float) -> float:
        """Return the lambda above which a split run with 2 g at most ``twice`` ends with U = V."""

    @abstractmethod
    def split_gradients(self, state: State) -> list[np.ndarray]:
        """Return the gradients of g by each of its factors, on the host in float64."""

    @abstractmethod
    def split_curvature(self, state: State) -> float:
        """Return mu: where it is below d lambda, critical points of g have equal factors."""

    # --- the same f elsewhere

    @property
    def as_float32(self) -> Objective | None:
        """The same f with X in float32, or None where that would cost more than it saves."""
        return None

    def with_storage(self, storage: SymmetricArray) -> Self:
        """Return the same f for another storage of the same X."""
        other = copy.copy(self)
        other.storage = storage
        return other

    def with_threads(self, threads: Threads) -> Self:
        """Return the same f for use on these threads of the host."""
        return self.with_storage(self.storage.with_threads(threads))

    def for_rank(self, rank: int, *, warn: bool = True) -> Objective:
        """Return f ready for factors of ``rank`` columns; warn of rows that are hardly observed."""
        return self


def _share(apart: float, size: float) -> float:
    """Return ||U - V|| / ||V|| from squares; U = 0 and V = 0 agree."""
    if size > 0.0:
        return math.sqrt(apart / size)
    return 0.0 if apart == 0.0 else np.inf


@functools.cache
def rounding_level(dtype: np.dtype) -> float:
    """Return the stationarity under which nothing but rounding is left."""
    return float(64.0 * np.finfo(dtype).eps / REFERENCE_SHARE)

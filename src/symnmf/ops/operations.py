"""The operations on tall factors that a backend must offer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from symnmf.kernels.quartics import quartic_sums

#: An n x r factor, or a stack of them. Outside its backend it has a ``shape`` and nothing else.
Factor = Any


@dataclass(frozen=True)
class Hals:
    """Rows solved by sweeps over their columns: SymHALS (one sweep), A-SymHALS (several)."""

    sweeps: int = 1


@dataclass(frozen=True)
class Nnls:
    """Rows solved exactly: nonnegative least squares by block principal pivoting."""


#: How the rows of a factor are solved, by name; each backend has its own kernel for it.
RowSolver = Hals | Nnls


class Line(NamedTuple):
    """What f along U + t D is made of: D = Z - U, X D and four sums."""

    slope: float  # <X U, D>
    bend: float  # <X D, D>
    cross: np.ndarray  # U^T D
    gram: np.ndarray  # D^T D
    D: Factor
    image: Factor  # X D


def quartic(gram: np.ndarray, line: Line) -> tuple[float, float, float, float]:
    r"""Return c_1 to c_4 of f(U + t D) - f(U) = sum_k c_k t^k, where ``gram`` = U^T U.

    With S = U^T D + D^T U and K = D^T D,

    .. math:: f(U + tD) - f(U) = t(-2\langle XU, D\rangle + \langle G, S\rangle)
        + t^2(-\langle XD, D\rangle + \tfrac12\|S\|^2 + \langle G, K\rangle)
        + t^3\langle S, K\rangle + \tfrac12 t^4\|K\|^2 .

    Every term vanishes with D, so its sign is right long after the difference of two objectives
    would be rounding.
    """
    first, second, third, fourth = quartic_sums(gram, line.cross, line.gram)
    return first - 2.0 * line.slope, second - line.bend, third, fourth


class Ops(ABC):
    """Operations on tall factors, owned by the matrix they belong to.

    Every operation returns its result. Writing it over an argument is a permission, given where
    the description says so, and never an obligation. r x r matrices and numbers are float64 on
    the host, whatever the precision of the factors, and sums are accumulated in float64.
    """

    #: Floating point operations a second, about, of products with factors that live here.
    rate = 1e10

    #: Numbers in a block of dense columns that is formed at a time.
    block = 262_144

    #: Whether rows can be solved exactly here, not by sweeps alone.
    exact_rows = True

    # --- to and from the host

    @abstractmethod
    def put(self, array: np.ndarray) -> Factor:
        """Return a host array as a factor of its own, in the same precision."""

    @abstractmethod
    def get(self, T: Factor) -> np.ndarray:
        """Return a factor as a host array to read, which may be the factor itself."""

    @abstractmethod
    def dtype(self, T: Factor) -> np.dtype:
        """Return the precision of a factor, as NumPy names it."""

    @abstractmethod
    def cast(self, T: Factor, dtype: np.dtype) -> Factor:
        """Return a factor in another precision."""

    @abstractmethod
    def copy(self, T: Factor, out: Factor | None = None) -> Factor:
        """Return a factor that shares nothing with ``T``; ``out`` may be overwritten."""

    @abstractmethod
    def empty(self, T: Factor) -> Factor:
        """Return a factor like ``T`` whose entries are anything."""

    @abstractmethod
    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Factor:
        """Return a factor, or a stack of them, full of zeros."""

    def wait(self) -> None:  # noqa: B027
        """Return when all that was asked for so far is done, so that a clock may be read."""

    # --- entry by entry

    @abstractmethod
    def combine(self, *terms: tuple[float, Factor], plus: float = 0.0) -> Factor:
        """Return the sum of the factors times their numbers, and ``plus`` in every entry."""

    @abstractmethod
    def weigh_rows(self, T: Factor, weights: np.ndarray) -> Factor:
        """Return T with each row times its weight."""

    @abstractmethod
    def clip(self, T: Factor) -> Factor:
        """Return max(T, 0); ``T`` may be overwritten."""

    def descend(self, U: Factor, D: Factor, step: float) -> Factor:
        """Return max(U - step D, 0)."""
        return self.clip(self.combine((1.0, U), (-step, D)))

    @abstractmethod
    def times(self, T: Factor, small: np.ndarray) -> Factor:
        """Return T @ small."""

    def gradient(self, U: Factor, product: Factor, gram: np.ndarray) -> Factor:
        """Return 2 (U gram - product), grad f(U) where ``product`` = X U and ``gram`` = U^T U."""
        return self.combine((2.0, self.times(U, gram)), (-2.0, product))

    @abstractmethod
    def multiplied(
        self, U: Factor, product: Factor, gram: np.ndarray, power: float, share: float
    ) -> Factor:
        """Return U (1 - share + share R^power), R = product / (U gram), entry by entry."""

    # --- sums

    @abstractmethod
    def inner(self, A: Factor, B: Factor) -> float:
        """Return <A, B> = trace(A^T B)."""

    def gram(self, T: Factor) -> np.ndarray:
        """Return T^T T."""
        return self.cross(T, T)

    @abstractmethod
    def cross(self, A: Factor, B: Factor) -> np.ndarray:
        """Return A^T B."""

    @abstractmethod
    def column_sums(self, T: Factor) -> np.ndarray:
        """Return the sum of each column."""

    def apart(self, U: Factor, V: Factor) -> float:
        """Return ||U - V||_F^2."""
        gap = self.combine((1.0, U), (-1.0, V))
        return self.inner(gap, gap)

    def natural_residual(self, U: Factor, product: Factor, gram: np.ndarray, step: float) -> float:
        """Return ||U - max(U - step grad f(U), 0)||_F."""
        ahead = self.descend(U, self.gradient(U, product, gram), step)
        return math.sqrt(self.apart(U, ahead))

    # --- steps

    @abstractmethod
    def solve_rows(
        self,
        rows: RowSolver,
        factor: Factor,
        product: Factor,
        anchor: Factor,
        gram: np.ndarray,
        coupling: float,
    ) -> Factor:
        """Return the rows >= 0 that minimise, each by itself and started from ``factor``,

        1/2 <F (gram + coupling I), F> - <product + coupling anchor, F>; ``factor`` may be
        overwritten.
        """

    def sweep(
        self,
        rows: RowSolver,
        U: Factor,
        product: Factor,
        gram: np.ndarray,
        coupling: float,
        out: Factor,
    ) -> Factor:
        """Return the rows solved from U and held to U by ``coupling``; ``out`` may be overwritten.

        :meth:`solve_rows` with ``factor`` and ``anchor`` both U, which stays as it is.
        """
        return self.solve_rows(rows, self.copy(U, out=out), product, U, gram, coupling)

    @abstractmethod
    def line(self, U: Factor, product: Factor, Z: Factor, image: Factor) -> Line:
        """Return what f on the way from U to Z is made of, given ``image`` = X Z.

        ``Z`` and ``image`` may be overwritten.
        """

    @abstractmethod
    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor, Factor]:
        """Return max(U + t D, 0), X U + t X D and t D.

        All four factors may be overwritten; ``line.image`` is free afterwards and holds none of
        the three.
        """

    @abstractmethod
    def put_at_zero(self, U: Factor, product: Factor, gram: np.ndarray, curvature: float) -> int:
        """Set the entries 0 < u <= (U G - X U) / curvature of U to zero; return how many."""

    @abstractmethod
    def pair_sums(
        self,
        U: Factor,
        product: Factor,
        gram: np.ndarray,
        level: float,
        reach: float,
        gradient: Factor,
        steps: Factor,
        changes: Factor,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        """Bring the memory of a quasi-Newton method up to date; see kernels/pairs.py."""

    @abstractmethod
    def pair_target(
        self,
        U: Factor,
        gradient: Factor,
        steps: Factor,
        changes: Factor,
        own: float,
        step_weights: np.ndarray,
        change_weights: np.ndarray,
        out: Factor,
    ) -> Factor:
        """Return max(U + direction, 0) from weighted pairs; ``out`` may be overwritten."""

    @abstractmethod
    def gauss_newton(
        self,
        U: Factor,
        product: Factor,
        gram: np.ndarray,
        eigen: tuple[np.ndarray, np.ndarray],
        weights: tuple[float, float, float],
        dual: Factor,
        steps: int,
        spare: list[Factor] | None = None,
    ) -> tuple[Factor, Factor]:
        """Return the Gauss-Newton target Z and the multiplier, which may overwrite ``dual``.

        ``eigen`` are the eigenvalues and vectors of ``gram``; ``weights`` are rho, rho plus
        damping, and the relaxation of ``steps/gauss_newton.py``. Factors like U may be taken from
        ``spare`` to write to, and put there for the next call.
        """

"""The operations on tall factors that a backend must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from symnmf.kernels.quartics import quartic_sums

#: An n x r factor, or a stack of them. Outside its backend it has a ``shape`` and nothing else.
Tall = Any


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
    D: Tall
    image: Tall  # X D


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

    def supports(self, rows: RowSolver) -> bool:
        """Whether rows can be solved this way here."""
        return True

    # --- to and from the host

    @abstractmethod
    def put(self, array: np.ndarray) -> Tall:
        """Return a host array as a factor of its own, in the same precision."""

    @abstractmethod
    def get(self, T: Tall) -> np.ndarray:
        """Return a factor as a host array to read, which may be the factor itself."""

    @abstractmethod
    def dtype(self, T: Tall) -> np.dtype:
        """Return the precision of a factor, as NumPy names it."""

    @abstractmethod
    def cast(self, T: Tall, dtype: np.dtype) -> Tall:
        """Return a factor in another precision."""

    @abstractmethod
    def copy(self, T: Tall, out: Tall | None = None) -> Tall:
        """Return a factor that shares nothing with ``T``; ``out`` may be overwritten."""

    @abstractmethod
    def empty(self, T: Tall) -> Tall:
        """Return a factor like ``T`` whose entries are anything."""

    @abstractmethod
    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Tall:
        """Return a factor, or a stack of them, full of zeros."""

    @abstractmethod
    def beside(self, *parts: Tall) -> Tall:
        """Return factors side by side, as one with more columns."""

    @abstractmethod
    def columns(self, T: Tall, left: int, right: int, out: Tall) -> Tall:
        """Return some columns of a factor, written to ``out``."""

    def wait(self) -> None:  # noqa: B027
        """Return when all that was asked for so far is done, so that a clock may be read."""

    # --- entry by entry

    @abstractmethod
    def combine(self, *terms: tuple[float, Tall]) -> Tall:
        """Return the sum of the factors times their numbers."""

    def constant(self, T: Tall, value: float) -> Tall:
        """Return a factor like T with ``value`` everywhere."""
        return self.put(np.full(T.shape, value, self.dtype(T)))

    @abstractmethod
    def weigh_rows(self, T: Tall, weights: np.ndarray) -> Tall:
        """Return T with each row times its weight."""

    @abstractmethod
    def clip(self, T: Tall) -> Tall:
        """Return max(T, 0); ``T`` may be overwritten."""

    @abstractmethod
    def descend(self, U: Tall, D: Tall, step: float) -> Tall:
        """Return max(U - step D, 0)."""

    @abstractmethod
    def times(self, T: Tall, small: np.ndarray) -> Tall:
        """Return T @ small."""

    @abstractmethod
    def gradient(self, U: Tall, product: Tall, gram: np.ndarray) -> Tall:
        """Return 2 (U gram - product), grad f(U) where ``product`` = X U and ``gram`` = U^T U."""

    @abstractmethod
    def multiplied(
        self, U: Tall, product: Tall, gram: np.ndarray, power: float, share: float
    ) -> Tall:
        """Return U (1 - share + share R^power), R = product / (U gram), entry by entry."""

    # --- sums

    @abstractmethod
    def inner(self, A: Tall, B: Tall) -> float:
        """Return <A, B> = trace(A^T B)."""

    @abstractmethod
    def gram(self, T: Tall) -> np.ndarray:
        """Return T^T T."""

    def gram_ahead(self, T: Tall) -> Callable[[], np.ndarray]:
        """Begin with T^T T; what is returned gives it. Until then ``T`` stays as it is."""
        gram = self.gram(T)
        return lambda: gram

    @abstractmethod
    def cross(self, A: Tall, B: Tall) -> np.ndarray:
        """Return A^T B."""

    @abstractmethod
    def column_sums(self, T: Tall) -> np.ndarray:
        """Return the sum of each column."""

    @abstractmethod
    def pair(self, U: Tall, V: Tall) -> tuple[float, float, float]:
        """Return ||U - V||^2, <U, V> and ||V||^2."""

    def distances(self, U: Tall, *others: Tall) -> tuple[float, ...]:
        """Return ||U - V||^2 for each of the others."""
        return tuple(self.pair(U, V)[0] for V in others)

    @abstractmethod
    def split(self, product: Tall, U: Tall, V: Tall) -> tuple[float, float, float, float]:
        """Return <product, U>, <product, V>, ||U - V||^2 and ||V||^2."""

    @abstractmethod
    def natural_residual(self, U: Tall, product: Tall, gram: np.ndarray, step: float) -> float:
        """Return ||U - max(U - step grad f(U), 0)||_F."""

    # --- steps

    @abstractmethod
    def solve_rows(
        self,
        rows: RowSolver,
        factor: Tall,
        product: Tall,
        anchor: Tall,
        gram: np.ndarray,
        coupling: float,
    ) -> Tall:
        """Return the rows >= 0 that minimise, each by itself and started from ``factor``,

        1/2 <F (gram + coupling I), F> - <product + coupling anchor, F>; ``factor`` may be
        overwritten.
        """

    @abstractmethod
    def sweep(
        self,
        rows: RowSolver,
        U: Tall,
        product: Tall,
        gram: np.ndarray,
        coupling: float,
        out: Tall,
    ) -> Tall:
        """Return the rows solved from U and held to U by ``coupling``; ``out`` may be overwritten.

        :meth:`solve_rows` with ``factor`` and ``anchor`` both U, which stays as it is.
        """

    @abstractmethod
    def line(self, U: Tall, product: Tall, Z: Tall, image: Tall) -> Line:
        """Return what f on the way from U to Z is made of, given ``image`` = X Z.

        ``Z`` and ``image`` may be overwritten.
        """

    @abstractmethod
    def advance(self, U: Tall, product: Tall, line: Line, t: float) -> tuple[Tall, Tall, Tall]:
        """Return max(U + t D, 0), X U + t X D and t D.

        All four factors may be overwritten; ``line.image`` is free afterwards and holds none of
        the three.
        """

    @abstractmethod
    def put_at_zero(self, U: Tall, product: Tall, gram: np.ndarray, curvature: float) -> int:
        """Set the entries 0 < u <= (U G - X U) / curvature of U to zero; return how many."""

    @abstractmethod
    def slot(self, ring: Tall, number: int) -> Tall:
        """Return factor ``number`` of a stack, to be overwritten."""

    @abstractmethod
    def write_slot(self, ring: Tall, number: int, T: Tall) -> None:
        """Make T factor ``number`` of a stack."""

    @abstractmethod
    def pair_sums(
        self,
        U: Tall,
        product: Tall,
        gram: np.ndarray,
        level: float,
        reach: float,
        gradient: Tall,
        steps: Tall,
        changes: Tall,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        """Bring the memory of a quasi-Newton method up to date; see kernels/pairs.py."""

    @abstractmethod
    def pair_target(
        self,
        U: Tall,
        gradient: Tall,
        steps: Tall,
        changes: Tall,
        own: float,
        step_weights: np.ndarray,
        change_weights: np.ndarray,
        out: Tall,
    ) -> Tall:
        """Return max(U + direction, 0) from weighted pairs; ``out`` may be overwritten."""

    @abstractmethod
    def gauss_newton(
        self,
        U: Tall,
        product: Tall,
        gram: np.ndarray,
        eigen: tuple[np.ndarray, np.ndarray],
        weights: tuple[float, float, float],
        dual: Tall,
        steps: int,
        spare: list[Tall] | None = None,
    ) -> tuple[Tall, Tall]:
        """Return the Gauss-Newton target Z and the multiplier, which may overwrite ``dual``.

        ``eigen`` are the eigenvalues and vectors of ``gram``; ``weights`` are rho, rho plus
        damping, and the relaxation of ``steps/gauss_newton.py``. Factors like U may be taken from
        ``spare`` to write to, and put there for the next call.
        """

"""The state of a run: what a solver changes, what a checkpoint keeps, and what it is held to.

Compiled code trusts the shapes and counters it is given. A checkpoint may come from anywhere, so
what it holds is compared with the declarations of :class:`Kept` before a run resumes from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symnmf.ops import Factor, Ops

if TYPE_CHECKING:
    from symnmf.objectives import Objective

#: The sums of w (x - m)^2, w x m and w m^2 over the entries x of X and m of the model.
Sums = tuple[float, float, float]

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Kept:
    """One array of a memory.

    Attributes
    ----------
    shape : tuple of int
        Its shape; () for a number.
    dtype : dtype
        Its type; an array without entries may have another precision.
    least, most : float or tuple
        Between what its entries lie, all of them or one by one; NaN is never allowed.
    infinite : bool
        Whether infinity stands for "not known yet".
    tall : bool
        Whether it is as tall as U, and so lives where U does.
    optional : bool
        Whether it is there from some step on only.
    """

    shape: tuple[int, ...] = ()
    dtype: np.dtype = FLOAT64
    least: float | tuple[float, ...] = -np.inf
    most: float | tuple[float, ...] = np.inf
    infinite: bool = False
    tall: bool = False
    optional: bool = False

    def check(self, array: np.ndarray, name: str) -> None:
        """Raise a ValueError that says what is wrong with an array."""
        if array.shape != self.shape:
            raise ValueError(f"{name} has the shape {array.shape} and not {self.shape}")
        same = array.dtype == self.dtype
        if not same and (array.size or array.dtype.kind != self.dtype.kind):
            raise ValueError(f"{name} has the type {array.dtype} and not {self.dtype}")
        if np.isnan(array).any() or not (self.infinite or np.isfinite(array).all()):
            raise ValueError(f"{name} has NaN or infinite entries")
        if (array < np.asarray(self.least)).any() or (array > np.asarray(self.most)).any():
            raise ValueError(f"{name} is out of range")


#: The declaration of a whole memory.
Layout = Mapping[str, Kept]


def zeros_of(layout: Layout, ops: Ops) -> dict[str, Factor]:
    """Return a memory of zeros without what is optional."""
    return {
        name: ops.zeros(kept.shape, kept.dtype) if kept.tall else np.zeros(kept.shape, kept.dtype)
        for name, kept in layout.items()
        if not kept.optional
    }


def check_memory(arrays: Mapping[str, np.ndarray], layout: Layout, what: str) -> None:
    """Raise a ValueError unless ``arrays`` are what ``layout`` declares, no more and no less."""
    for name in arrays.keys() - layout.keys():
        raise ValueError(f"{what} {name!r} is not known")
    for name, kept in layout.items():
        if name in arrays:
            kept.check(arrays[name], f"{what} {name!r}")
        elif not kept.optional:
            raise ValueError(f"{what} {name!r} is missing")


class Misfit(NamedTuple):
    """||X - U U^T||_F^2 as it was formed from the entries of X, or carried on from there.

    An exact line search knows by how much f changes, far more exactly than two values of f could
    tell. So the misfit of the next point is that of this one plus the change, and X need not be
    read for it. ``doubt`` is how far the changes added since then may be off in all.
    """

    sqnorm: float
    doubt: float = 0.0


class Point:
    """A factor together with what is known of it: U, X U and U^T U.

    A point is replaced, never edited, so a product or a Gram matrix cannot outlive the factor it
    belongs to. What is not known yet is computed once, when it is asked for.

    Parameters
    ----------
    ops : Ops
        The operations of the backend that ``values`` lives in.
    values : Factor
        The factor itself.
    product : Factor, optional
        X @ values, where it is known already.
    gram : ndarray, optional
        values^T values, likewise.
    misfit : Misfit, optional
        ||X - U U^T||_F^2, likewise.
    """

    __slots__ = (
        "_size",
        "_stationarity",
        "_sums",
        "known_gram",
        "known_product",
        "misfit",
        "natural_residual",
        "ops",
        "slope",
        "values",
    )

    def __init__(
        self,
        ops: Ops,
        values: Factor,
        product: Factor | None = None,
        gram: np.ndarray | None = None,
        misfit: Misfit | None = None,
    ) -> None:
        self.ops, self.values = ops, values
        #: X U and U^T U where they have been computed, else None
        self.known_product, self.known_gram = product, gram
        self.misfit = misfit
        #: ||U - max(U - t grad f(U), 0)||_F where a solver came by it, for the t of the objective
        self.natural_residual: float | None = None
        #: U K - P, half the gradient of a matrix, likewise; it lasts until the next step
        self.slope: Factor | None = None
        self._size: float | None = None
        self._sums: Sums | None = None
        self._stationarity: float | None = None

    @property
    def gram(self) -> np.ndarray:
        """U^T U."""
        if self.known_gram is None:
            self.known_gram = self.ops.gram(self.values)
        return self.known_gram

    @property
    def size(self) -> float:
        """||U||_F^2."""
        if self._size is None:
            self._size = float(self.gram.trace())
        return self._size

    @property
    def numbers(self) -> np.ndarray:
        """What is known of the point in six numbers, infinite where it is not known.

        The sums, the misfit with its doubt and the natural residual. A run goes on from them bit
        for bit only if they are those that it had, however they were computed.
        """
        unknown = np.inf
        residual = unknown if self.natural_residual is None else self.natural_residual
        misfit = self.misfit or (unknown, unknown)
        return np.array([*(self._sums or [unknown] * 3), *misfit, residual])

    @numbers.setter
    def numbers(self, numbers: np.ndarray) -> None:
        known = np.isfinite(numbers)
        *sums, sqnorm, doubt, residual = numbers.tolist()
        self._sums = (sums[0], sums[1], sums[2]) if known[:3].all() else None
        self.misfit = Misfit(sqnorm, doubt) if known[3:5].all() else None
        self.natural_residual = residual if known[5] else None

    def product(self, f: Objective) -> Factor:
        """Return P with U K - P the gradient of f up to a factor: X U where f is the plain misfit.

        K is what ``f.curvature`` makes of U^T U.
        """
        if self.known_product is None:
            self.known_product, sums = f.product_and_sums(self)
            self._sums = self._sums or sums
        return self.known_product

    def sums(self, f: Objective) -> Sums:
        """Return the sums of w (x - m)^2, w x m and w m^2, with m the entries of the model."""
        product = self.product(f)  # they often come along with it
        if self._sums is None:
            self._sums = f.sums(self, product)
        return self._sums

    def stationarity(self, f: Objective) -> float:
        """Return how far U is from a critical point of f, see ``symnmf.objectives.Measurement``."""
        if self._stationarity is None:
            self._stationarity = f.stationarity(self)
        return self._stationarity

    def scaled(self, factor: float, f: Objective) -> Point:
        """Return the point ``factor`` times this one, without a product."""
        product = self.known_product if f.homogeneous else None
        return Point(
            self.ops,
            self.ops.combine((factor, self.values)),
            None if product is None else self.ops.combine((factor, product)),
            None if self.known_gram is None else factor**2 * self.known_gram,
        )


@dataclass
class State:
    """Where a run is.

    Attributes
    ----------
    U, V : Point
        The factors. A method that works on the original problem has ``V is U``.
    coupling : float
        lambda; 0 for a method without one.
    iteration : int
        Iterations done.
    memory : dict of str to ndarray or Factor
        What a solver remembers between steps; kept in checkpoints.
    schedule : dict of str to ndarray or Factor
        What a coupling remembers between steps; likewise.
    others : list of Point
        The third factor and more, where a coupling holds that many together.
    looked : tuple or None
        A point, and what a solver has already found out there for its next step. Not kept in
        checkpoints, since it can be found out again.
    spare : list of Factor
        Factors that a step may overwrite, so that large ones are not paid for page by page in
        every iteration; empty after a resume.
    """

    U: Point
    V: Point
    coupling: float = 0.0
    iteration: int = 0
    memory: dict[str, Factor] = field(default_factory=dict)
    schedule: dict[str, Factor] = field(default_factory=dict)
    others: list[Point] = field(default_factory=list)
    looked: tuple[Point, Any] | None = field(default=None, repr=False)
    spare: list[Factor] = field(default_factory=list, repr=False)

    @classmethod
    def at(cls, f: Objective, U: Factor, V: Factor | None = None, **known: Factor) -> State:
        """Return the state at a factor, or at two; ``known`` are memory and the like."""
        first = Point(f.ops, U)
        return cls(first, first if V is None else Point(f.ops, V), **known)

    @property
    def factors(self) -> list[Point]:
        """All factors that are held together by a coupling; U alone if there is none."""
        return [self.U] if self.V is self.U else [self.U, self.V, *self.others]

    @property
    def rank(self) -> int:
        """The number of columns r."""
        return int(self.U.values.shape[1])

    def scratch(self) -> Factor:
        """Return a factor like U to write to: a spare one, or a new one."""
        return self.spare.pop() if self.spare else self.U.ops.empty(self.U.values)

    def moved(
        self,
        U: Factor,
        *,
        product: Factor | None = None,
        gram: np.ndarray | None = None,
        misfit: Misfit | None = None,
    ) -> None:
        """Go to a new U (and V with it), for methods on the original problem."""
        self.U = self.V = Point(self.U.ops, U, product, gram, misfit)

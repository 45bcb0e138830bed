"""The state of a run: what a solver changes and what a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from symnmf.ops import Ops, Tall
from symnmf.storage import SymmetricArray


class Misfit(NamedTuple):
    """||X - U U^T||_F^2 as it was formed from the entries of X, or carried on from there.

    An exact line search knows by how much f changes, far more exactly than two values of f could
    tell. So the misfit of the next point is that of this one plus the change, and X need not be
    read for it.

    Attributes
    ----------
    sqnorm : float
        The misfit.
    doubt : float
        How far the changes added since then may be off in all.
    """

    sqnorm: float
    doubt: float = 0.0

    def changed(self, by: float, doubt: float) -> Misfit:
        """Return the misfit after a change that may be off by ``doubt``."""
        return Misfit(self.sqnorm + by, self.doubt + doubt)


class Point:
    """A factor together with what is known of it: U, X U and U^T U.

    A point is replaced, never edited, so a product or a Gram matrix cannot outlive the factor it
    belongs to. What is not known yet is computed once, when it is asked for.

    Parameters
    ----------
    ops : Ops
        The operations of the backend that ``values`` lives in.
    values : Tall
        The factor itself.
    product : Tall, optional
        X @ values, where it is known already.
    gram : ndarray, optional
        values^T values, likewise.
    misfit : Misfit, optional
        ||X - U U^T||_F^2, likewise.
    """

    __slots__ = ("_gram", "_product", "_sums", "misfit", "ops", "values")

    def __init__(
        self,
        ops: Ops,
        values: Tall,
        product: Tall | None = None,
        gram: np.ndarray | None = None,
        misfit: Misfit | None = None,
    ) -> None:
        self.ops, self.values = ops, values
        self._product, self._gram = product, gram
        self.misfit = misfit
        self._sums: tuple[float, float, float] | None = None

    @property
    def gram(self) -> np.ndarray:
        """U^T U."""
        if self._gram is None:
            self._gram = self.ops.gram(self.values)
        return self._gram

    @property
    def known_gram(self) -> np.ndarray | None:
        """U^T U where it has been computed, else None."""
        return self._gram

    @property
    def known_product(self) -> Tall | None:
        """X U where it has been computed, else None."""
        return self._product

    def product(self, X: SymmetricArray) -> Tall:
        """Return X U, or what stands for it at this point where entries have weights."""
        if self._product is None:
            self._product, sums = X.product_and_sums(self.values, self._gram)
            self._sums = self._sums or sums
        return self._product

    def weighted_sums(self, X: SymmetricArray) -> tuple[float, float, float] | None:
        """Return the sums of w (x - m)^2, w x m and w m^2, M = U U^T; None without weights."""
        if self._sums is None and X.weighted:
            self._sums = X.weighted_sums(self.values, self.values, self._product)
        return self._sums

    def scaled(self, factor: float, X: SymmetricArray) -> Point:
        """Return the point ``factor`` times this one, without a product."""
        product = None if X.weighted else self._product
        return Point(
            self.ops,
            self.ops.combine((factor, self.values)),
            None if product is None else self.ops.combine((factor ** (X.order - 1), product)),
            None if self._gram is None else factor**2 * self._gram,
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
    memory : dict of str to ndarray or Tall
        What a solver remembers between steps; kept in checkpoints.
    schedule : dict of str to ndarray or Tall
        What a coupling remembers between steps; likewise.
    others : list of Point
        The third factor and the fourth, where a tensor's are held together by a coupling.
    spare : list of Tall
        Factors that a step may overwrite, so that large ones are not paid for page by page in
        every iteration; empty after a resume.
    """

    U: Point
    V: Point
    coupling: float = 0.0
    iteration: int = 0
    memory: dict[str, Tall] = field(default_factory=dict)
    schedule: dict[str, Tall] = field(default_factory=dict)
    others: list[Point] = field(default_factory=list)
    spare: list[Tall] = field(default_factory=list, repr=False)

    @classmethod
    def at(cls, X: SymmetricArray, U: Tall, V: Tall | None = None, **known: Tall) -> State:
        """Return the state at a factor, or at two; ``known`` are memory and the like."""
        first = Point(X.ops, U)
        return cls(first, first if V is None else Point(X.ops, V), **known)

    @property
    def factors(self) -> list[Point]:
        """All factors that are held together by a coupling; U alone where there is none."""
        return [self.U] if self.V is self.U else [self.U, self.V, *self.others]

    @property
    def rank(self) -> int:
        """The number of columns r."""
        return int(self.U.values.shape[1])

    def room(self) -> Tall:
        """Return a factor like U to write to: a spare one, or a new one."""
        return self.spare.pop() if self.spare else self.U.ops.empty(self.U.values)

    def moved(
        self,
        U: Tall,
        *,
        product: Tall | None = None,
        gram: np.ndarray | None = None,
        misfit: Misfit | None = None,
    ) -> None:
        """Go to a new U (and V with it), for methods on the original problem."""
        self.U = self.V = Point(self.U.ops, U, product, gram, misfit)

"""The lowest curvature of f that is found at a critical point, and the way down if it is negative.

A point where the gradient vanishes on the free entries may be a saddle: a column that is as good as
zero, or two columns that are the same, are. First-order steps do not see it, since the gradient
along the way out is zero too. The curvature does:

    H D = 2 (U D^T U + D U^T U - S D),   S = X - U U^T,

one product with X for each step of Lanczos on the free entries.

An entry that is 0 with gradient 0 can move too, upwards alone. Where all of v >= 0 lies on such
entries of column j, <H D, D> is 2 (||u_j||^2 ||v||^2 - <S v, v>) for D = v e_j^T, and a projected
power method looks for the v with the largest <S v, v>, for all columns at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.interchange import namespace
from symnmf.ops import Factor, Ops
from symnmf.state import Point

STEPS = 40  # of Lanczos
KEPT = 2**26  # entries of its vectors that are kept in memory, in float32
FEWEST = 6  # steps: where there is room for fewer, a factor is too large to be looked at

#: Entries below this part of the largest of their column count as 0: they can move one way only.
ZERO = 1e-10

#: Curvature, over ||X||_F, that is called negative; rounding and what Lanczos leaves lie above.
NEGATIVE = -1e-5

#: Gradient, in units of ||X||_F and the mean size of an entry of U, that counts as 0.
FLAT = 1e-4

#: Steps of the power method.
POWER_STEPS = 10

#: Cosine of two columns, and size of one against the largest, from which on a stationary point is
#: looked at before it is called the end.
ALIKE, SMALL = 1.0 - 1e-4, 1e-2

WIDE, TINY = np.dtype(np.float64), float(np.finfo(np.float64).tiny)

#: Lengths, against ||U||_F, at which the way down is tried.
LENGTHS = 2.0 ** -np.arange(13)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The lowest curvature that was found.

    Attributes
    ----------
    lowest : float
        <H D, D> over ||X||_F, for the unit D found; that of all D may be somewhat lower.
    direction : ndarray of shape (n, r)
        D; where U counts as 0 it is 0 too, or positive where the gradient is 0 as well.
    strict : bool
        Whether every entry that is 0 has a positive gradient, so that the free entries are all
        that can move. Directions that mix other entries were not looked at.
    """

    lowest: float
    direction: np.ndarray
    strict: bool

    @property
    def negative(self) -> bool:
        """Whether it is below 0 by more than rounding and what Lanczos leaves."""
        return self.lowest < NEGATIVE


def suspicious(gram: np.ndarray) -> bool:
    """Whether columns of U are nearly zero or nearly the same, given U^T U."""
    sizes = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    if sizes.min() <= SMALL * sizes.max():
        return True
    cosines = gram / np.outer(sizes, sizes)
    np.fill_diagonal(cosines, 0.0)
    return bool(cosines.max() >= ALIKE)


def lowest_curvature(f: Any, point: Point) -> Curvature | None:
    """Look for the lowest curvature of an objective of matrices on the entries that can move.

    None where that would take far longer than the run, on a factor of tens of millions of entries.
    """
    ops = f.ops
    if math.prod(point.values.shape) * FEWEST > KEPT:
        return None
    gradient = ops.gradient(point.values, point.product(f), point.gram)
    U, slope = (ops.get(T).astype(np.float64) for T in (point.values, gradient))
    free = ZERO * U.max(axis=0) < U
    held = ~free & (0.5 * slope <= FLAT * f.norm * np.linalg.norm(U) / np.sqrt(U.size))
    hessian = Hessian(f, ops.put(U))
    lowest, direction = _on_free_entries(hessian, free)
    if held.any():
        other, entering = _on_held_entries(hessian, held)
        if other < lowest:
            lowest, direction = other, entering
    norm = float(f.norm)
    lowest = lowest / norm if norm > 0.0 else 0.0
    return Curvature(lowest, ops.get(direction), not held.any())


def _on_free_entries(hessian: Hessian, free: np.ndarray) -> tuple[float, Factor]:
    """Return the lowest curvature by Lanczos, and its direction.

    The vectors are orthogonalised against all earlier ones.
    """
    ops, size = hessian.f.ops, free.size
    steps = min(KEPT // max(size, 1), STEPS, int(free.sum()))
    if steps == 0:
        return 0.0, ops.zeros(free.shape, WIDE)
    start = np.where(free, np.random.default_rng(0).standard_normal(free.shape), 0.0)
    current, movable = ops.put(start / np.linalg.norm(start)), ops.put(free.astype(np.float64))
    reshape = namespace(current).reshape
    kept = np.dtype(np.float32 if size > 10_000 else np.float64)
    basis = ops.zeros((steps, size), kept)
    diagonal: list[float] = []
    off: list[float] = []
    for step in range(steps):
        basis[step, :] = reshape(ops.cast(current, kept), (-1,))
        image = movable * hessian(current)
        diagonal.append(ops.inner(image, current))
        known = basis[: step + 1, :]
        flat = reshape(image, (-1,))
        for _ in range(2):
            flat = flat - ops.cast((known @ ops.cast(flat, kept)) @ known, WIDE)
        image = reshape(flat, free.shape)
        length = math.sqrt(ops.inner(image, image))
        if length <= 1e-10 * max(map(abs, diagonal)) or step == steps - 1:
            break
        off.append(length)
        current = image / length
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(
        np.array(diagonal), np.array(off), select="i", select_range=(0, 0)
    )
    weights = ops.put(vectors[:, 0].astype(kept))
    direction = ops.cast(reshape(weights @ basis[: len(diagonal), :], free.shape), WIDE)
    return float(values[0]), direction / max(_norm(ops, direction), TINY)


def _on_held_entries(hessian: Hessian, held: np.ndarray) -> tuple[float, Factor]:
    """Return the lowest curvature on held entries of one column, by a projected power method.

    It begins with all of them, and then again with those that the first v has left.
    """
    ops = hessian.f.ops
    lowest, best = np.inf, ops.zeros(held.shape, WIDE)
    sizes, entering = hessian.gram.diagonal(), ops.put(held.astype(np.float64))
    begin = entering
    for _ in range(2):
        V = begin
        for _ in range(POWER_STEPS):
            lengths = np.sqrt(ops.gram(V).diagonal())
            V = ops.times(V, np.diag(1.0 / np.maximum(lengths, TINY)))
            image = hessian.residual(V)
            quotients = ops.cross(V, image).diagonal()
            curved = np.where(lengths > 0.0, 2.0 * (sizes - quotients), np.inf)
            column = int(curved.argmin())
            if curved[column] < lowest:
                lowest = float(curved[column])
                best = ops.times(V, np.diag(np.arange(len(sizes)) == column))
            # without the shift the method would follow a large negative eigenvalue of S
            shifted = ops.times(V, np.diag(np.maximum(-quotients, 0.0)))
            V = entering * ops.clip(image + shifted)
        begin = entering * ops.cast(V == 0.0, WIDE)
    return lowest, best


class Hessian:
    """H at U, as a product; all of it in float64, where the factors are."""

    def __init__(self, f: Any, U: Factor) -> None:
        self.f, self.U, self.gram = f, U, f.ops.gram(U)
        self.tall = self._narrow(U)

    def _narrow(self, T: Factor) -> Factor:
        return self.f.ops.cast(T, self.f.dtype)

    def __call__(self, D: Factor) -> Factor:
        """Return H D."""
        return 2.0 * (self._model(D) - self.residual(D))

    def residual(self, D: Factor) -> Factor:
        """Return S D."""
        return self.f.residual_times(self.tall, self.tall, D)

    def _model(self, D: Factor) -> Factor:
        """Return [W o (U D^T + D U^T)] U.

        With weights it is half the difference of two residuals: the quadratic parts of
        (U + D)(U + D)^T and (U - D)(U - D)^T are the same.
        """
        ops = self.f.ops
        if self.f.unit_weights:
            return ops.times(self.U, ops.cross(D, self.U)) + ops.times(D, self.gram)
        scale = _norm(ops, self.U) / _norm(ops, D)
        less, more = (self._narrow(self.U + sign * scale * D) for sign in (-1.0, 1.0))
        times = self.f.residual_times
        return (times(less, less, self.U) - times(more, more, self.U)) / (2.0 * scale)


def _norm(ops: Ops, T: Factor) -> float:
    return math.sqrt(ops.inner(T, T))


def way_down(f: Any, U: np.ndarray, value: Any, curvature: Curvature) -> np.ndarray | None:
    """Return a factor with a lower f along the direction, both ways and clipped at 0, or None.

    ``value`` takes a host array and returns f.
    """
    if not curvature.negative:
        return None
    size = float(np.linalg.norm(U))
    least, best = value(U), None
    least -= 1e-12 * abs(least) + np.finfo(f.dtype).eps ** 2 * f.norm**2
    for length in LENGTHS:
        for sign in (1.0, -1.0):
            moved = np.maximum(U + sign * length * size * curvature.direction, 0.0).astype(U.dtype)
            reached = value(moved)
            if reached < least:
                least, best = reached, moved
        if best is not None and length < LENGTHS[2]:
            break
    return best

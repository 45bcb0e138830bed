"""What a stationary point is looked at for before it is called the end of a run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symnmf.objectives import Frobenius, MatrixObjective, Objective
from symnmf.objectives.objective import REFERENCE_SHARE, rounding_level
from symnmf.run.uniqueness import uniqueness
from symnmf.state import Point
from symnmf.steps.revival import column_from_residual, dead_columns
from symnmf.steps.second_order import Curvature, lowest_curvature, suspicious, way_down
from symnmf.storage.components import Components, components_of

#: ||X_c||_F of a component, over ||X||_F, below which it is not looked at on its own.
LEAST_COMPONENT = 1e-10

#: Stationarity up to which the curvature says something of the critical point nearby.
NEAR = 1e-4

#: <u_i, u_i>, over the largest entry of X, from which on a row with hidden entries has grown away.
GROWN = 25.0

#: ||U||_F^2 over ||X||_F up to which U may be on its way to 0.
VANISHING = 1e-6


class Inspection:
    """Looks at one objective's stationary points; what it needs of X is computed once."""

    def __init__(self, f: Objective) -> None:
        self.f = f

    @functools.cached_property
    def components(self) -> Components | None:
        """The parts into which X falls; None if there is one, or entries have weights."""
        return components_of(self.f.storage) if isinstance(self.f, Frobenius) else None

    def worst(self, U: Point) -> float:
        """Return the largest stationarity of a component of X, each at its own scale.

        The natural residual of its rows with t = 1 / ||X_c||_F, over a tenth of ||U_c||_F or of
        the root of ||X_c||_F, whichever is larger: rows that tend to 0 are an answer. 0 where the
        precision allows no less.
        """
        parts, f = self.components, self.f
        if parts is None:
            whole = f.stationarity(U)
            return 0.0 if whole <= rounding_level(f.dtype) else float(whole)
        seen = parts.norms > LEAST_COMPONENT * f.norm
        steps = np.divide(1.0, parts.norms, out=np.zeros(len(seen)), where=seen)
        gram = f.curvature(U.gram)
        if U.slope is None:
            slope, twice = f.ops.gradient(U.values, U.product(f), gram), 1.0
        else:
            slope, twice = U.slope, 2.0
        values = f.ops.get(U.values).astype(np.float64)
        kept = np.minimum(values, (twice * steps)[parts.labels, None] * f.ops.get(slope))
        squares = [parts.sums(np.einsum("ik,ik->i", rows, rows)) for rows in (kept, values)]
        residual, size = np.sqrt(squares)
        unit = REFERENCE_SHARE * np.maximum(size, np.sqrt(parts.norms))
        found = np.divide(residual, unit, out=np.zeros(len(seen)), where=seen)
        # the Gram matrix is that of all components, and its rounding is felt in each
        floor = rounding_level(f.dtype) * max(float(np.linalg.norm(gram)), f.norm) * steps
        return float(found[~(found <= floor)].max(initial=0.0))

    def lower(self, U: Point, *, begun: bool) -> np.ndarray | None:
        """Return a factor below a stationary one, where that is worth looking for and there is one.

        It is where columns are zero, nearly zero or nearly the same, and where a run has hardly
        begun: a start may be a saddle. Any other run comes to one by chance only.
        """
        if not isinstance(self.f, MatrixObjective):
            return None
        if begun and not suspicious(U.gram):
            return None
        dead = dead_columns(U)
        if len(dead):
            column = column_from_residual(self.f, U)
            if column is not None:
                revived = self.f.ops.get(U.values).copy()
                revived[:, dead[0]] = column
                return revived
        curvature = lowest_curvature(self.f, U)
        return None if curvature is None else self.below(U, curvature)

    def below(self, U: Point, curvature: Curvature) -> np.ndarray | None:
        """Return a factor below U along the direction of the curvature, if there is one."""
        f = self.f

        def value(U: np.ndarray) -> float:
            return f.value(Point(f.ops, f.ops.put(np.ascontiguousarray(U, dtype=f.dtype))))

        return way_down(f, f.ops.get(U.values), value, curvature)

    def vanishes(self, U: Point) -> bool:
        """Whether U is as good as 0 and nothing v >= 0 has <X v, v> > 0: then U = 0 is an answer.

        Only an X with negative entries, or terms on U, can have that.
        """
        f = self.f
        signed = f.signed or bool(f.terms)
        if not signed or not np.trace(U.gram) <= VANISHING * f.norm:
            return False
        nothing = Point(f.ops, f.ops.zeros(U.values.shape, f.dtype))
        return column_from_residual(f, nothing) is None


def grown_rows(f: Objective, U: np.ndarray) -> np.ndarray:
    """Return the rows of U that hidden entries let grow without limit.

    Where x_ii is not observed, a column on row i alone costs nothing: it can grow for ever, and
    the others shrink against it, at a vanishing gradient. An observed diagonal forbids that.
    """
    if f.unit_weights:
        return np.empty(0, dtype=np.int64)
    U = U[: f.rows]
    lengths = np.einsum("ij,ij->i", U, U, dtype=np.float64)
    return np.flatnonzero(lengths > GROWN * f.largest())


def looked_at(f: Objective, U: Point, tol: float) -> dict[str, Any]:
    """Return what one look at U alone shows: components, curvature, growth, uniqueness."""
    if not isinstance(f, MatrixObjective):
        return {}
    values, inspection = f.ops.get(U.values), Inspection(f)
    known: dict[str, Any] = {"uniqueness": uniqueness(values) if values.any() else None}
    if f.sqnorm == 0.0 or not np.isfinite(values).all():
        return known
    if not values.any():
        return known | {"zero_is_best": inspection.vanishes(U)}
    known["grown_rows"] = tuple(map(int, grown_rows(f, values)))
    worst = inspection.worst(U)
    parts = inspection.components
    known |= {"worst_component": worst, "components": 1 if parts is None else len(parts.norms)}
    if not worst <= max(min(tol, NEAR), rounding_level(f.dtype)):  # NaN neither
        return known
    curvature = lowest_curvature(f, U)
    # with an l1 term a column that leaves zero costs more than it brings at first: no saddle
    dead = f.term_slope == 0.0 and len(dead_columns(U)) > 0
    dead = dead and column_from_residual(f, U) is not None
    if curvature is None:
        return known | {"falls": dead}
    # where a point is stationary to 1e-4 only, a curvature of that size has no sign
    falls = curvature.lowest < -worst and inspection.below(U, curvature) is not None
    return known | {
        "lowest_curvature": curvature.lowest,
        "strict": curvature.strict,
        "falls": falls or dead,
    }

"""The exact line search: f along a line is a polynomial of degree 4."""

from __future__ import annotations

import functools
import math

import numpy as np

from symnmf.kernels.quartics import gram_along, quartic_step
from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.state import Misfit, State

#: Roundings that an entry of X U stands for: those of a long sum, and of the steps added to it.
ROUNDINGS = 16.0


def line_step(
    f: Objective,
    state: State,
    target: Factor,
    *,
    enough: float = 0.0,
    per_length: float = 0.0,
) -> tuple[float, Factor]:
    """Move U towards ``target`` to where f is lowest, by one product.

    U stays unless f falls by ``enough`` and by ``per_length`` ||t D||^2, where D is the way to
    the target. Return the fraction t of the way, 0 where U stays, and the step t D made, or D
    where U stays. ``target``, the old U and its product are overwritten: copy what is needed.
    """
    U = state.U
    product, gram = U.product(f), U.gram
    line, coefficients = f.along(U.values, product, gram, target, state.scratch())
    step, change = quartic_step(*map(float, coefficients))
    length = float(line.gram.trace())
    if step == 0.0 or -change < max(enough, per_length * step**2 * length):
        state.spare.append(line.image)
        return 0.0, line.D
    values, product, moved = f.advance(U.values, product, line, step)
    state.spare.append(line.image)
    following = gram_along(gram, line.cross, line.gram, step)
    # else little but rounding may be left of it
    trusted = following.trace() > 0.5 * U.size
    misfit = U.misfit
    if misfit is not None:
        doubt = misfit.doubt + step * _doubt(f, gram, length)
        misfit = Misfit(misfit.sqnorm + 2.0 * change, doubt)
    state.moved(values, product=product, gram=following if trusted else None, misfit=misfit)
    return float(step), moved


def _doubt(f: Objective, gram: np.ndarray, length: float) -> float:
    """Return how far the rounding of X U may put off the slope along D, where ||D||^2 = length.

    The slope is 2 <U G - X U, D>, and every entry of X U, which is about U G, was rounded. These
    errors have no common sign, so the sum is off by their root mean square: about
    eps ||U G|| ||D|| over the root of the number of entries.
    """
    size = float(np.sqrt(max(np.vdot(gram @ gram, gram), 0.0) * length))
    entries = f.shape[0] * len(gram)
    return ROUNDINGS * _epsilon(f.dtype) * size / math.sqrt(entries)


@functools.cache
def _epsilon(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)

"""The projected Gauss-Newton direction of f, by conjugate gradients and without a product."""

from __future__ import annotations

import numpy as np

from symnmf.kernels import newton, reductions
from symnmf.parallel import Threads

CG_STEPS = 20
CG_ACCURACY = 0.1  # of the first residual; more buys little, for the model is only a model


def gauss_newton_target(
    U: np.ndarray, product: np.ndarray, gram: np.ndarray, shift: float, threads: Threads
) -> np.ndarray:
    r"""Return max(U + D, 0) for the Gauss-Newton step D on the entries that may move.

    With A = X U (``product``), G = U^T U (``gram``) and the free entries
    :math:`\{U > 0\} \cup \{A > U G\}`, D solves on them, nearly,

    .. math:: D G + U (D^\top U) + \mathrm{shift}\, D = A - U G ,

    whose left side is half the Gauss-Newton matrix of f applied to D: positive definite for
    shift > 0, and free of X.
    """
    n, r = U.shape
    kind = U.dtype
    weights = gram.astype(kind)
    turned = np.empty((r, r), kind)
    search, image, other, residual, free = (np.empty((n, r), kind) for _ in range(5))
    D = np.zeros((n, r), kind)
    bounds = threads.split(n, 6.0 * r * r)

    def gradient(begin: int, end: int) -> float:
        np.matmul(U[begin:end], weights, out=image[begin:end])
        size = newton.free_gradient_rows(U, image, product, free, residual, begin, end)
        search[begin:end] = residual[begin:end]
        return size

    def curvature(begin: int, end: int) -> float:
        np.matmul(search[begin:end], weights, out=image[begin:end])
        np.matmul(U[begin:end], turned, out=other[begin:end])
        return newton.curvature_rows(image, other, search, free, shift, begin, end)

    def descend(begin: int, end: int) -> float:
        return newton.descend_rows(D, residual, search, image, length, begin, end)

    def turn(begin: int, end: int) -> None:
        newton.turn_rows(search, residual, ratio, begin, end)

    size = sum(threads.run(gradient, bounds))
    goal = CG_ACCURACY**2 * size
    for _ in range(CG_STEPS):
        turned[...] = reductions.cross_gram(search, U, threads)
        bend = sum(threads.run(curvature, bounds))
        if not bend > 0.0:  # a zero gradient, or rounding
            break
        before, length = size, size / bend
        size = sum(threads.run(descend, bounds))
        if size <= goal:
            break
        ratio = size / before
        threads.run(turn, bounds)
    threads.run(lambda begin, end: newton.project_rows(U, D, begin, end), bounds)
    return D

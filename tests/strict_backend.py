"""A backend that is not NumPy: factors on the second device of array-api-strict.

Such an array refuses NumPy's functions, compiled kernels and arrays of another device, so code
that runs here touches factors through the operations alone. Plain formulas, no fused kernels: it
is also the second opinion on what each operation means.
"""

from __future__ import annotations

import numpy as np
import pytest

from symnmf.kernels import directions, pairs
from symnmf.ops import Line, Ops
from symnmf.storage import SymmetricMatrix
from symnmf.storage.symmetric import as_float32

xp = pytest.importorskip("array_api_strict", reason="needs pip install 'symnmf[test]'")

#: As of a tensor, whose ``size`` is a method.
type(xp.zeros(1)).size = lambda self: self.shape

DEVICE, HOST = xp.Device("device1"), xp.Device("CPU_DEVICE")


def put(array):
    return xp.asarray(np.array(array), device=DEVICE)


def get(T):
    return np.asarray(T.to_device(HOST))


class StrictOps(Ops):
    exact_rows = False

    def put(self, array):
        return put(array)

    def get(self, T):
        return get(T)

    def dtype(self, T):
        return np.dtype(np.float32 if T.dtype == xp.float32 else np.float64)

    def cast(self, T, dtype):
        return xp.astype(T, xp.float32 if dtype == np.float32 else xp.float64)

    def copy(self, T, out=None):
        return xp.asarray(T, copy=True)

    def empty(self, T):
        return xp.empty_like(T)

    def zeros(self, shape, dtype):
        kind = xp.float32 if dtype == np.float32 else xp.float64
        return xp.zeros(shape, dtype=kind, device=DEVICE)

    def small(self, T, matrix):
        return self.cast(put(matrix), self.dtype(T))

    def combine(self, *terms, plus=0.0):
        total = xp.zeros_like(terms[0][1]) + float(plus)
        for weight, T in terms:
            total = total + float(weight) * T
        return total

    def weigh_rows(self, T, weights):
        return T * self.small(T, weights[:, None])

    def clip(self, T):
        return xp.where(T > 0.0, T, xp.zeros_like(T))

    def times(self, T, small):
        return T @ self.small(T, small)

    def multiplied(self, U, product, gram, power, share):
        below = self.times(U, gram)
        usable = (U > 0.0) & (below > 1e-30)
        ratio = xp.where(usable, product, xp.zeros_like(U)) / xp.where(
            usable, below, xp.ones_like(U)
        )
        return U * ((1.0 - share) + share * ratio ** float(power))

    def inner(self, A, B):
        return float(xp.sum(self.cast(A, np.float64) * self.cast(B, np.float64)))

    def cross(self, A, B):
        return get(xp.matrix_transpose(self.cast(A, np.float64)) @ self.cast(B, np.float64))

    def column_sums(self, T):
        return get(xp.sum(self.cast(T, np.float64), axis=0))

    def solve_rows(self, rows, factor, product, anchor, gram, coupling):
        cross = product + float(coupling) * anchor
        columns = [factor[:, j] for j in range(factor.shape[1])]
        for _ in range(rows.sweeps):
            for j in range(len(columns)):
                diagonal = float(gram[j, j] + coupling)
                if diagonal <= 0.0:
                    continue
                value = cross[:, j]
                for k, column in enumerate(columns):
                    if k != j:
                        value = value - float(gram[j, k]) * column
                columns[j] = self.clip(value / diagonal)
        return xp.stack(columns, axis=1)

    def line(self, U, product, Z, image):
        D, image = Z - U, image - product
        return Line(
            self.inner(product, D),
            self.inner(image, D),
            self.cross(U, D),
            self.gram(D),
            D,
            image,
        )

    def advance(self, U, product, line, t):
        step = float(t) * line.D
        return self.clip(U + step), product + float(t) * line.image, step

    def put_at_zero(self, U, product, gram, curvature):
        held = (U > 0) & (curvature * U <= self.times(U, gram) - product)
        U[held] = 0.0
        return int(xp.sum(xp.astype(held, xp.int64)))

    def pair_sums(self, U, product, gram, level, reach, gradient, steps, changes, newest, slots):
        sums = np.zeros((6, max(steps.shape[0], 3)))
        slope = self.times(U, gram) - product
        zero = xp.zeros_like(U)
        if newest >= 0:
            s = steps[newest, ...]
            y = xp.where(s != 0.0, slope - gradient, zero)
            changes[newest, ...] = y
            sums[pairs.NUMBERS, 0] = self.inner(s, s)
        gradient[...] = slope
        gained = U - self.clip(U - (1.0 / level if level > 0.0 else 0.0) * slope)
        sums[pairs.NUMBERS, 1] = self.inner(slope, gained)
        natural = U - self.clip(U - reach * slope)
        sums[pairs.NUMBERS, 2] = self.inner(natural, natural)
        free = xp.where((U > 0.0) | (slope < 0.0), slope, zero)
        for j in (int(k) for k in slots):
            p, q = steps[j, ...], changes[j, ...]
            if newest >= 0:
                sums[pairs.STEP_CHANGE, j] = self.inner(s, q)
                sums[pairs.CHANGE_STEP, j] = self.inner(y, p)
                sums[pairs.CHANGE_CHANGE, j] = self.inner(y, q)
            sums[pairs.STEP_SLOPE, j] = self.inner(p, free)
            sums[pairs.CHANGE_SLOPE, j] = self.inner(q, free)
        return sums

    def pair_target(self, U, gradient, steps, changes, own, step_weights, change_weights, out):
        direction = float(own) * gradient
        for j, (b, c) in enumerate(zip(step_weights, change_weights, strict=True)):
            direction = direction + float(b) * steps[j, ...] + float(c) * changes[j, ...]
        return xp.where((U > 0.0) | (gradient < 0.0), self.clip(U + direction), U)

    def gauss_newton(self, U, product, gram, eigen, weights, dual, steps, spare=None):
        values, vectors = eigen
        weight, shift, relaxation = weights
        inverse = (vectors / (values + shift)) @ vectors.T
        basis = self.times(U, vectors)
        residual = product - self.times(U, gram)
        pull, Z = residual - weight * dual, U
        for _ in range(steps):
            moment = np.ascontiguousarray(self.cross(basis, pull))
            coupling, turned = np.empty(vectors.shape), np.ascontiguousarray(vectors)
            directions.couple(moment, turned, values, shift, coupling)
            D = self.times(pull, inverse) + self.times(basis, coupling)
            y = relaxation * (U + D) + (1.0 - relaxation) * Z + dual
            Z = self.clip(y)
            dual = y - Z
            pull = residual - weight * U + weight * xp.abs(y)
        return Z, dual


class StrictMatrix(SymmetricMatrix):
    def __init__(self, X):
        super().__init__(len(X), X.dtype, StrictOps())
        self.array = put(X)

    def matmul(self, V, out=None):
        return self.array @ V


@as_float32.register
def _(X: StrictMatrix):
    return StrictMatrix(get(X.array).astype(np.float32))

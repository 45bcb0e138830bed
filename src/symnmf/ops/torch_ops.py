"""Factor factors as torch tensors: every operation in plain torch, on whatever device they live.

This is what the kernels of :mod:`symnmf.ops.triton_ops` are held to, and what does the work if
there are none. Sums leave the device together, one small read per operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from symnmf.kernels import pairs
from symnmf.ops.capture import Captures
from symnmf.ops.operations import Hals, Line, Ops, RowSolver
from symnmf.ops.torch_pivoting import pivot_factor
from symnmf.ops.torch_sums import FullPrecision, csr_tensor, summed_cross, summed_dot

DTYPES = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
NAMES = {torch.float32: np.float32, torch.float64: np.float64}

#: Floating point operations a second of float32 products on an H200, rather too few, and numbers in
#: a block: so many that launching costs little beside the work.
GPU_RATE, GPU_BLOCK = 4e13, 2**24


class TorchOps(Ops):
    """Operations on torch tensors.

    Parameters
    ----------
    device : torch.device
        The device that holds the factors.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self._captures = Captures() if self.device.type == "cuda" else None
        if self.device.type == "cuda":
            self.rate, self.block = GPU_RATE, GPU_BLOCK

    def _small(self, array: np.ndarray, like: Tensor) -> Tensor:
        """Return an r x r matrix of the host on the device, in the precision of ``like``."""
        return self._put_soon(np.ascontiguousarray(array, dtype=self.dtype(like)))

    def _put_soon(self, array: np.ndarray) -> Tensor:
        """Return an array of the host on the device, without waiting for what is under way."""
        host = torch.from_numpy(array)
        if self.device.type != "cuda":
            return host.to(self.device)
        locked = torch.empty(host.shape, dtype=host.dtype, pin_memory=True)
        return locked.copy_(host).to(self.device, non_blocking=True)

    @staticmethod
    def _read(*parts: Tensor) -> np.ndarray:
        """Bring numbers and small matrices to the host together, flat."""
        return torch.cat([part.reshape(-1).double() for part in parts]).cpu().numpy()

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def product(self, X: Tensor, V: Tensor, out: Tensor | None = None) -> Tensor:
        """Return X @ V for a full X, or one in CSR form."""
        with FullPrecision():
            if out is None or X.layout != torch.strided:
                return X @ V
            return torch.mm(X, V, out=out)

    def misfit(self, X: Tensor, U: Tensor) -> float | None:
        """Return ||X - U U^T||_F^2 for a full X; None where no kernel of its own does that."""
        return None

    # --- to and from the host

    def put(self, array: Any) -> Tensor:
        if sp.issparse(array):
            parts = (array.indptr, array.indices, array.data)
            indptr, indices, data = (torch.from_numpy(part) for part in parts)
            return csr_tensor(indptr, indices, data, array.shape).to(self.device)
        return torch.tensor(np.ascontiguousarray(array), device=self.device)

    def get(self, T: Tensor) -> np.ndarray:
        return T.cpu().numpy()

    def dtype(self, T: Tensor) -> np.dtype:
        return np.dtype(NAMES[T.dtype])

    def cast(self, T: Tensor, dtype: np.dtype) -> Tensor:
        return T.to(DTYPES[np.dtype(dtype)])

    def copy(self, T: Tensor, out: Tensor | None = None) -> Tensor:
        return T.clone() if out is None else out.copy_(T)

    def empty(self, T: Tensor) -> Tensor:
        return torch.empty_like(T)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
        return torch.zeros(shape, dtype=DTYPES[np.dtype(dtype)], device=self.device)

    # --- entry by entry

    def combine(self, *terms: tuple[float, Tensor], plus: float = 0.0) -> Tensor:
        (first, T), *others = terms
        total = first * T
        for weight, other in others:
            total.add_(other, alpha=weight)
        return total.add_(plus) if plus else total

    def weigh_rows(self, T: Tensor, weights: np.ndarray) -> Tensor:
        return T * torch.from_numpy(weights).to(T)[:, None]

    def clip(self, T: Tensor) -> Tensor:
        return T.clamp_(min=0)

    def times(self, T: Tensor, small: np.ndarray) -> Tensor:
        with FullPrecision():
            return T @ self._small(small, T)

    def multiplied(
        self, U: Tensor, product: Tensor, gram: np.ndarray, power: float, share: float
    ) -> Tensor:
        below = self.times(U, gram)
        # an entry so small that its denominator underflows counts as zero
        usable = (U > 0) & (below > torch.finfo(U.dtype).tiny)
        ratio = torch.where(usable, product / torch.where(usable, below, 1), 0)
        if power != 1.0:
            ratio = ratio**power
        if share != 1.0:
            ratio = (1 - share) + share * ratio
        return U * ratio

    # --- sums

    def inner(self, A: Tensor, B: Tensor) -> float:
        return float(summed_dot(A, B))

    def cross(self, A: Tensor, B: Tensor) -> np.ndarray:
        return self.cross_there(A, B).cpu().numpy()

    def cross_there(self, A: Tensor, B: Tensor) -> Tensor:
        """Return A^T B in float64 on the device."""
        return summed_cross(A, B)

    def column_sums(self, T: Tensor) -> np.ndarray:
        return T.sum(0, dtype=torch.float64).cpu().numpy()

    # --- steps

    def solve_rows(
        self,
        rows: RowSolver,
        factor: Tensor,
        product: Tensor,
        anchor: Tensor,
        gram: np.ndarray,
        coupling: float,
    ) -> Tensor:
        if isinstance(rows, Hals):
            return self._hals(factor, product, anchor, gram, coupling, rows.sweeps)
        return pivot_factor(factor, product, anchor, gram, coupling)

    def _hals(
        self,
        factor: Tensor,
        product: Tensor,
        anchor: Tensor,
        gram: np.ndarray,
        coupling: float,
        sweeps: int,
    ) -> Tensor:
        diagonal = np.diagonal(gram)
        off_diagonal = self._small(gram - np.diag(diagonal), factor)
        cross = torch.add(product, anchor, alpha=coupling)
        usable = np.flatnonzero(diagonal + coupling > 0.0)  # nothing decides a column of zeros
        with FullPrecision():
            for _ in range(sweeps):
                for j in usable:
                    value = cross[:, j] - factor @ off_diagonal[j]
                    factor[:, j] = value.div_(float(diagonal[j]) + coupling).clamp_(min=0)
        return factor

    def line(self, U: Tensor, product: Tensor, Z: Tensor, image: Tensor) -> Line:
        D, image = Z.sub_(U), image.sub_(product)
        parts = summed_dot(product, D), summed_dot(image, D), summed_cross(U, D), summed_cross(D, D)
        return self._line(self._read(*parts), D, image)

    @staticmethod
    def _line(sums: np.ndarray, D: Tensor, image: Tensor) -> Line:
        r = D.shape[1]
        cross, gram = sums[2:].reshape(2, r, r)
        return Line(float(sums[0]), float(sums[1]), cross, gram, D, image)

    def advance(
        self, U: Tensor, product: Tensor, line: Line, t: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        step = line.D.mul_(t)
        # rounding could leave a crumb below zero where the step goes all the way to it
        return U.add_(step).clamp_(min=0), product.add_(line.image, alpha=t), step

    def put_at_zero(self, U: Tensor, product: Tensor, gram: np.ndarray, curvature: float) -> int:
        held = (U > 0) & (curvature * U <= self.times(U, gram).sub_(product))
        U.masked_fill_(held, 0)
        return int(held.sum())

    def pair_sums(
        self,
        U: Tensor,
        product: Tensor,
        gram: np.ndarray,
        level: float,
        reach: float,
        gradient: Tensor,
        steps: Tensor,
        changes: Tensor,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        value = self.times(U, gram).sub_(product)
        if newest >= 0:
            changes[newest] = torch.where(steps[newest] != 0, value - gradient, 0)
        gradient.copy_(value)
        move = value.double() * (1.0 / level if level > 0.0 else 0.0)
        held = torch.minimum(U.double(), move)  # u - max(u - move, 0)
        natural = torch.minimum(U.double(), reach * value.double())
        slope = torch.where((U > 0) | (value < 0), value, 0)
        s, y = (steps[newest], changes[newest]) if newest >= 0 else (slope, slope)
        sums = [summed_dot(s, s), summed_dot(held, value.double()), summed_dot(natural, natural)]
        for j in slots:
            p, q = steps[j], changes[j]
            sums += [summed_dot(a, b) for a, b in ((s, q), (y, p), (y, q), (p, slope), (q, slope))]
        return self._pair_table(self._read(*sums), len(steps), newest, slots)

    @staticmethod
    def _pair_table(sums: np.ndarray, depth: int, newest: int, slots: np.ndarray) -> np.ndarray:
        """Arrange three numbers and five per slot as :func:`pairs.gradient_rows` does."""
        table = np.zeros((6, max(depth, 3)))
        if newest >= 0:
            table[pairs.NUMBERS, 0] = sums[0]
        table[pairs.NUMBERS, 1:3] = sums[1:3]
        if len(slots):
            table[: pairs.NUMBERS, slots] = sums[3:].reshape(-1, 5).T
        return table

    def pair_target(
        self,
        U: Tensor,
        gradient: Tensor,
        steps: Tensor,
        changes: Tensor,
        own: float,
        step_weights: np.ndarray,
        change_weights: np.ndarray,
        out: Tensor,
    ) -> Tensor:
        direction = own * gradient
        for j, (b, c) in enumerate(zip(step_weights, change_weights, strict=True)):
            if b != 0.0 or c != 0.0:  # else a slot not in use
                direction.add_(steps[j], alpha=float(b)).add_(changes[j], alpha=float(c))
        moved = torch.where((U > 0) | (gradient < 0), (U + direction).clamp_(min=0), U)
        return out.copy_(moved)

    def gauss_newton(
        self,
        U: Tensor,
        product: Tensor,
        gram: np.ndarray,
        eigen: tuple[np.ndarray, np.ndarray],
        weights: tuple[float, float, float],
        dual: Tensor,
        steps: int,
        spare: list[torch.Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        values, vectors = eigen
        weight, shift, relaxation = weights
        r = len(gram)
        # what :func:`symnmf.kernels.directions.couple` divides by, and the share of B it takes
        apart = 1.0 / (shift * (values[:, None] + values + shift))
        share = values / (values + shift)
        inverse = (vectors / (values + shift)) @ vectors.T
        packed = np.concatenate(
            [part.ravel() for part in (gram, vectors, inverse, apart, share, np.array([weight]))]
        )
        small = self._put_soon(packed)

        def relax(U: Tensor, product: Tensor, dual: Tensor, small: Tensor) -> tuple[Tensor, Tensor]:
            return self._relax(U, product, dual, small, r, relaxation, steps)

        if self._captures is None:
            return relax(U, product, dual, small)
        key = ("gauss-newton", relaxation, steps)
        target, dual = self._captures.run(key, relax, U, product, dual, small)
        return target, dual

    def _relax(
        self,
        U: Tensor,
        product: Tensor,
        dual: Tensor,
        small: Tensor,
        r: int,
        relaxation: float,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        """Do all steps of alternating directions; see :mod:`symnmf.kernels.directions`.

        Nothing is read back, so that all of it can be captured and replayed.
        """
        gram, vectors, inverse, apart = small[: 4 * r * r].view(4, r, r)
        share, weight = small[4 * r * r : -1], small[-1:].to(U.dtype)
        kind = U.dtype
        with FullPrecision():
            basis = U @ vectors.to(kind)
            residual = product - U @ gram.to(kind)
            fixed, pull = residual - weight * U, residual - weight * dual
            Z, inverse = U, inverse.to(kind)
            for _ in range(steps):
                B = summed_cross(basis, pull) @ vectors
                off_diagonal = (((share * B - B.T) * apart) @ vectors.T).to(kind)
                end = U + pull @ inverse + basis @ off_diagonal
                y = relaxation * end + (1.0 - relaxation) * Z + dual
                Z, dual = y.clamp(min=0), y.clamp(max=0)
                pull = fixed + weight * y.abs()
        return Z, dual


def device_ops(device: torch.device) -> TorchOps:
    """Return the operations for a device: with compiled kernels if there are any."""
    if device.type == "cuda":
        try:
            from symnmf.ops.triton_ops import TritonOps
        except ImportError:  # torch without triton, as on Windows
            return TorchOps(device)
        return TritonOps(device)
    return TorchOps(device)


def as_torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's name of a NumPy precision."""
    return DTYPES[np.dtype(dtype)]

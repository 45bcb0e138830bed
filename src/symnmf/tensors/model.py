r"""The model [[U_1, ..., U_d]] over the observed entries: its products, its norm, on a line.

Where all entries are observed, everything is a product of Gram matrices. Where those with a
repeated index are not, a sum over different indices is one over all, corrected for coincidences
(Moebius inversion on the partitions of the d indices):

.. math:: \sum_{i_1, \dots, i_d \text{ different}} f_1(i_1) \cdots f_d(i_d)
    = \sum_{\pi} \prod_{B \in \pi} (-1)^{|B|-1} (|B|-1)! \sum_i \prod_{p \in B} f_p(i).

With :math:`f_p(i) = (U_p)_{ir} (W_p)_{is}` the inner sums are products of entrywise products of
factors, so the correction costs a few passes over the factors and none over T.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symnmf.ops import HostOps

Block = tuple[int, ...]


def partitions(items: Block) -> Iterator[tuple[Block, ...]]:
    """Yield the partitions of ``items`` into blocks; the first item's block comes first."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for beside in itertools.combinations(rest, size):
            left = tuple(item for item in rest if item not in beside)
            for others in partitions(left):
                yield ((first, *beside), *others)


class Model:
    """[[U_1, ..., U_d]] over the observed entries of a tensor of order d."""

    def __init__(self, order: int, repeats_observed: bool, ops: HostOps) -> None:
        self.order, self.repeats_observed, self.ops = order, repeats_observed, ops

    def _partitions(self, items: Block) -> Iterator[tuple[int, tuple[Block, ...]]]:
        """Yield partitions with their coefficients, the product of (-1)^(|B|-1) (|B|-1)!."""
        if self.repeats_observed:
            yield 1, tuple((item,) for item in items)
            return
        for blocks in partitions(items):
            sizes = [len(block) - 1 for block in blocks]
            yield (-1) ** sum(sizes) * math.prod(map(math.factorial, sizes)), blocks

    def contracted(
        self, factors: Sequence[np.ndarray], own: int, others: Mapping[int, np.ndarray]
    ) -> np.ndarray:
        """Return it contracted with ``others`` in all slots but ``own``, column by column.

        A matrix of a single column goes with every column of the rest.
        """
        sums: dict[Any, np.ndarray] = {}
        weights: dict[Any, np.ndarray] = {}
        beside: dict[Any, Block] = {}

        def key(block: Block) -> Any:  # factors may coincide
            return tuple(sorted((id(factors[q]), id(others[q])) for q in block))

        for scale, ((_, *rest), *blocks) in self._partitions((own, *others)):
            weight = np.full((factors[own].shape[1], 1), float(scale))
            for block in blocks:
                name = key(block)
                if name not in sums:
                    left, right = (_product(parts, block) for parts in (factors, others))
                    sums[name] = self.ops.cross(left, right)
                weight = weight * sums[name]
            name = key(tuple(rest))
            weights[name] = weights.get(name, 0.0) + weight
            beside[name] = tuple(rest)
        total: Any = 0.0
        for name, block in beside.items():
            image = _product(factors, (own, *block)) @ weights[name]
            total = total + (image * _product(others, block) if block else image)
        return np.asarray(total)

    def sqnorm(self, factors: Sequence[np.ndarray]) -> float:
        """Return ||[[U_1, ..., U_d]]||^2."""
        others = {q: factors[q] for q in range(1, self.order)}
        return self.ops.inner(self.contracted(factors, 0, others), factors[0])

    def hidden(self, factors: Sequence[np.ndarray], own: int) -> np.ndarray | None:
        """Return the part of [[U_1, ..., U_d]] that is not observed, contracted with all but one.

        Added to the same contraction of T, it fills the unobserved entries with what the model says
        of them: a majorisation of the objective, whose gradient at these factors is the same. None
        where every entry is observed.
        """
        if self.repeats_observed:
            return None
        others = {q: factors[q] for q in range(self.order) if q != own}
        mine = factors[own]
        whole = mine @ math.prod(self.ops.gram(factor) for factor in others.values())
        return np.asarray(whole - self.contracted(factors, own, others), mine.dtype)

    def line(self, U: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Return the coefficients of 1, t, ..., t^2d in ||[[U + tD, ..., U + tD]]||^2."""
        scales: dict[tuple[int, ...], int] = {}
        for scale, blocks in self._partitions(tuple(range(self.order))):
            sizes = tuple(sorted(map(len, blocks)))
            scales[sizes] = scales.get(sizes, 0) + scale
        grams = {m: self._power_gram(U, D, m) for sizes in scales for m in sizes}
        total = np.zeros(2 * self.order + 1)
        for sizes, scale in scales.items():
            total += scale * functools.reduce(_multiply, (grams[m] for m in sizes)).sum(axis=(1, 2))
        return total

    def _power_gram(self, U: np.ndarray, D: np.ndarray, m: int) -> np.ndarray:
        """Return the coefficients in t of the Gram matrix of (U + tD)^m, m entry by entry."""
        r = U.shape[1]
        parts = [math.comb(m, k) * U ** (m - k) * D**k for k in range(m + 1)]
        gram = self.ops.gram(np.hstack(parts))
        out = np.zeros((2 * m + 1, r, r))
        for k, j in itertools.product(range(m + 1), repeat=2):
            out[k + j] += gram[k * r : (k + 1) * r, j * r : (j + 1) * r]
        return out


def _product(factors: Any, block: Block) -> np.ndarray:
    """Return the entrywise product of some factors."""
    return np.asarray(math.prod(factors[q] for q in block))


def _multiply(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the coefficients of a product of two polynomials in t, entry by entry."""
    out = np.zeros((len(first) + len(second) - 1, *first.shape[1:]))
    for k, coefficient in enumerate(first):
        out[k : k + len(second)] += coefficient * second
    return out

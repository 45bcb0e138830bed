r"""The model [[U_1, ..., U_d]] over the observed entries: its norm, its products, on a line.

Where all entries are observed, everything is a product of Gram matrices. Where those with a
repeated index are not, a sum over different indices is one over all, corrected for coincidences
(Moebius inversion on the partitions of the d indices):

.. math:: \sum_{i_1, \dots, i_d \text{ different}} f_1(i_1) \cdots f_d(i_d)
    = \sum_{\pi} \prod_{B \in \pi} (-1)^{|B|-1} (|B|-1)! \sum_i \prod_{p \in B} f_p(i).

With :math:`f_p(i) = (U_p)_{ir} (U_p)_{is}` the inner sums are Gram matrices of entrywise products
of factors, so the correction costs a few passes over the factors and none over T.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

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


def sign(block: Block) -> int:
    """Return (-1)^(|B|-1) (|B|-1)!."""
    return (-1) ** (len(block) - 1) * math.factorial(len(block) - 1)


class Model:
    """[[U_1, ..., U_d]] over the observed entries of a tensor.

    Parameters
    ----------
    order : int
        d.
    repeats_observed : bool
        Whether entries with a repeated index count.
    ops : HostOps
        For sums over the factors.
    """

    def __init__(self, order: int, repeats_observed: bool, ops: HostOps) -> None:
        self.order, self.repeats_observed, self.ops = order, repeats_observed, ops

    def sqnorm(self, factors: Sequence[np.ndarray]) -> float:
        """Return ||[[U_1, ..., U_d]]||^2."""
        grams = _Grams(factors, self.ops)
        kept = self._partitions(tuple(range(self.order)))
        return float(
            sum(np.sum(math.prod(map(sign, blocks)) * grams.product(blocks)) for blocks in kept)
        )

    def hidden(self, factors: Sequence[np.ndarray], own: int) -> np.ndarray | None:
        """Return the part of [[U_1, ..., U_d]] that is not observed, contracted with all but one.

        Added to the same contraction of T, it fills the unobserved entries with what the model says
        of them: a majorisation of the objective, whose gradient at these factors is the same. None
        where every entry is observed.
        """
        if self.repeats_observed:
            return None
        grams = _Grams(factors, self.ops)
        mine = factors[own]
        weights: dict[tuple[int, ...], np.ndarray] = {}
        beside: dict[tuple[int, ...], np.ndarray] = {}
        items = (own, *(p for p in range(self.order) if p != own))
        for first, *others in self._partitions(items):
            if len(others) == self.order - 1:  # no coincidence: that is the sum over all entries
                continue
            key = grams.key(first[1:])
            scale = -math.prod(map(sign, (first, *others)))
            weights[key] = weights.get(key, 0.0) + scale * grams.product(others)
            if len(first) > 1:
                beside[key] = grams.hadamard(first[1:])
        total = np.zeros(mine.shape)
        for key, weight in weights.items():
            rest = beside.get(key)
            total += mine @ weight if rest is None else rest * ((mine * rest) @ weight)
        return total.astype(mine.dtype, copy=False)

    def line(self, U: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Return the coefficients of 1, t, ..., t^2d in ||[[U + tD, ..., U + tD]]||^2."""
        scales: dict[tuple[int, ...], int] = {}
        for blocks in self._partitions(tuple(range(self.order))):
            sizes = tuple(sorted(map(len, blocks)))
            scales[sizes] = scales.get(sizes, 0) + math.prod(map(sign, blocks))
        grams = {m: self._power_gram(U, D, m) for sizes in scales for m in sizes}
        total = np.zeros(2 * self.order + 1)
        for sizes, scale in scales.items():
            total += scale * functools.reduce(_multiply, (grams[m] for m in sizes)).sum(axis=(1, 2))
        return total

    def against(
        self, factors: Sequence[np.ndarray], own: int, vectors: dict[int, np.ndarray]
    ) -> np.ndarray:
        """Return [[U_1, ..., U_d]] contracted with one vector in every slot but ``own``."""
        shaped = {q: factors[q] * vector[:, None] for q, vector in vectors.items()}
        total = np.zeros(len(factors[own]))
        for first, *others in self._partitions((own, *vectors)):
            weight = float(math.prod(map(sign, (first, *others)))) * np.ones(factors[own].shape[1])
            for block in others:
                weight = weight * functools.reduce(np.multiply, (shaped[q] for q in block)).sum(0)
            beside = [shaped[q] for q in first[1:]]
            total += functools.reduce(np.multiply, beside, factors[own]) @ weight
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

    def _partitions(self, items: Block) -> Iterator[tuple[Block, ...]]:
        if self.repeats_observed:
            yield tuple((item,) for item in items)
        else:
            yield from partitions(items)


class _Grams:
    """Gram matrices of entrywise products of factors, each computed once; factors may coincide."""

    def __init__(self, factors: Sequence[np.ndarray], ops: HostOps) -> None:
        self.factors, self.ops = factors, ops
        self.known: dict[tuple[int, ...], np.ndarray] = {}
        self.r = factors[0].shape[1]

    def key(self, block: Block) -> tuple[int, ...]:
        return tuple(sorted(id(self.factors[p]) for p in block))

    def hadamard(self, block: Block) -> np.ndarray:
        return functools.reduce(np.multiply, (self.factors[p] for p in block))

    def product(self, blocks: Sequence[Block]) -> np.ndarray:
        """Return the entrywise product of the Gram matrices of these blocks."""
        total = np.ones((self.r, self.r))
        for block in blocks:
            key = self.key(block)
            if key not in self.known:
                self.known[key] = self.ops.gram(self.hadamard(block))
            total = total * self.known[key]
        return total


def _multiply(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the coefficients of a product of two polynomials in t, entry by entry."""
    out = np.zeros((len(first) + len(second) - 1, *first.shape[1:]))
    for k, coefficient in enumerate(first):
        out[k : k + len(second)] += coefficient * second
    return out

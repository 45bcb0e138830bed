r"""The likelihood of hyperedges of all sizes.

A hyperedge e of s nodes has the weight w_e, drawn at the rate c_s sum_{i<j in e} <u_i, u_j> with a
constant c_s of its size. Whatever U is, the best constants change the length of U and nothing
else. So they are left out, and f is

.. math:: f(U) = \tfrac12 \|U^\top 1\|^2 - \sum_e w_e \log \lambda_e - \sum_{ik} \alpha_{ik}
    \log u_{ik}, \qquad \lambda_e = \sum_{i<j \in e} \langle u_i, u_j\rangle.

The rate is that of Hy-MMSBM (Ruggeri, Contisciani, Battiston and De Bacco, 2023) with a diagonal
affinity, which is part of U here. The last sum is a prior: row i counts as if a small part of its
hyperedges were spread evenly over the columns. Without it rates between groups become zeros, and
hyperedges that were held out are predicted worse.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from symnmf.kernels.hyperedges import hyperedge_pull, hyperedge_rates
from symnmf.kernels.products import balanced_chunks
from symnmf.objectives.likelihood import Likelihood
from symnmf.objectives.losses import PRIOR
from symnmf.ops import Factor
from symnmf.state import Point, Sums
from symnmf.storage.sparse import SparseMatrix


class HyperedgeLikelihood(Likelihood):
    """Minus the logarithm of the likelihood of hyperedges, with a prior, up to a constant.

    Parameters
    ----------
    storage : SparseMatrix
        The clique graph, for starts and units.
    members, indptr : ndarray of int
        The nodes of hyperedge e are ``members[indptr[e]:indptr[e + 1]]``, two or more.
    weights : ndarray of shape (hyperedges,)
        How often each came; positive.
    prior : float
        The part of each row's hyperedges that counts as spread evenly over the columns.
    """

    default_solver: ClassVar[str] = "em"

    #: hyperedges are no pairs of rows
    swept: Any = None

    def __init__(
        self,
        storage: SparseMatrix,
        members: np.ndarray,
        indptr: np.ndarray,
        weights: np.ndarray,
        *,
        prior: float = PRIOR,
    ) -> None:
        super().__init__(storage)
        self.members, self.indptr, self.weights, self.prior = members, indptr, weights, prior

    @cached_property
    def _of_nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The hyperedges of each node: where they begin, and which they are."""
        count = len(self.indptr) - 1
        ones = np.ones(len(self.members), np.int8)
        incidence = sp.csr_array((ones, self.members, self.indptr), shape=(count, self.shape[0]))
        turned = incidence.T.tocsr()
        return turned.indptr, turned.indices

    @cached_property
    def degrees(self) -> np.ndarray:
        """The weight of all hyperedges of each node."""
        per_member = np.repeat(self.weights, np.diff(self.indptr))
        return np.bincount(self.members, per_member, minlength=self.shape[0])

    def describe(self) -> str:
        text = "1/2 ||U^T 1||^2 - sum_e w_e log sum_{i<j in e} <u_i, u_j>"
        return text if not self.prior else f"{text} - sum_ik {self.prior:g} d_i/r log u_ik"

    def digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"hyperedges {self.shape} {self.dtype} {self.prior!r}".encode())
        for array in (self.members, self.indptr, self.weights):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    # --- f at a point

    def _chunks(self, indptr: np.ndarray, rank: int) -> list[tuple[int, int]]:
        parts = self.storage.threads.parts(4.0 * len(self.members) * rank)
        return balanced_chunks(indptr, parts)

    def rates(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rate of each hyperedge, and the sum of its rows of U."""
        count, rank = len(self.indptr) - 1, U.shape[1]
        sums, rates = np.empty((count, rank)), np.empty(count)
        self.storage.threads.run(
            lambda begin, end: hyperedge_rates(
                self.indptr, self.members, U, sums, rates, begin, end
            ),
            self._chunks(self.indptr, rank),
        )
        return rates, sums

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        """Return the pull on U, prior included, which equals ``expected`` at a critical U."""
        values = np.ascontiguousarray(U.values)
        rates, sums = self.rates(values)
        pull = np.empty_like(values)
        indptr, hyperedges = self._of_nodes
        self.storage.threads.run(
            lambda begin, end: hyperedge_pull(
                indptr, hyperedges, self.weights, rates, sums, values, pull, begin, end
            ),
            self._chunks(indptr, values.shape[1]),
        )
        if self.prior:
            pull += self._counts(values.shape[1]) / np.maximum(values, np.finfo(self.dtype).tiny)
        fit = 2.0 * float(self.weights @ np.log(rates))
        size = float(np.vdot(values, self.expected(values)))
        return pull, (size - fit, fit, size)

    def _counts(self, rank: int) -> np.ndarray:
        """What the prior counts for each entry of a row."""
        return (self.prior / rank) * self.degrees[:, None]

    def added(self, U: Point) -> float:
        if not self.prior:
            return 0.0
        values = np.asarray(U.values, np.float64)
        logs = np.log(np.maximum(values, np.finfo(self.dtype).tiny))
        return -float(np.sum(self._counts(values.shape[1])[:, 0] * logs.sum(axis=1)))

    def _least(self) -> tuple[float, float]:
        """Return twice f where pairs have the rate of their hyperedge, and the sum of counts."""
        w, sizes = self.weights, np.diff(self.indptr)
        rates = w * sizes * (sizes - 1) / 2
        return 2.0 * float(np.sum(w - w * np.log(rates))), 2.0 * float(w.sum())

    def _of_degrees(self) -> np.ndarray:
        one = self.degrees[:, None] * np.sqrt(2.0 * self.weights.sum()) / self.degrees.sum()
        return one.astype(self.dtype)

    def best_multiple(self, U: Point) -> float:
        size = float(np.vdot(U.values, self.expected(np.asarray(U.values))))
        counted = 2.0 * float(self.weights.sum()) + self.prior * float(self.degrees.sum())
        return float(np.sqrt(counted / size)) if size > 0 else 1.0

    def explained(self, U: np.ndarray) -> np.ndarray:
        """Return the part of U that hyperedges explain, not the prior, in units of the graph.

        The sum of all <u_i, u_j> is then that of the clique graph.
        """
        counts = np.asarray(U) * self.product_and_sums(Point(self.ops, np.asarray(U)))[0]
        prior = self._counts(U.shape[1])
        part = U * np.maximum(counts - prior, 0.0) / np.where(counts > 0, counts, 1.0)
        total = float(np.sum(part.sum(axis=0) ** 2))
        whole = float(np.sum(self.storage.data, dtype=np.float64))
        return np.asarray(part * np.sqrt(whole / total) if total > 0 else part)

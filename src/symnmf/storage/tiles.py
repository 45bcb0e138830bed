"""X cut into tiles of its upper triangle, on disk or on a cluster.

X_IJ stands for itself and for X_JI = X_IJ^T: a product adds X_IJ V_J to rows I and X_IJ^T V_I to
rows J, so half of X is read. Tiles and their products are summed in a fixed order, piece by piece
of a fixed size: results do not depend on the number of threads or workers.
"""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from symnmf.calls import read_once
from symnmf.kernels import block_products as kernels
from symnmf.kernels.products import WIDEST
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import check_asymmetry, check_range, check_values
from symnmf.storage.dense import SKETCHED_SHARE
from symnmf.storage.sparse import RESIDUAL_UP_TO
from symnmf.storage.symmetric import Square, SymmetricMatrix

#: Pieces that the columns of a tile are multiplied in, and its rows looked at, on any threads.
PIECES = 16
#: Numbers compared or subtracted at a time (2 MB).
AT_ONCE = 262_144

#: A C-ordered array, or a CSR array in canonical format.
Block = Any
Self = TypeVar("Self", bound="TiledMatrix")


class Tile(NamedTuple):
    """Rows ``top..bottom`` and columns ``left..right`` of X, none of them left of the diagonal.

    A tile that holds a part of the diagonal begins there, with ``left == top``; what its square
    on the diagonal has below it is a mirror image within the tile.
    """

    top: int
    bottom: int
    left: int
    right: int

    @property
    def on_diagonal(self) -> bool:
        return self.left == self.top

    @property
    def mirrored(self) -> int:
        """The first column whose mirror image is not in the tile itself."""
        return self.bottom if self.on_diagonal else self.left

    @property
    def shape(self) -> tuple[int, int]:
        return self.bottom - self.top, self.right - self.left

    def __str__(self) -> str:
        return f"rows {self.top} to {self.bottom - 1}, columns {self.left} to {self.right - 1}"


@dataclass(frozen=True)
class Facts:
    """What one reading of X tells: all that is asked of it besides products.

    Attributes
    ----------
    largest, sqnorm : float
        The largest entry and ||X||_F^2.
    content : int
        A fingerprint of the nonzero entries, however X is cut.
    asymmetry : float
        The largest difference between an entry and its mirror image.
    where : str
        The part of X in which that is.
    """

    largest: float = 0.0
    sqnorm: float = 0.0
    content: int = 0
    asymmetry: float = 0.0
    where: str = ""

    def __add__(self, other: Facts) -> Facts:
        worse = other if other.asymmetry > self.asymmetry else self
        return Facts(
            max(self.largest, other.largest),
            self.sqnorm + other.sqnorm,
            (self.content + other.content) % 2**64,
            worse.asymmetry,
            worse.where,
        )

    @staticmethod
    def total(parts: Iterable[Facts], dtype: np.dtype, name: str) -> Facts:
        """Add up the facts of all tiles, in order; refuse an X that is not symmetric."""
        facts = sum(parts, start=Facts())
        check_range(facts.largest, dtype, name)
        check_asymmetry(facts.asymmetry, facts.largest, dtype, name, facts.where)
        return facts


def tile_facts(
    block: Block,
    tile: Tile,
    where: str,
    threads: Threads,
    *,
    mirror: Block | None = None,
    name: str = "X",
) -> Facts:
    """Look at one tile, and at its mirror image where that is given; refuse bad entries."""
    data = block.data if sp.issparse(block) else block
    bits = data.view(np.uint64 if data.dtype == np.float64 else np.uint32)
    parts = (block.indptr, block.indices, data, bits) if sp.issparse(block) else (data, bits)
    look = kernels.csr_facts if sp.issparse(block) else kernels.dense_facts

    def task(begin: int, end: int) -> list[tuple[bool, float, float, int]]:
        rows = [len_at(tile.shape[0], piece) for piece in range(begin, end + 1)]
        return [look(*parts, tile.top, tile.left, first, last) for first, last in pairwise(rows)]

    bounds = threads.split(PIECES, 8.0 * data.size / PIECES)
    found = [part for group in threads.run(task, bounds) for part in group]
    if not all(valid for valid, *_ in found):
        with np.errstate(invalid="ignore"):
            check_values(float(data.min()), float(data.max()), name, f" in {where}")
    asymmetry = 0.0
    if mirror is not None:
        asymmetry = _difference(block, mirror)
    elif tile.on_diagonal:
        size = tile.bottom - tile.top
        square = block[:, :size]
        asymmetry = _difference(square, square)
    return Facts(
        max(largest for _, largest, *_ in found),
        sum(squares for *_, squares, _ in found),
        sum(int(content) for *_, content in found) % 2**64,
        asymmetry,
        f" in {where}",
    )


def len_at(size: int, piece: int) -> int:
    """Return where piece ``piece`` of a range of ``size`` begins."""
    return size * piece // PIECES


def _difference(block: Block, mirror: Block) -> float:
    """Return the largest |block - mirror^T|; NaN in the mirror counts as different."""
    if sp.issparse(block):
        apart = abs(block - mirror.T.tocsr())
        return float(np.nan_to_num(apart.data, nan=np.inf).max(initial=0.0))
    rows = max(1, AT_ONCE // max(1, block.shape[1]))
    worst = 0.0
    with np.errstate(invalid="ignore"):
        for first in range(0, len(block), rows):
            apart = np.abs(block[first : first + rows] - mirror[:, first : first + rows].T)
            worst = max(worst, float(np.nan_to_num(apart.max(initial=0.0), nan=np.inf)))
    return worst


def add_products(
    block: Block,
    tile: Tile,
    V: tuple[np.ndarray, np.ndarray],
    out: tuple[np.ndarray, np.ndarray],
    threads: Threads,
) -> None:
    """Add a tile's share of X V: to the rows of the tile, and to those of its mirror image.

    Parameters
    ----------
    block, tile
        The entries and their positions.
    V : two arrays
        The rows of V that belong to the tile's rows, and those that belong to its columns.
    out : two arrays
        Where ``block @ V[1]`` is added, and where the product of its transpose with ``V[0]``,
        from the first mirrored column on.
    """
    skipped = tile.mirrored - tile.left
    cost = 2.0 * V[0].shape[1]
    if sp.issparse(block):
        parts = (block.indptr, block.indices, block.data)
        threads.run(
            lambda begin, end: kernels.csr_add(*parts, V[1], out[0], begin, end),
            threads.split(tile.shape[0], cost * block.nnz / tile.shape[0]),
        )
        if skipped < tile.shape[1]:
            threads.run(
                lambda begin, end: kernels.csr_add_mirror(*parts, V[0], out[1], begin, end),
                threads.split(tile.shape[1], cost * block.nnz / tile.shape[1]),
            )
        return
    high, wide = _patch(V[0].shape[1])

    def work(begin: int, end: int) -> list[np.ndarray]:
        """Add what pieces have for their columns; return what each has for the tile's rows."""
        sums = []
        for piece in range(begin, end):
            own = np.zeros_like(out[0])
            last = len_at(tile.shape[1], piece + 1)
            for left in range(len_at(tile.shape[1], piece), last, wide):
                right, first = min(left + wide, last), max(left, skipped)
                for top in range(0, tile.shape[0], high):
                    rows = slice(top, top + high)
                    own[rows] += block[rows, left:right] @ V[1][left:right]
                    if first < right:
                        mirrored = block[rows, first:right].T @ V[0][rows]
                        out[1][first - skipped : right - skipped] += mirrored
            sums.append(own)
        return sums

    for sums in threads.run(work, threads.split(PIECES, 2.0 * cost * block.size / PIECES)):
        for own in sums:
            np.add(out[0], own, out=out[0])


def _patch(rank: int) -> tuple[int, int]:
    """Return how many rows and columns of a dense tile are multiplied at a time.

    Both products of a patch are computed while it is in the cache. OpenBLAS multiplies without
    copying first where rows x columns x rank are fewer than a million, which takes a third to
    half of the time; beyond rank 100 patches would become too narrow for that.
    """
    return (128, max(1, 900_000 // (128 * rank))) if rank <= 100 else (512, 512)


def residual_share(
    block: Block,
    tile: Tile,
    above: tuple[np.ndarray, np.ndarray],
    beside: tuple[np.ndarray, np.ndarray],
) -> float:
    """Return what a tile and its mirror image add to ||X - U V^T||_F^2.

    ``above`` are the rows of U and V that belong to the tile's rows, ``beside`` those that belong
    to its columns.
    """
    step = max(1, AT_ONCE // tile.shape[1])
    own = tile.mirrored - tile.left
    (U, V), (U_right, V_right) = (
        tuple(rows.astype(np.float64, copy=False) for rows in pair) for pair in (above, beside)
    )
    total = 0.0
    for first in range(0, tile.shape[0], step):
        part = block[first : first + step]
        exact = (part.toarray() if sp.issparse(part) else part).astype(np.float64)
        apart = exact - U[first : first + step] @ V_right.T
        total += float(np.vdot(apart, apart))
        if above[0] is not above[1]:
            apart = exact - V[first : first + step] @ U_right.T
        total += float(np.sum(apart[:, own:] ** 2))
    return total


def split_tile(tile: Tile, block: np.ndarray) -> Iterator[tuple[Square, np.ndarray]]:
    """Yield a tile as the square it has on the diagonal and what lies right of that."""
    inside = tile.mirrored - tile.left
    if inside:
        yield Square(tile.top, tile.bottom, tile.left, tile.mirrored), block[:, :inside]
    if tile.mirrored < tile.right:
        yield Square(tile.top, tile.bottom, tile.mirrored, tile.right), block[:, inside:]


class TiledMatrix(SymmetricMatrix):
    """X in tiles, factors with the caller.

    Subclasses compute products and residuals; ``facts`` come from their one reading of X.
    """

    ops: HostOps

    def __init__(self, n: int, dtype: np.dtype, threads: Threads, facts: Facts) -> None:
        super().__init__(n, dtype, HostOps(threads))
        self.facts = facts

    @property
    def threads(self) -> Threads:
        return self.ops.threads

    @property
    def is_sparse(self) -> bool:
        """Whether tiles are stored as sparse matrices."""
        return False

    @abstractmethod
    def multiply(self, V: np.ndarray, out: np.ndarray) -> None:
        """Write the product of the stored entries with V to ``out``."""

    @abstractmethod
    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterable[float]:
        """Return ``residual_share`` of every tile, in order."""

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        result = np.empty(V.shape, self.dtype) if out is None else out
        self.multiply(V, result)
        return result

    def compute_sqnorm(self) -> float:
        return self.facts.sqnorm

    def largest(self) -> float:
        return self.facts.largest

    def digest(self) -> str:
        text = f"tiles {self.shape} {self.dtype} {self.facts.content}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        if self.is_sparse and self.shape[0] > RESIDUAL_UP_TO:
            return None
        read_once()
        return sum(self.residual_shares(U, V), start=0.0)

    def sketch_pays(self, rank: int) -> bool:
        return not self.is_sparse and rank * SKETCHED_SHARE <= self.shape[0]

    def low_rank(self, B: np.ndarray, C: np.ndarray) -> SymmetricMatrix:
        from symnmf.storage.lowrank import LowRank

        return LowRank(B, C).with_threads(self.threads)

    def with_threads(self: Self, threads: Threads) -> Self:
        other = copy.copy(self)
        other.ops = HostOps(threads)
        return other

    def threads_for(self, rank: int) -> int:
        return self.threads.count

    def starts_per_reading(self, rank: int) -> int:
        return max(1, WIDEST // rank)  # reading X is what costs

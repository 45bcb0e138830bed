"""X cut into tiles of its upper triangle, on disk or on a cluster.

X_IJ stands for itself and for X_JI = X_IJ^T: a product adds X_IJ V_J to rows I and X_IJ^T V_I to
rows J, so half of X is read. Tiles are summed in a fixed order, so results do not depend on the
number of threads or workers.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.calls import read_once
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import check_asymmetry, check_range, check_values
from symnmf.storage.sparse import COST_OF_AN_ENTRY, RESIDUAL_UP_TO
from symnmf.storage.symmetric import Square, SymmetricMatrix

#: Rows and columns of a patch of a tile: both of its products are made while it is in the cache.
PATCH_ROWS, PATCH_COLUMNS = 128, 512
#: Numbers looked at, compared or subtracted at a time (512 kB).
AT_ONCE = 65_536

#: Bytes a second that a disk gives.
READ_BYTES = 1e9

#: A C-ordered array, or a CSR array in canonical format.
Block = Any
#: Rows of a factor that belong to the rows of a tile, and those that belong to its columns.
Sides = tuple[np.ndarray, np.ndarray]


def place(square: Square) -> str:
    """Name a tile for an error message."""
    rows = f"rows {square.top} to {square.bottom - 1}"
    return f"{rows}, columns {square.left} to {square.right - 1}"


@dataclass(frozen=True)
class Facts:
    """What one reading of X tells: all that is asked of it besides products.

    Attributes
    ----------
    largest, sqnorm : float
        The largest entry and ||X||_F^2.
    stored : int
        The number of stored entries, in both triangles.
    content : int
        A fingerprint of the nonzero entries, however X is cut.
    asymmetry : float
        The largest difference between an entry and its mirror image.
    where : str
        The part of X in which that is.
    """

    largest: float = 0.0
    sqnorm: float = 0.0
    stored: int = 0
    content: int = 0
    asymmetry: float = 0.0
    where: str = ""

    def __add__(self, other: Facts) -> Facts:
        worse = other if other.asymmetry > self.asymmetry else self
        return Facts(
            max(self.largest, other.largest),
            self.sqnorm + other.sqnorm,
            self.stored + other.stored,
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
    block: Block, square: Square, mirror: Block | None = None, name: str = "X", where: str = ""
) -> Facts:
    """Look at one tile, and at its mirror image where that is given; refuse bad entries."""
    where = f" in {where or place(square)}"
    data = block.data if sp.issparse(block) else block
    with np.errstate(invalid="ignore"):
        smallest, largest = (float(f(data, initial=0.0)) for f in (np.min, np.max))
    check_values(smallest, largest, name, where)
    if square.on_diagonal:
        mirror = block
    asymmetry = 0.0 if mirror is None else _difference(block, mirror)
    sqnorm, content, halves = 0.0, 0, 1 if square.on_diagonal else 2
    for first, rows in _strips(block):
        values = rows.data if sp.issparse(rows) else rows
        wide = values.ravel().astype(np.float64, copy=False)
        sqnorm += halves * float(wide @ wide)
        content += _content(rows, square.top + first, square.left)
    return Facts(largest, sqnorm, halves * data.size, content % 2**64, asymmetry, where)


def _strips(block: Block) -> Iterable[tuple[int, Block]]:
    """Yield a few rows at a time, with the number of the first."""
    rows, columns = block.shape
    step = max(1, AT_ONCE // max(1, columns))
    for first in range(0, rows, step):
        yield first, block[first : first + step]


def _content(rows: Block, top: int, left: int) -> int:
    """Return a sum over the entries on and above the diagonal, modulo 2^64, of bits and place."""
    upper = sp.triu(rows, top - left, "coo") if sp.issparse(rows) else np.triu(rows, top - left)
    values = upper.data if sp.issparse(rows) else upper
    bits = values.view(np.uint64 if values.dtype == np.float64 else np.uint32).astype(np.uint64)
    bits ^= bits >> np.uint64(29)
    if sp.issparse(rows):
        terms = _spread(upper.row + top) * (bits * _spread(-1 - upper.col - left))
    else:
        columns = _spread(-1 - np.arange(left, left + rows.shape[1]))
        terms = _spread(np.arange(top, top + len(rows))) * (bits @ columns)
    return int(terms.sum(dtype=np.uint64))


def _spread(numbers: np.ndarray) -> np.ndarray:
    """Return an odd number of 64 bits for each whole number (the steps of splitmix64)."""
    mixed = numbers.astype(np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray((mixed ^ (mixed >> np.uint64(27))) | np.uint64(1))


def _difference(block: Block, mirror: Block) -> float:
    """Return the largest |block - mirror^T|; NaN in the mirror counts as different."""
    if sp.issparse(block):
        apart = abs(block - mirror.T.tocsr())
        return float(np.nan_to_num(apart.data, nan=np.inf).max(initial=0.0))
    worst = 0.0
    with np.errstate(invalid="ignore"):
        for first, rows in _strips(block):
            apart = np.abs(rows - mirror[:, first : first + len(rows)].T)
            worst = max(worst, float(np.nan_to_num(apart.max(initial=0.0), nan=np.inf)))
    return worst


def add_products(block: Block, square: Square, V: Sides, out: Sides, threads: Threads) -> None:
    """Add a tile's share of X V to the rows of the tile, and to those of its mirror image."""
    if sp.issparse(block):
        out[0][...] += block @ V[1]
        if not square.on_diagonal:
            out[1][...] += block.T @ V[0]
        return
    height, width = block.shape

    def work(begin: int, end: int) -> list[np.ndarray]:
        """Add what pieces have for their columns; return what each has for the tile's rows."""
        sums = []
        for piece in range(begin, end):
            columns = slice(piece * PATCH_COLUMNS, min((piece + 1) * PATCH_COLUMNS, width))
            own = np.empty_like(out[0])
            for top in range(0, height, PATCH_ROWS):
                rows = slice(top, top + PATCH_ROWS)
                patch = block[rows, columns]
                np.matmul(patch, V[1][columns], out=own[rows])
                if not square.on_diagonal:
                    out[1][columns] += patch.T @ V[0][rows]
            sums.append(own)
        return sums

    pieces = -(-width // PATCH_COLUMNS)
    cost = 4.0 * height * PATCH_COLUMNS * V[0].shape[1]
    for sums in threads.run(work, threads.split(pieces, cost)):
        for own in sums:
            np.add(out[0], own, out=out[0])


def residual_share(block: Block, square: Square, U: Sides, V: Sides) -> float:
    """Return what a tile and its mirror image add to ||X - U V^T||_F^2."""
    same = U[0] is V[0]
    wide = [[rows.astype(np.float64, copy=False) for rows in sides] for sides in (U, V)]
    (U_rows, U_columns), (V_rows, V_columns) = wide
    total = 0.0
    for first, part in _strips(block):
        rows = slice(first, first + part.shape[0])
        exact = (part.toarray() if sp.issparse(part) else part).astype(np.float64)
        apart = exact - U_rows[rows] @ V_columns.T
        share = float(np.vdot(apart, apart))
        if not square.on_diagonal:
            apart = apart if same else exact - V_rows[rows] @ U_columns.T
            share += float(np.vdot(apart, apart))
        total += share
    return total


class TiledMatrix(SymmetricMatrix):
    """X in tiles, factors with the caller.

    Subclasses compute products and residuals; ``facts`` come from their one reading of X.
    """

    ops: HostOps
    is_sparse = False

    def __init__(self, n: int, dtype: np.dtype, threads: Threads) -> None:
        super().__init__(n, dtype, HostOps(threads))
        self.facts = Facts()

    @property
    def threads(self) -> Threads:
        return self.ops.threads

    @abstractmethod
    def multiply(self, V: np.ndarray) -> np.ndarray:
        """Return X @ V for a contiguous V of the type of X."""

    @abstractmethod
    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterable[float]:
        """Return ``residual_share`` of every tile, in order."""

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        return self.multiply(np.ascontiguousarray(V, self.dtype))

    def compute_sqnorm(self) -> float:
        return self.facts.sqnorm

    def compute_largest(self) -> float:
        return self.facts.largest

    def digest(self) -> str:
        text = f"tiles {self.shape} {self.dtype} {self.facts.content}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        if self.is_sparse and self.shape[0] > RESIDUAL_UP_TO:
            return None
        read_once()
        return sum(self.residual_shares(U, V), start=0.0)

    def cost(self, rank: int) -> float:
        if self.is_sparse:
            return COST_OF_AN_ENTRY * 2.0 * self.facts.stored * rank / self.ops.rate
        reading = 0.5 * self.facts.stored * self.dtype.itemsize / READ_BYTES
        return max(super().cost(rank), reading)

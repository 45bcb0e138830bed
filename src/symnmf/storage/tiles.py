"""X cut into tiles of its upper triangle, on disk or on a cluster.

X_IJ stands for itself and for X_JI = X_IJ^T: a product adds X_IJ V_J to rows I and X_IJ^T V_I to
rows J, so half of X is read. Tiles are summed in a fixed order, so results do not depend on the
number of threads or workers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf.calls import read_once
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import check_asymmetry, check_range, check_values
from symnmf.storage.sparse import COST_OF_AN_ENTRY, RESIDUAL_UP_TO
from symnmf.storage.symmetric import Square, SymmetricMatrix

#: Rows of a tile: both of their products are made while they are in the cache.
STRIP_ROWS = 128
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


class Facts(NamedTuple):
    """What one reading of X tells; ``asymmetry`` is the largest |X - X^T|, found ``where``."""

    largest: float = 0.0
    sqnorm: float = 0.0
    stored: int = 0
    asymmetry: float = 0.0
    where: str = ""


def total_facts(tiles: Iterable[Facts], dtype: np.dtype, name: str) -> Facts:
    """Add up the facts of all tiles, in order; refuse an X that is not symmetric."""
    largest, sqnorms, stored, asymmetry, where = zip(*tiles, strict=True)
    worst = int(np.argmax(asymmetry))
    facts = Facts(max(largest), sum(sqnorms), sum(stored), asymmetry[worst], where[worst])
    check_range(facts.largest, dtype, name)
    check_asymmetry(facts.asymmetry, facts.largest, dtype, name, facts.where)
    return facts


def tile_facts(block: Block, square: Square, mirror: Block | None, name: str, where: str) -> Facts:
    """Look at one tile, and at its mirror image where that is given; refuse bad entries."""
    data = block.data if sp.issparse(block) else block
    with np.errstate(invalid="ignore"):
        smallest, largest = (float(f(data, initial=0.0)) for f in (np.min, np.max))
    check_values(smallest, largest, name, f" in {where}")
    mirror = block if square.on_diagonal else mirror
    asymmetry = 0.0 if mirror is None else _difference(block, mirror)
    sqnorm, halves = 0.0, 1 if square.on_diagonal else 2
    for _, rows in _strips(block):
        values = (rows.data if sp.issparse(rows) else rows.ravel()).astype(np.float64, copy=False)
        sqnorm += halves * float(values @ values)
    return Facts(largest, sqnorm, halves * data.size, asymmetry, f" in {where}")


def _strips(block: Block) -> Iterator[tuple[int, Block]]:
    """Yield a few rows at a time, with the number of the first."""
    rows, columns = block.shape
    step = max(1, HostOps.block // max(1, columns))
    for first in range(0, rows, step):
        yield first, block[first : first + step]


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

    def work(begin: int, end: int) -> list[np.ndarray]:
        """Add what strips have for their own rows; return what each has for its mirror image."""
        shares = []
        for first in range(begin * STRIP_ROWS, end * STRIP_ROWS, STRIP_ROWS):
            rows = slice(first, first + STRIP_ROWS)
            out[0][rows] += block[rows] @ V[1]
            if not square.on_diagonal:
                shares.append(block[rows].T @ V[0][rows])
        return shares

    strips = -(-len(block) // STRIP_ROWS)
    cost = 4.0 * STRIP_ROWS * block.shape[1] * V[0].shape[1]
    for shares in threads.run(work, threads.split(strips, cost)):
        for share in shares:
            np.add(out[1], share, out=out[1])


def residual_share(
    block: np.ndarray, _: Any, rows: list[np.ndarray], columns: list[np.ndarray], diagonal: bool
) -> float:
    """Return what a tile and its mirror image add to ||X - U V^T||_F^2; U alone is V too."""
    (U, *V), (other_U, *other_V) = (
        [factor.astype(np.float64, copy=False) for factor in side] for side in (rows, columns)
    )
    total = 0.0
    for first, part in _strips(block):
        own = slice(first, first + len(part))
        exact = part.astype(np.float64)
        apart = exact - U[own] @ (other_V or [other_U])[0].T
        share = float(np.vdot(apart, apart))
        if not diagonal:
            apart = exact - V[0][own] @ other_U.T if V else apart
            share += float(np.vdot(apart, apart))
        total += share
    return total


class TiledMatrix(SymmetricMatrix):
    """X in tiles, factors with the caller.

    Subclasses compute products and residuals; ``facts`` come from their one reading of X.
    """

    ops: HostOps
    facts: Facts
    is_sparse = False

    def __init__(self, n: int, dtype: np.dtype, threads: Threads) -> None:
        super().__init__(n, dtype, HostOps(threads))

    @abstractmethod
    def multiply(self, V: np.ndarray) -> np.ndarray:
        """Return X @ V for a contiguous V of the type of X."""

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        return self.multiply(np.ascontiguousarray(V, self.dtype))

    def compute_sqnorm(self) -> float:
        return self.facts.sqnorm

    def compute_largest(self) -> float:
        return self.facts.largest

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        if self.is_sparse and self.shape[0] > RESIDUAL_UP_TO:
            return None
        read_once()
        visits = self.visit(residual_share, [U] if U is V else [U, V], lambda _: None)
        return sum((share for _, share in visits), start=0.0)

    def cost(self, rank: int) -> float:
        if self.is_sparse:
            return COST_OF_AN_ENTRY * 2.0 * self.facts.stored * rank / self.ops.rate
        reading = 0.5 * self.facts.stored * self.dtype.itemsize / READ_BYTES
        return max(super().cost(rank), reading)

"""X on disk, read tile by tile while the tile before it is multiplied."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from symnmf.arguments import checked
from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.kernels.coordinate import sweep_block
from symnmf.parallel import Threads
from symnmf.pools import Pool
from symnmf.storage.dense import SWEPT_ROWS
from symnmf.storage.opening import open_store
from symnmf.storage.stamps import changed, stamps
from symnmf.storage.stores import Store, squares
from symnmf.storage.symmetric import Square
from symnmf.storage.tiles import (
    Facts,
    Tile,
    TiledMatrix,
    add_products,
    residual_share,
    split_tile,
    tile_facts,
)

#: Memory for X unless another is asked for: large enough that a disk reads at its full rate.
MEMORY = 192 * 2**20
#: Blocks in memory at a time: one in use, one being read, one for what is made of them.
AT_A_TIME = 3

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{unit}I": 2 ** (10 * power) for power, unit in enumerate("KMGT", start=1)}

T = TypeVar("T")


def as_bytes(memory: int | float | str, name: str = "memory") -> int:
    """Return a number of bytes for one, or for text such as "4GB" or "512 MiB"."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", memory.upper())
        size = float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else 0.0
    else:
        size = 0.0 if isinstance(memory, bool) else float(memory)
    if not 1.0 <= size < 2.0**63:
        raise InputError(
            f"{name} must be a number of bytes, or text such as '4GB' or '512MB', got {memory!r}."
        )
    return int(size)


class Blocks(TiledMatrix):
    """A matrix on disk that is never in memory as a whole.

    The first pass checks the matrix and computes its norm and fingerprint. After that every product
    reads the upper triangle once, each block while the previous one is multiplied.

    Parameters
    ----------
    source : path, np.memmap, zarr.Array or h5py.Dataset
        A .npy file, a .zarr folder, a .h5 file with one two-dimensional array, or a folder of
        blocks that ``symnmf convert`` wrote.
    memory : int or str
        Bytes for X, such as "4GB": three blocks at a time fit into it. Factors are not counted.
    assume_symmetric : bool
        Assume that X is symmetric and read only its upper triangle.
    n_jobs : int or None
        Threads; None for all cores.

    Examples
    --------
    >>> X = symnmf.storage.Blocks("X.npy", memory="1GB")  # doctest: +SKIP
    >>> symnmf.factorize(X, 10, random_state=0)  # doctest: +SKIP
    """

    @checked()
    def __init__(
        self,
        source: Any,
        *,
        memory: int | str = MEMORY,
        assume_symmetric: bool = False,
        n_jobs: int | None = None,
        name: str = "X",
    ) -> None:
        size = as_bytes(memory) // AT_A_TIME
        self.store: Store = open_store(source)
        self._stamps = stamps(source)
        self.name = name
        threads = Threads(n_jobs)
        self.tiles = self.store.tiles(size)
        self._pairs: Sequence[Tile] | None = None
        if self.store.slices and not assume_symmetric:
            most = size // 2 // self.store.dtype.itemsize
            self._pairs = squares(self.store.n, most, self.store.grain)
        super().__init__(self.store.n, self.store.dtype, threads, Facts())
        self.facts = self._look()

    @property
    def is_sparse(self) -> bool:
        return self.store.is_sparse

    def _look(self) -> Facts:
        read_once()

        def facts(tile: Tile, block: Any, mirror: Any = None) -> Facts:
            return tile_facts(
                block,
                tile,
                self.store.where(tile),
                self.threads,
                mirror=mirror,
                name=self.name,
            )

        if self._pairs is None:
            parts = [facts(tile, block) for tile, block in self._stream()]
        else:
            parts = [facts(tile, *both) for tile, both in self._stream_pairs(self._pairs)]
        return Facts.total(parts, self.dtype, self.name)

    def multiply(self, V: np.ndarray, out: np.ndarray) -> None:
        out[...] = 0
        for tile, block in self._stream():
            add_products(
                block,
                tile,
                (V[tile.top : tile.bottom], V[tile.left : tile.right]),
                (out[tile.top : tile.bottom], out[tile.mirrored : tile.right]),
                self.threads,
            )

    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterator[float]:
        for tile, block in self._stream():
            above, beside = (
                (U[first:last],) * 2 if U is V else (U[first:last], V[first:last])
                for first, last in (tile[:2], tile[2:])
            )
            yield residual_share(block, tile, above, beside)

    @property
    def entries(self) -> Blocks | None:
        return self if self.store.slices else None

    def coordinate_sweep(self, U: np.ndarray, gram: np.ndarray) -> np.ndarray:
        read_once()
        n = self.shape[0]
        product = np.empty_like(U)
        rows = max(1, self._numbers() // n // SWEPT_ROWS) * SWEPT_ROWS
        panels = [Tile(top, min(top + rows, n), 0, n) for top in range(0, n, rows)]
        for tile, panel in self._stream(panels):
            for first in range(tile.top, tile.bottom, SWEPT_ROWS):
                last = min(first + SWEPT_ROWS, tile.bottom)
                part = panel[first - tile.top : last - tile.top]
                np.matmul(part, U, out=product[first:last])
                square = np.ascontiguousarray(part[:, first:last])
                sweep_block(square, first, first, last, product, U, gram)
        return U

    def residual(self, U: np.ndarray) -> np.ndarray:
        """Return X - U U^T as an n x n array; only for an X that would fit into memory."""
        n = self.shape[0]
        result = np.empty((n, n))
        for tile, block in self._stream(squares(n, self._numbers())):
            rows, columns = slice(tile.top, tile.bottom), slice(tile.left, tile.right)
            part = block.astype(np.float64)
            result[rows, columns] = part - U[rows].astype(np.float64) @ U[columns].T
            result[columns, rows] = result[rows, columns].T
        return result

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        for tile, stored in self._stream():
            block = stored.toarray() if self.is_sparse else stored
            yield from split_tile(tile, block)

    def squares(self, side: int) -> Iterator[tuple[Tile, np.ndarray]]:
        """Yield squares of the upper triangle, of a source that can be sliced."""
        return self._stream(squares(self.shape[0], side * side))

    def _numbers(self) -> int:
        """Numbers in the largest tile."""
        return max((tile.shape[0] * tile.shape[1] for tile in self.tiles), default=1)

    def _stream(self, tiles: Sequence[Tile] | None = None) -> Iterator[tuple[Tile, Any]]:
        """Yield tiles and their blocks; a block may be overwritten once the next is asked for."""
        tiles = self.tiles if tiles is None else tiles
        if self.is_sparse:
            return self._unchanged(_ahead(tiles, lambda tile, _: self.store.read(tile)))
        most = max((tile.shape[0] * tile.shape[1] for tile in tiles), default=1)
        buffers = [np.empty(most, self.dtype) for _ in range(2)]
        return self._unchanged(
            _ahead(tiles, lambda tile, turn: self.store.read(tile, buffers[turn]))
        )

    def _unchanged(self, stream: Iterator[tuple[Tile, T]]) -> Iterator[tuple[Tile, T]]:
        """Yield a stream to its end, and refuse files that were changed meanwhile or before."""
        yield from stream
        if name := changed(self._stamps):
            raise InputError(
                f"{self.name} was changed while it was in use ({name!r}); leave it as it is during "
                f"a run, and start again."
            )

    def _stream_pairs(self, tiles: Sequence[Tile]) -> Iterator[tuple[Tile, Any]]:
        """Yield tiles with their blocks and mirror images."""
        most = max(tile.shape[0] * tile.shape[1] for tile in tiles)
        buffers = [np.empty(2 * most, self.dtype) for _ in range(2)]

        def read(tile: Tile, turn: int) -> tuple[Any, Any]:
            block = self.store.read(tile, buffers[turn][:most])
            if tile.on_diagonal:
                return block, block
            across = Tile(tile.left, tile.right, tile.top, tile.bottom)
            return block, self.store.read(across, buffers[turn][most:])

        return self._unchanged(_ahead(tiles, read))


def _ahead(
    tiles: Sequence[Tile], read: Callable[[Tile, int], T]
) -> Generator[tuple[Tile, T], None, None]:
    """Yield tiles with what ``read`` gives for them; the next is read meanwhile."""
    reader = Pool(1)
    try:
        coming = None
        for place, tile in enumerate(tiles):
            block = read(tile, 0) if coming is None else coming.result()
            coming = None
            if place + 1 < len(tiles):
                coming = reader.submit(read, tiles[place + 1], (place + 1) % 2)
            yield tile, block
            del block
    finally:
        # the garbage collector may close this, in any thread and inside any lock: wait for nobody
        reader.shutdown(wait=False, cancel_futures=True)

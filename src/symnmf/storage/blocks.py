"""X on disk, read tile by tile while the tile before it is multiplied."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from symnmf.arguments import checked
from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.parallel import Threads
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.opening import open_stored
from symnmf.storage.symmetric import Square, square_parts
from symnmf.storage.tiles import (
    Facts,
    TiledMatrix,
    add_products,
    place,
    tile_facts,
    total_facts,
)

#: Memory for X unless another is asked for: large enough that a disk reads at its full rate.
MEMORY = 192 * 2**20
#: Blocks in memory at a time: one in use, one being read, one for what is made of them.
AT_A_TIME = 3


class Blocks(TiledMatrix):
    """A dense matrix on disk that is never in memory as a whole.

    The first pass checks the matrix and computes its norm and fingerprint. After that every product
    reads the upper triangle once, each block while the previous one is multiplied.

    Parameters
    ----------
    source : path, np.memmap, zarr.Array, h5py.Dataset or anything with shape, dtype and slices
        A path is that of a .npy file, a .zarr array, or a .h5 file with one two-dimensional array.
    memory : float
        Bytes for X, such as 4e9: three blocks at a time fit into it. Factors are not counted.
    assume_symmetric : bool
        Assume that X is symmetric and read only its upper triangle.
    n_jobs : int or None
        Threads; None for all cores.

    Examples
    --------
    >>> X = symnmf.storage.Blocks("X.npy", memory=1e9)  # doctest: +SKIP
    >>> symnmf.factorize(X, 10, random_state=0)  # doctest: +SKIP
    """

    @checked()
    def __init__(
        self,
        source: Any,
        *,
        memory: float = MEMORY,
        assume_symmetric: bool = False,
        n_jobs: int | None = None,
        name: str = "X",
    ) -> None:
        if not 1.0 <= memory < 2.0**63:
            raise InputError(f"memory must be a number of bytes, such as 4e9, got {memory!r}.")
        size = int(memory) // AT_A_TIME
        self.source, self.name = open_stored(source, name), name
        shape = tuple(int(side) for side in self.source.shape)
        check_shape(shape, name)
        super().__init__(shape[0], float_dtype(np.dtype(self.source.dtype), name), Threads(n_jobs))
        self.tiles = square_parts(shape[0], self._side(size))
        self._across = not assume_symmetric
        self.facts = self._look()

    def _side(self, size: int) -> int:
        """Return the side of blocks of so many bytes, in whole chunks where these are smaller."""
        side = max(1, math.isqrt(size // self.dtype.itemsize))
        grain = max(getattr(self.source, "chunks", None) or (1,))
        return side // grain * grain or side

    def _read(self, part: Square) -> np.ndarray:
        try:
            stored = np.asarray(self.source[part.top : part.bottom, part.left : part.right])
        except Exception as error:  # whatever the codec, the store or the file system raise
            raise InputError(
                f"{self.name} cannot be read any more ({str(error).rstrip('.')[:200]}); write it "
                f"again."
            ) from error
        if stored.shape != (part.bottom - part.top, part.right - part.left):
            raise InputError(f"{self.name} was cut short; write it again.")
        return np.array(stored, self.dtype, order="C")

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        """Yield tiles with their entries; the next is read while one is worked on."""
        reader = ThreadPoolExecutor(1)
        try:
            coming = reader.submit(self._read, self.tiles[0])
            for tile, following in itertools.zip_longest(self.tiles, self.tiles[1:]):
                block = coming.result()
                if following is not None:
                    coming = reader.submit(self._read, following)
                yield tile, block
                del block
        finally:
            # the garbage collector may close this, in any thread and inside any lock: do not wait
            reader.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> Facts:
        read_once()

        def facts(square: Square, block: np.ndarray) -> Facts:
            mirror = None
            if self._across and not square.on_diagonal:
                mirror = self._read(Square(square.left, square.right, square.top, square.bottom))
            return tile_facts(block, square, mirror, self.name, place(square))

        return total_facts((facts(*part) for part in self.parts()), self.dtype, self.name)

    def multiply(self, V: np.ndarray) -> np.ndarray:
        out = np.zeros(V.shape, self.dtype)
        for square, block in self.parts():
            add_products(block, square, square.sides(V), square.sides(out), self.ops.threads)
        return out

    def columns(self, begin: int, end: int) -> np.ndarray:
        return self._read(Square(begin, end, 0, self.shape[0])).T

"""Arrays on disk in chunks, decoded here so that no file says how much memory is taken."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.stores import Store, chunk_tiles
from symnmf.storage.tiles import Tile

#: Bytes that a matrix may have however little of it is stored, and beyond that for each byte that
#: is: chunks of zeros are left out, or shrink to nothing.
FREE_BYTES, BYTES_PER_BYTE = 2**32, 20_000
MOST_CHUNKS = 2**26


class Chunked(Store):
    """A matrix in chunks of one shape, of which the last in a row or a column may be cut.

    Parameters
    ----------
    title : str
    shape, chunks : tuple of int
    stored : numpy dtype
        What the chunks hold.
    fill : number
        The entries of a chunk that is not there.
    """

    def __init__(
        self,
        title: str,
        shape: tuple[int, ...],
        chunks: tuple[int, ...],
        stored: np.dtype,
        fill: Any = 0,
    ) -> None:
        self.title, self.stored = title, stored
        check_shape(shape, title)
        self.n = int(shape[0])
        self.dtype = float_dtype(stored, title)
        if len(chunks) != 2 or min(chunks) < 1:
            raise InputError(f"{title} has chunks of the shape {chunks}; write it again.")
        self.chunks = (int(chunks[0]), int(chunks[1]))
        self.fill = np.asarray(fill).astype(stored)
        across = [-(-self.n // side) for side in self.chunks]
        if across[0] * across[1] > MOST_CHUNKS:
            raise InputError(
                f"{title} is cut into {across[0] * across[1]} chunks; write it with larger ones."
            )

    def check_plausible(self, size: int) -> None:
        """Refuse a matrix that is far larger than the ``size`` bytes stored of it account for."""
        whole = self.n * self.n * self.stored.itemsize
        if whole > max(FREE_BYTES, BYTES_PER_BYTE * size):
            raise InputError(
                f"{self.title} says that it has {self.n} rows, far more than its {size} bytes "
                f"account for; write it again."
            )

    @property
    def chunk_bytes(self) -> int:
        return self.chunks[0] * self.chunks[1] * self.stored.itemsize

    def tiles(self, size: int) -> list[Tile]:
        sizes = self.stored.itemsize, self.dtype.itemsize
        return chunk_tiles(self.title, self.n, self.chunks, sizes, size)

    @property
    def grain(self) -> int:  # type: ignore[override]
        return max(self.chunks)

    def read(self, tile: Tile, buffer: np.ndarray | None = None) -> np.ndarray:
        rows, columns = tile.shape
        if buffer is None:
            whole = np.empty(tile.shape, self.dtype)
        else:
            whole = buffer[: rows * columns].reshape(tile.shape)
        high, wide = self.chunks
        for i in range(tile.top // high, -(-tile.bottom // high)):
            for j in range(tile.left // wide, -(-tile.right // wide)):
                top, bottom = max(i * high, tile.top), min((i + 1) * high, tile.bottom)
                left, right = max(j * wide, tile.left), min((j + 1) * wide, tile.right)
                place = whole[
                    top - tile.top : bottom - tile.top, left - tile.left : right - tile.left
                ]
                chunk = self._checked_chunk(i, j)
                if chunk is None:
                    place[...] = self.fill
                else:
                    if chunk.dtype == bool:  # any byte but 0 is true
                        chunk = chunk.view(np.uint8) != 0
                    part = chunk[
                        top - i * high : bottom - i * high, left - j * wide : right - j * wide
                    ]
                    np.copyto(place, part, casting="unsafe")
        return whole

    def _checked_chunk(self, i: int, j: int) -> np.ndarray | None:
        try:
            return self.chunk(i, j)
        except Exception as error:  # damaged bytes make decoders raise whatever they run into
            said = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise InputError(
                f"{self.title}: its chunk ({i}, {j}) cannot be read ({said[:200]}); write it again."
            ) from error

    @abstractmethod
    def chunk(self, i: int, j: int) -> np.ndarray | None:
        """Return a whole chunk, or None where it is not stored; raise anything if it is damaged."""

"""From a file of any kind to a folder of blocks, within a stated memory."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.outputs import as_path
from symnmf.readers.choosing import check_header, read_matrix
from symnmf.readers.edges import Nodes, edge_chunks
from symnmf.readers.market import market_chunks
from symnmf.readers.source import AnyPath, Source, opened, shown, split_ending
from symnmf.readers.sparse_parts import check_dimensions
from symnmf.storage import as_symmetric
from symnmf.storage.blocks import AT_A_TIME, Blocks, as_bytes
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.folder import BlockFolder, FolderWriter
from symnmf.storage.opening import is_stored, open_store

EDGES = (".edges", ".edgelist", ".el", ".txt")
UNBOUNDED = 2**62  # nothing grows with the file but the disk it is written to
#: Bytes that an entry takes while its block is built: the triple, its key, the order, the block.
PER_ENTRY = 120
MOST_BLOCKS = 64  # rows of blocks; their number is half the square of it
SCRATCH = ".scratch"

ENTRY = np.dtype([("row", np.int64), ("column", np.int64), ("value", np.float64)])


@dataclass(frozen=True)
class Converted:
    """What was written: rows, blocks, stored entries, and the size of the largest block."""

    n: int
    blocks: int
    largest_block: int


@checked(source=("path",), folder=("path",))
def convert(
    source: AnyPath,
    folder: AnyPath,
    *,
    memory: int | str = "1GB",
    dtype: Any = np.float64,
    assume_symmetric: bool = False,
    header: bool | None = None,
) -> Converted:
    """Write a matrix or a graph as a folder of blocks, for :class:`symnmf.storage.Blocks`.

    Parameters
    ----------
    source : path
        Anything :func:`read_matrix` reads, and .zarr and .h5 arrays. Edge lists, Matrix Market
        files and arrays on disk are streamed; others are read whole where the memory allows.
    folder : path
        New, or empty.
    memory : int or str
        Bytes to work in, such as "4GB"; the names of nodes come on top of it.
    dtype : float32 or float64
        What blocks hold.
    assume_symmetric : bool
        Believe that an array on disk is symmetric, and read its upper triangle only.
    header : bool or None
        As in :func:`read_matrix`, for .csv and .tsv files.
    """
    size = as_bytes(memory)
    kind = _as_dtype(dtype)
    path, target = as_path(source, "source"), as_path(folder, "folder")
    check_header(path, header)
    if is_stored(path) or path.is_dir():
        _convert_array(path, target, size, kind, assume_symmetric)
    elif split_ending(str(path))[0] in EDGES:
        _convert_entries(_edges(path, target), path, target, size, kind)
    elif split_ending(str(path))[0] == ".mtx":
        _convert_entries(_market(path, target), path, target, size, kind)
    else:
        _convert_whole(path, target, size, kind, header)
    written = BlockFolder(target)
    return Converted(written.n, len(written.tiles(UNBOUNDED)), written.largest_block)


def _as_dtype(dtype: Any) -> np.dtype:
    try:
        return float_dtype(np.dtype(dtype), "dtype")
    except (TypeError, ValueError) as error:
        raise InputError(f"dtype must be float32 or float64, got {dtype!r}.") from error


def _edges_of(n: int, side: int) -> list[int]:
    return [*range(0, n, max(1, side)), n]


def _convert_array(
    path: Path, target: Path, memory: int, dtype: np.dtype, assume_symmetric: bool
) -> None:
    store = open_store(path)
    if isinstance(store, BlockFolder):
        raise InputError(f"{str(path)!r} is already a folder of blocks; use it directly.")
    matrix = Blocks(store, memory=memory, assume_symmetric=assume_symmetric)
    side = max(1, int(np.sqrt(memory / AT_A_TIME / 2 / matrix.dtype.itemsize)))
    bounds = _edges_of(store.n, side)
    with FolderWriter(target, bounds, dtype, "dense") as writer:
        for tile, block in matrix.squares(side):
            writer.add(tile.top // side, tile.left // side, block)


def _convert_whole(
    path: Path, target: Path, memory: int, dtype: np.dtype, header: bool | None
) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read ({error.strerror}).") from error
    if 8 * size > memory:  # text and compressed numbers grow, and are copied once
        raise InputError(
            f"file {str(path)!r} has {size} bytes and its format cannot be streamed within "
            f"{memory}; allow {8 * size}, or save it as .npy, .mtx or an edge list."
        )
    found = read_matrix(path, header=header)
    as_symmetric(found.data, name=f"file {str(path)!r}")
    n, sparse = found.data.shape[0], sp.issparse(found.data)
    pieces = 1 + int(np.sqrt(2.0 * 16 * size / (memory / AT_A_TIME)))
    bounds = _edges_of(n, -(-n // pieces))
    with FolderWriter(target, bounds, dtype, "csr" if sparse else "dense") as writer:
        for i in range(len(bounds) - 1):
            for j in range(i, len(bounds) - 1):
                writer.add(i, j, found.data[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]])
        writer.add_names(found.names)


# Entries that arrive in any order ---------------------------------------------------------------


@dataclass
class Arrived:
    """Entries of a sparse matrix on their way to blocks, in a scratch file.

    ``rule`` says what a repeated entry means: for "edges" the same edge again, for "symmetric" and
    "general" a mistake; "general" entries come with their mirror images.
    """

    n: int
    count: int
    rule: str
    names: np.ndarray | None = None
    known: np.ndarray | None = None  # ids that become 0..n-1 in this order


def _scratch(target: Path) -> Path:
    folder = target / SCRATCH
    if target.exists() and any(target.iterdir()):
        raise InputError(f"folder {str(target)!r} is not empty; name a new one, or empty it.")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"folder {str(target)!r} cannot be made ({error.strerror}); name another."
        ) from error
    return folder


def _edges(path: Path, target: Path) -> Generator[Any]:
    """Write the edges of a list as they come; yield the scratch folder, then what arrived."""
    scratch = _scratch(target)
    yield scratch
    for text in (False, True):
        nodes = Nodes()
        if text:
            nodes.index = {}
        ids = _Ids()
        count = 0
        with (
            opened(path, max_bytes=UNBOUNDED, max_ratio=1e9) as source,
            (scratch / "entries").open("wb") as out,
        ):
            for ends, _, weights in edge_chunks(source):
                nodes.add(ends)
                if nodes.index is not None and not text:
                    break  # names turned out to be text: number all of them as such
                pairs = (nodes.text if text else nodes.integer).pop()
                ids.add(pairs)
                entries = np.empty(len(pairs), ENTRY)
                entries["row"], entries["column"] = pairs.T
                entries["value"] = 1.0 if weights is None else weights
                out.write(entries.view(np.uint8).data)
                count += len(pairs)
            else:
                out.flush()  # entries are read again while this generator waits
                if text:
                    assert nodes.index is not None
                    names = np.array([name.decode("utf-8") for name in nodes.index], dtype=object)
                    yield Arrived(len(names), count, "edges", names)
                else:
                    known = ids.finish()
                    plain = known[-1] == len(known) - 1
                    shown_names = None if plain else known
                    yield Arrived(len(known), count, "edges", shown_names, None if plain else known)
                return


class _Ids:
    """The distinct ids seen so far; merged when as many have come as are known."""

    def __init__(self) -> None:
        self.known = np.empty(0, np.int64)
        self.fresh: list[np.ndarray] = []
        self.size = 0

    def add(self, ids: np.ndarray) -> None:
        self.fresh.append(np.unique(ids))
        self.size += len(self.fresh[-1])
        if self.size > max(1_000_000, len(self.known)):
            self.finish()

    def finish(self) -> np.ndarray:
        self.known = np.unique(np.concatenate([self.known, *self.fresh]))
        self.fresh, self.size = [], 0
        return self.known


def _market(path: Path, target: Path) -> Generator[Any]:
    """Write the entries of a Matrix Market file as they come; see :func:`_edges`."""
    scratch = _scratch(target)
    yield scratch
    count, n, rule = 0, 0, "general"
    with (
        opened(path, max_bytes=UNBOUNDED, max_ratio=1e9) as source,
        (scratch / "entries").open("wb") as out,
    ):
        for market in market_chunks(source):
            assert market.banner is not None
            assert market.sizes is not None
            if not n:
                n = _checked_size(source, market.banner, market.sizes)
                rule = market.banner[2]
            row, column, value = market.columns.pop()
            market.lines.clear()
            entries = np.empty(len(row), ENTRY)
            entries["row"], entries["column"], entries["value"] = row, column, value
            out.write(entries.view(np.uint8).data)
            count += len(entries)
    yield Arrived(n, count, rule)


def _checked_size(source: Source, banner: tuple[str, str, str], sizes: list[int]) -> int:
    if banner[0] != "coordinate":
        raise source.error("it holds a dense array, which is not streamed; save it as .npy")
    if sizes[0] != sizes[1]:
        raise source.error(f"it is {sizes[0]} x {sizes[1]}, and a square matrix is needed")
    check_dimensions(source, (sizes[0], sizes[1]), sizes[2])
    return sizes[0]


def _convert_entries(
    arriving: Generator[Any], path: Path, target: Path, memory: int, dtype: np.dtype
) -> None:
    made = not target.exists()
    scratch = next(arriving)
    try:
        arrived: Arrived = next(arriving)
        most = max(1, memory // AT_A_TIME // PER_ENTRY)
        rows = 1 + int(np.sqrt(2.0 * arrived.count / most))
        while True:
            rows = min(rows, MOST_BLOCKS, arrived.n)
            side = -(-arrived.n // rows)
            largest = _distribute(scratch, arrived, side, most)
            if largest <= most or rows in (MOST_BLOCKS, arrived.n):
                break
            rows *= 2  # entries are crowded in some blocks
        if largest > 3 * most:
            raise InputError(
                f"file {str(path)!r} has {largest} entries in one block, which takes "
                f"{largest * PER_ENTRY} bytes to build; allow more memory."
            )
        bounds = _edges_of(arrived.n, side)
        with FolderWriter(target, bounds, dtype, "csr", beside=SCRATCH) as writer:
            for i in range(len(bounds) - 1):
                for j in range(i, len(bounds) - 1):
                    bucket = scratch / f"bucket-{i}-{j}"
                    if bucket.exists():
                        entries = np.fromfile(bucket, ENTRY)
                        bucket.unlink()
                        writer.add(i, j, _block(entries, i, j, bounds, arrived, path))
            writer.add_names(arrived.names)
    except BaseException:
        arriving.close()  # or the file that entries go to would stay open
        shutil.rmtree(scratch, ignore_errors=True)
        if made:
            with contextlib.suppress(OSError):
                target.rmdir()
        raise
    shutil.rmtree(scratch, ignore_errors=True)


def _distribute(scratch: Path, arrived: Arrived, side: int, most: int) -> int:
    """Append every entry to the bucket of its block; return the size of the fullest bucket."""
    for old in scratch.glob("bucket-*"):
        old.unlink()
    sizes: dict[tuple[int, int], int] = {}
    rows = -(-arrived.n // side)
    with (scratch / "entries").open("rb") as file:
        while len(entries := np.fromfile(file, ENTRY, count=max(1, most))):
            if arrived.known is not None:
                for end in ("row", "column"):
                    entries[end] = np.searchsorted(arrived.known, entries[end])
            low = np.minimum(entries["row"], entries["column"]) // side
            high = np.maximum(entries["row"], entries["column"]) // side
            place = low * rows + high
            order = np.argsort(place, kind="stable")
            found, starts = np.unique(place[order], return_index=True)
            for at, part in zip(found, np.split(order, starts[1:]), strict=True):
                i, j = divmod(int(at), rows)
                with (scratch / f"bucket-{i}-{j}").open("ab") as bucket:
                    bucket.write(entries[part].view(np.uint8).data)
                sizes[i, j] = sizes.get((i, j), 0) + len(part)
    return max(sizes.values(), default=0)


def _block(
    entries: np.ndarray, i: int, j: int, bounds: list[int], arrived: Arrived, path: Path
) -> sp.csr_array:
    """Return block (i, j) from the entries that belong to it and to its mirror image."""
    low = np.minimum(entries["row"], entries["column"])
    high = np.maximum(entries["row"], entries["column"])
    value = entries["value"]
    if value.min() < 0:
        _refuse(path, arrived, low, high, int(np.argmin(value)), "is negative")
    if arrived.rule == "general":
        low, high, value = _halved(entries, low, high, value, arrived, path)
    order = np.lexsort((high, low))
    low, high, value = low[order], high[order], value[order]
    same = np.flatnonzero((low[1:] == low[:-1]) & (high[1:] == high[:-1]))
    if len(same) and arrived.rule != "edges":
        _refuse(path, arrived, low, high, int(same[0]), "is given twice")
    differ = same[value[same] != value[same + 1]]
    if len(differ):
        _refuse(path, arrived, low, high, int(differ[0]), "has two weights; list each edge once")
    kept = np.ones(len(low), bool)
    kept[same + 1] = False
    kept &= value != 0
    low, high, value = low[kept] - bounds[i], high[kept] - bounds[j], value[kept]
    if i == j:
        off = low != high
        low, high = np.concatenate([low, high[off]]), np.concatenate([high, low[off]])
        value = np.concatenate([value, value[off]])
    shape = (bounds[i + 1] - bounds[i], bounds[j + 1] - bounds[j])
    return sp.csr_array(sp.coo_array((value, (low, high)), shape=shape))


def _halved(
    entries: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    value: np.ndarray,
    arrived: Arrived,
    path: Path,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries on and above the diagonal, if those below it are their mirror images."""
    upper = entries["row"] <= entries["column"]
    strict, lower = np.flatnonzero(upper & (low != high)), np.flatnonzero(~upper)
    strict = strict[np.lexsort((high[strict], low[strict]))]
    lower = lower[np.lexsort((high[lower], low[lower]))]
    paired = min(len(strict), len(lower))
    one, two = strict[:paired], lower[:paired]
    tolerance = 1e-10 * value.max()
    apart = (low[one] != low[two]) | (high[one] != high[two])
    apart |= np.abs(value[one] - value[two]) > tolerance
    if apart.any():
        _refuse(path, arrived, low, high, int(one[np.argmax(apart)]), "is not symmetric")
    if len(strict) != len(lower):
        alone = (strict if len(strict) > paired else lower)[paired]
        _refuse(path, arrived, low, high, int(alone), "has no mirror image")
    return low[upper], high[upper], value[upper]


def _refuse(
    path: Path, arrived: Arrived, low: np.ndarray, high: np.ndarray, at: int, what: str
) -> None:
    ends = [int(low[at]), int(high[at])]
    named = ends if arrived.names is None else [arrived.names[end] for end in ends]
    one, other = (shown(end) if isinstance(end, str) else int(end) for end in named)
    raise InputError(f"file {str(path)!r}: the entry between {one} and {other} {what}.")

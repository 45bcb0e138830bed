"""X as a Dask array: blocks are tasks, factors stay with the caller.

A product is one graph. A task per tile reads or recomputes its block, multiplies it and forgets
it. What tiles have for a row of blocks is added in a fixed order, here where all of it is small,
else by a task per row of blocks. No part of X is kept on workers and nothing is scattered, so a
worker that is lost costs its share of the work, and the scheduler does that again elsewhere: the
same bits.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.parallel import Threads, one_blas_thread
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.symmetric import Square, Work
from symnmf.storage.tiles import (
    Block,
    Facts,
    Tile,
    TiledMatrix,
    add_products,
    residual_share,
    split_tile,
    tile_facts,
)
from symnmf.storage.workers import (
    check_open,
    check_workers,
    client_of,
    compute_on,
    current_client,
)

log = logging.getLogger(__name__)

#: Seconds that a run waits for a cluster without workers.
PATIENCE = 120.0
#: Bytes that the recipe of a block may have before X is put on the cluster once instead.
RECIPE = 1_000_000
#: Bytes of all shares of a product up to which they are added here, not on the workers.
ADDED_HERE = 64 * 2**20
#: Parts that a factor is sent in, and the bytes of one from which several pay. Distributed hands
#: out tasks one by one, as workers become free, only where they depend on fewer than five others.
PARTS, PART = 4, 16 * 2**20


def _named(what: str) -> str:
    """Return a name for tasks that no other run has, on a cluster that several share."""
    return f"symnmf-{what}-{uuid.uuid4().hex}"


class Recipe:
    """How one block comes about: the part of the array's graph that makes it.

    It runs inside a task, so that a block never leaves the worker that uses it. It is pickled once
    for all products, and unpickled by the worker that needs it only, not by the scheduler.
    """

    def __init__(
        self, graph: dict[Any, Any], key: tuple[str, int, int], tile: Tile, dtype: np.dtype
    ) -> None:
        self.graph: dict[Any, Any] | None = graph
        self.key, self.tile, self.dtype = key, tile, dtype
        self.packed: bytes | None = None

    def __getstate__(self) -> dict[str, Any]:
        self.pack()
        return {**self.__dict__, "graph": None}

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        # Dask would hash all that a graph holds, factors too; the keys of a product tell it apart
        return "symnmf-recipe", *self.key

    def pack(self) -> bytes:
        """Return the graph as bytes."""
        if self.packed is None:
            from distributed.protocol.pickle import dumps

            self.packed = dumps(self.graph)
        return self.packed

    def unpack(self) -> dict[Any, Any]:
        """Return the graph, which a pickled recipe has as bytes."""
        if self.graph is None:
            from distributed.protocol.pickle import loads

            self.graph = loads(self.packed)
        return self.graph

    @property
    def where(self) -> str:
        return f"block ({self.key[1]}, {self.key[2]}), {self.tile}"

    def make(self, given: Any) -> Block:
        """Return the block, from ``given`` if it is on the cluster already."""
        from dask.local import get_sync

        block = get_sync(self.unpack(), self.key) if given is None else given
        shape = tuple(getattr(block, "shape", ()))
        if shape != self.tile.shape:
            got, due = (" x ".join(map(str, size)) for size in (shape, self.tile.shape))
            raise InputError(f"X: {self.where} is {got} and should be {due}; fix the Dask array.")
        kind = getattr(block, "dtype", np.dtype(object))
        if kind.kind not in "fiub" or float_dtype(kind, "X") != self.dtype:
            raise InputError(
                f"X: {self.where} holds {kind} and should hold {self.dtype}; fix the Dask array."
            )
        if hasattr(block, "tocsr"):  # of scipy, or of the library `sparse`
            whole = sp.csr_array(block.tocsr(), dtype=self.dtype)
            whole.sum_duplicates()
            return whole
        return _aligned(block, self.dtype)


class Part:
    """Rows of a factor, the first of them being row ``first``."""

    def __init__(self, first: int, rows: np.ndarray) -> None:
        self.first, self.rows = first, rows

    def __dask_tokenize__(self) -> tuple[str, int]:
        return "symnmf-part", self.first  # as for a recipe

    def at(self, first: int, last: int) -> np.ndarray:
        """Return rows ``first..last`` of the factor."""
        return self.rows[first - self.first : last - self.first]


def _aligned(array: Any, dtype: np.dtype) -> np.ndarray:
    """Return an array as BLAS wants it; what came over a network may lie at any byte.

    NumPy multiplies such an array in another order.
    """
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _multiplied(
    recipe: Recipe, given: Any, above: Part, beside: Part
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a tile's share of the product for its own rows, and for those of its mirror image."""
    tile, dtype = recipe.tile, recipe.dtype
    with one_blas_thread():
        block = recipe.make(given)
        rows = _aligned(above.at(tile.top, tile.bottom), dtype)
        columns = _aligned(beside.at(tile.left, tile.right), dtype)
        own = np.zeros((tile.shape[0], rows.shape[1]), dtype)
        other = np.zeros((tile.right - tile.mirrored, rows.shape[1]), dtype)
        add_products(block, tile, (rows, columns), (own, other), Threads(1))
    return own, None if tile.on_diagonal else other


def _looked_at(
    recipe: Recipe,
    across: Recipe | None,
    given: Any,
    given_across: Any,
    name: str,
) -> Facts:
    mirror = None if across is None else across.make(given_across)
    return tile_facts(
        recipe.make(given),
        recipe.tile,
        recipe.where,
        Threads(1),
        mirror=mirror,
        name=name,
    )


def _apart(recipe: Recipe, given: Any, *parts: Part) -> float:
    """Return ``residual_share`` for U and V of the tile's rows, then of its columns."""
    tile = recipe.tile
    above = [part.at(tile.top, tile.bottom) for part in parts[:2]]
    beside = [part.at(tile.left, tile.right) for part in parts[2:]]
    if parts[0] is parts[1]:
        above[1] = above[0]
    with one_blas_thread():
        return residual_share(
            recipe.make(given), tile, (above[0], above[1]), (beside[0], beside[1])
        )


def _made(recipe: Recipe, given: Any) -> np.ndarray:
    """Return a block as a dense array."""
    block = recipe.make(given)
    dense: np.ndarray = block.toarray() if sp.issparse(block) else block
    return dense


def _squares_of(tile: Tile) -> list[Square]:
    return [square for square, _ in split_tile(tile, np.empty((0, tile.shape[1])))]


def _visited(
    recipe: Recipe,
    given: Any,
    work: Work,
    weights: list[np.ndarray],
    above: list[Part],
    beside: list[Part],
) -> list[Any]:
    """Return what ``work`` says of the squares of one block."""
    found = []
    with one_blas_thread():
        block = _made(recipe, given)
        for (square, part), weight in zip(split_tile(recipe.tile, block), weights, strict=True):
            rows = [factor.at(square.top, square.bottom) for factor in above]
            columns = [factor.at(square.left, square.right) for factor in beside]
            found.append(work(part, weight, rows, columns, square.on_diagonal))
    return found


def _sum(parts: list[tuple[Any, int]]) -> np.ndarray:
    """Add up shares in the order given; each comes with which of a tile's two it is."""
    total = None
    for shares, which in parts:
        share = shares[which]
        total = share.copy() if total is None else np.add(total, share, out=total)
    assert total is not None
    return total


def _itself(part: Part) -> Part:
    return part


class DaskMatrix(TiledMatrix):
    """A Dask array, computed by the current scheduler or client.

    Parameters
    ----------
    X : dask.array.Array
        Square, with known chunks; blocks may be NumPy arrays or sparse matrices.
    assume_symmetric : bool
        Assume that X is symmetric and compute only blocks of its upper triangle.
    n_jobs : int or None
        Threads for the factors, which are in this process; the scheduler runs the blocks.
    patience : float
        Seconds to wait for a cluster that has no workers before giving up.
    """

    def __init__(
        self,
        X: Any,
        *,
        assume_symmetric: bool = False,
        n_jobs: int | None = None,
        patience: float = PATIENCE,
        name: str = "X",
    ) -> None:
        if X.ndim == 2 and any(np.isnan(size) for axis in X.chunks for size in axis):
            raise InputError(
                f"{name} is a Dask array with unknown chunk sizes; call "
                f"{name}.compute_chunk_sizes() first."
            )
        check_shape(tuple(X.shape), name)
        dtype = float_dtype(np.dtype(X.dtype), name)
        self.name, self.patience = name, patience
        super().__init__(int(X.shape[0]), dtype, Threads(n_jobs), Facts())
        sizes = tuple(size for size in X.chunks[0] if size)  # slicing leaves chunks of no rows
        if X.chunks != (sizes, sizes):
            X = X.rechunk((sizes, sizes))
        check_workers(patience)
        self._plan(X, assume_symmetric)
        self.facts = self._look()

    def _plan(self, X: Any, assume_symmetric: bool) -> None:
        """Cut the array's graph into a recipe for each block."""
        import dask.array as da
        from dask.optimization import cull

        self.edges = edges = [0, *np.cumsum(X.chunks[0]).tolist()]
        count = len(edges) - 1
        self.pairs = [(i, j) for i in range(count) for j in range(i, count)]
        self._across = not assume_symmetric
        self._is_sparse = hasattr(X._meta, "tocsr")
        tiles = {
            (i, j): Tile(edges[i], edges[i + 1], edges[j], edges[j + 1])
            for i in range(count)
            for j in range(count)
        }
        on_cluster = current_client() is not None
        owner = client_of(X)
        if owner is not None:
            check_open(owner if on_cluster else None)
        held = X if owner is not None else None

        def recipes(graphs: dict[Any, dict[Any, Any]]) -> dict[tuple[int, int], Recipe]:
            return {
                place: Recipe(graphs.get(place, {}), (X.name, *place), tile, self.dtype)
                for place, tile in tiles.items()
            }

        self.recipes = recipes({})
        if held is None:
            keys = {place: recipe.key for place, recipe in self.recipes.items()}
            whole = dict(da.optimize(X.dask, list(keys.values())))
            self.recipes = recipes({at: dict(cull(whole, [key])[0]) for at, key in keys.items()})
            if on_cluster and any(len(one.pack()) > RECIPE for one in self.recipes.values()):
                # in the caller's memory: put there once, not sent with every product
                held, self.recipes = X.persist(), recipes({})
        self._held = held

    def _given(self, i: int, j: int) -> Any:
        """Return the key of a block that lives on the cluster; None for one that a task makes."""
        return None if self._held is None else self.recipes[i, j].key

    @property
    def is_sparse(self) -> bool:
        return self._is_sparse

    def _look(self) -> Facts:
        read_once()
        graph: dict[Any, Any] = {}
        prefix = _named("look")
        for i, j in self.pairs:
            across = self.recipes[j, i] if self._across and i != j else None
            graph[prefix, i, j] = (
                _looked_at,
                self.recipes[i, j],
                across,
                self._given(i, j),
                self._given(j, i) if across is not None else None,
                self.name,
            )
        return Facts.total(self._compute(graph, list(graph)), self.dtype, self.name)

    def multiply(self, V: np.ndarray, out: np.ndarray) -> None:
        prefix = _named("product")
        graph, part = self._parts(prefix, V)
        shares: list[list[tuple[Any, int]]] = [[] for _ in self.edges[1:]]
        tiles = []
        for i, j in self.pairs:
            key = (prefix, i, j)
            tiles.append(key)
            graph[key] = (_multiplied, self.recipes[i, j], self._given(i, j), part[i], part[j])
            shares[i].append((key, 0))
            if i != j:
                shares[j].append((key, 1))
        clock = time.perf_counter()
        sums: Iterable[np.ndarray]
        if (len(shares) + 1) * V.nbytes <= ADDED_HERE:
            found = dict(zip(tiles, self._compute(graph, tiles), strict=True))
            sums = (_sum([(found[key], which) for key, which in parts]) for parts in shares)
        else:
            rows_of_blocks = [(f"{prefix}-sum", i) for i in range(len(shares))]
            for row, parts in zip(rows_of_blocks, shares, strict=True):
                graph[row] = (_sum, [list(share) for share in parts])
            sums = self._compute(graph, rows_of_blocks)
        for i, rows in enumerate(sums):
            out[self.edges[i] : self.edges[i + 1]] = rows
        log.debug("product of %d blocks: %.3f s", len(self.pairs), time.perf_counter() - clock)

    def _parts(
        self, prefix: str, V: np.ndarray, name: str = "V"
    ) -> tuple[dict[Any, Any], list[Any]]:
        """Return tasks that hold parts of V, and for each row of blocks which has its rows."""
        rows_of_blocks = len(self.edges) - 1
        count = min(PARTS, rows_of_blocks, -(-V.nbytes // PART))
        part = [(f"{prefix}-{name}", i * count // rows_of_blocks) for i in range(rows_of_blocks)]
        graph: dict[Any, Any] = {}
        for key, group in itertools.groupby(range(rows_of_blocks), part.__getitem__):
            members = list(group)
            first, last = self.edges[members[0]], self.edges[members[-1] + 1]
            graph[key] = (_itself, Part(first, np.ascontiguousarray(V[first:last])))
        return graph, part

    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterable[float]:
        prefix = _named("residual")
        graph, part_U = self._parts(prefix, U, "U")
        part_V = part_U
        if U is not V:
            more, part_V = self._parts(prefix, V, "V")
            graph |= more
        keys = [(prefix, i, j) for i, j in self.pairs]
        for key, (i, j) in zip(keys, self.pairs, strict=True):
            parts = (part_U[i], part_V[i], part_U[j], part_V[j])
            graph[key] = (_apart, self.recipes[i, j], self._given(i, j), *parts)
        return self._compute(graph, keys)

    def visit(
        self, work: Work, factors: Sequence[np.ndarray], weights: Callable[[Square], np.ndarray]
    ) -> Iterator[tuple[Square, Any]]:
        prefix = _named("visit")
        graph: dict[Any, Any] = {}
        parts = []
        for number, factor in enumerate(factors):
            more, part = self._parts(prefix, factor, f"factor-{number}")
            graph |= more
            parts.append(part)
        tiles, keys = [self.recipes[i, j].tile for i, j in self.pairs], []
        for (i, j), tile in zip(self.pairs, tiles, strict=True):
            key = (prefix, i, j)
            keys.append(key)
            graph[key] = (
                _visited,
                self.recipes[i, j],
                self._given(i, j),
                work,
                [weights(square) for square in _squares_of(tile)],
                [part[i] for part in parts],
                [part[j] for part in parts],
            )
        for tile, found in zip(tiles, self._compute(graph, keys), strict=True):
            yield from zip(_squares_of(tile), found, strict=True)

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        for i, j in self.pairs:
            key = (_named("part"), i, j)
            task = (_made, self.recipes[i, j], self._given(i, j))
            block = self._compute({key: task}, [key])[0]
            yield from split_tile(self.recipes[i, j].tile, block)

    def _compute(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        client = current_client()
        if self._held is not None:
            check_open(client)
            graph = dict(self._held.dask) | graph
        if client is None:
            from dask.base import get_scheduler
            from dask.threaded import get

            return list((get_scheduler() or get)(graph, keys))
        return compute_on(client, graph, keys, self.patience)

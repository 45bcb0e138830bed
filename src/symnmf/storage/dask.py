"""X as a Dask array: blocks are tasks of Dask's, factors stay with the caller.

A product is one graph: a task per tile makes its block, multiplies it and forgets it, and what
tiles have for a row of blocks is added by a task, in a fixed order. No part of X and no factor is
kept on workers, so Dask makes what a lost worker had again elsewhere: the same bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.interchange import is_dask
from symnmf.parallel import Threads, one_blas_thread
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.symmetric import Square, Work
from symnmf.storage.tiles import (
    Block,
    Facts,
    TiledMatrix,
    add_products,
    place,
    residual_share,
    tile_facts,
)

#: Seconds that a cluster has for starting its first worker.
PATIENCE = 120.0


@dataclass(frozen=True)
class Recipe:
    """What is to be known of a block by whoever works on it."""

    square: Square
    dtype: np.dtype
    where: str
    name: str

    def checked(self, block: Any) -> Block:
        """Return a block in the precision of X, a NumPy array or in CSR form."""
        square, dtype = self.square, self.dtype
        shape = square.bottom - square.top, square.right - square.left
        got, kind = tuple(getattr(block, "shape", ())), getattr(block, "dtype", np.dtype(object))
        if got != shape or kind.kind not in "fiub" or float_dtype(kind, self.name) != dtype:
            sizes = [" x ".join(map(str, size)) for size in (got, shape)]
            raise InputError(
                f"{self.name}: {self.where} is {sizes[0]} of {kind} and should be {sizes[1]} of "
                f"{dtype}; fix the Dask array."
            )
        if hasattr(block, "tocsr"):  # of scipy, or of the library `sparse`
            matrix = sp.csr_array(block.tocsr(), dtype=dtype)
            matrix.sum_duplicates()
            return matrix
        return _aligned(np.asarray(block, dtype))


class DaskMatrix(TiledMatrix):
    """A Dask array, computed by the current scheduler or client.

    An array that was made from memory is sent to a cluster with every product, unless it was
    persisted there. What happens to tasks whose workers die is for the cluster's configuration to
    say: ``distributed.scheduler.allowed-failures`` and ``no-workers-timeout``.

    Parameters
    ----------
    X : dask.array.Array
        Square, with known chunks; blocks may be NumPy arrays or sparse matrices.
    assume_symmetric : bool
        Assume that X is symmetric and compute only blocks of its upper triangle.
    n_jobs : int or None
        Threads for the factors, which are in this process; the scheduler runs the blocks.
    """

    def __init__(
        self,
        X: Any,
        *,
        assume_symmetric: bool = False,
        n_jobs: int | None = None,
        name: str = "X",
    ) -> None:
        if not is_dask(X):
            raise InputError(f"{name} must be a Dask array, got {type(X).__name__}.")
        if X.ndim == 2 and any(np.isnan(size) for axis in X.chunks for size in axis):
            raise InputError(
                f"{name} is a Dask array with unknown chunk sizes; call "
                f"{name}.compute_chunk_sizes() first."
            )
        check_shape(tuple(X.shape), name)
        super().__init__(int(X.shape[0]), float_dtype(np.dtype(X.dtype), name), Threads(n_jobs))
        self.name, self._across = name, not assume_symmetric
        sizes = tuple(size for size in X.chunks[0] if size)  # slicing leaves chunks of no rows
        if X.chunks != (sizes, sizes):
            X = X.rechunk((sizes, sizes))
        edges = [0, *itertools.accumulate(sizes)]
        self.rows = list(itertools.pairwise(edges))
        self.pairs = list(itertools.combinations_with_replacement(range(len(self.rows)), 2))
        self.tiles = [Square(*self.rows[i], *self.rows[j]) for i, j in self.pairs]
        self.is_sparse = hasattr(X._meta, "tocsr")
        self.blocks = X.to_delayed()
        _check_workers()
        self.facts = self._look()

    def _tasks(self, work: Callable[..., Any], *arguments: Iterable[Any], parts: int = 1) -> Any:
        """Return a task for each tile: ``work`` of its block, where it is, and the arguments."""
        task = _delayed(_on_block, nout=parts)
        return [
            task(work, *self._block(i, j), *rest)
            for (i, j), *rest in zip(self.pairs, *arguments, strict=True)
        ]

    def _block(self, i: int, j: int) -> tuple[Any, Recipe]:
        """Return the task that makes a block, and what is to be known of it."""
        square = Square(*self.rows[i], *self.rows[j])
        where = f"block ({i}, {j}), {place(square)}"
        return self.blocks[i, j], Recipe(square, self.dtype, where, self.name)

    def _sides(self, factor: np.ndarray) -> list[tuple[Any, Any]]:
        """Return the rows of a factor for the rows and the columns of each tile, as tasks."""
        rows = [_constant(np.ascontiguousarray(factor[slice(*ends)])) for ends in self.rows]
        return [(rows[i], rows[j]) for i, j in self.pairs]

    def _look(self) -> Facts:
        read_once()
        mirrors = [
            _delayed(_on_block)(_itself, *self._block(j, i)) if self._across and i != j else None
            for i, j in self.pairs
        ]
        return Facts.total(_computed(self._tasks(_looked_at, mirrors)), self.dtype, self.name)

    def multiply(self, V: np.ndarray) -> np.ndarray:
        shares: list[list[Any]] = [[] for _ in self.rows]
        for (i, j), task in zip(
            self.pairs, self._tasks(_multiplied, self._sides(V), parts=2), strict=True
        ):
            own, mirrored = task
            shares[i].append(own)
            if i != j:
                shares[j].append(mirrored)
        return np.concatenate(_computed([_delayed(_added)(parts) for parts in shares]))

    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterable[float]:
        first = self._sides(U)
        second = [None] * len(first) if U is V else self._sides(V)
        return _computed(self._tasks(_apart, first, second))

    def visit(
        self, work: Work, factors: Sequence[np.ndarray], weights: Callable[[Square], np.ndarray]
    ) -> Iterator[tuple[Square, Any]]:
        sides = [self._sides(factor) for factor in factors]
        of_tiles = list(zip(*sides, strict=True)) if sides else [()] * len(self.tiles)
        works = [work] * len(self.tiles)
        tasks = self._tasks(_visited, works, map(weights, self.tiles), of_tiles)
        yield from zip(self.tiles, _computed(tasks), strict=True)

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        for (i, j), square in zip(self.pairs, self.tiles, strict=True):
            yield square, _computed([_delayed(_on_block)(_dense, *self._block(i, j))])[0]


def _delayed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    import dask

    # names that no other run has, on a cluster that several share
    return dask.delayed(function, pure=False, **options)


def _constant(array: np.ndarray) -> Any:
    import dask

    return dask.delayed(array, pure=False, traverse=False)


def _computed(tasks: list[Any]) -> Any:
    import dask

    return dask.compute(*tasks)


def _check_workers() -> None:
    """Refuse a cluster that has no worker and does not start one."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "wait_for_workers"):
        return
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise InputError(
            f"the Dask cluster has had no workers for {PATIENCE:g} seconds; start some first."
        ) from error


# --- what is done on a worker


def _aligned(array: Any) -> np.ndarray:
    """Return an array as BLAS wants it; what came over a network may lie at any byte.

    NumPy multiplies such an array in another order.
    """
    return np.require(array, None, ["C_CONTIGUOUS", "ALIGNED"])


def _on_block(work: Callable[..., Any], block: Any, recipe: Recipe, *arguments: Any) -> Any:
    with one_blas_thread():
        return work(recipe.checked(block), recipe, *arguments)


def _itself(block: Block, recipe: Recipe) -> Block:
    return block


def _looked_at(block: Block, recipe: Recipe, mirror: Block | None) -> Facts:
    return tile_facts(block, recipe.square, mirror, recipe.name, recipe.where)


def _multiplied(
    block: Block, recipe: Recipe, V: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a tile's share of the product for its own rows, and for those of its mirror image."""
    rows, columns = _aligned(V[0]), _aligned(V[1])
    out = np.zeros_like(rows), np.zeros_like(columns)
    add_products(block, recipe.square, (rows, columns), out, Threads(1))
    return out


def _added(shares: list[np.ndarray]) -> np.ndarray:
    """Add up shares in the order given."""
    total = np.array(shares[0])
    for share in shares[1:]:
        total += share
    return total


def _apart(block: Block, recipe: Recipe, U: Any, V: Any) -> float:
    return residual_share(block, recipe.square, U, U if V is None else V)


def _dense(block: Block, recipe: Recipe) -> np.ndarray:
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _visited(
    block: Block, recipe: Recipe, work: Work, weights: np.ndarray, factors: Sequence[Any]
) -> Any:
    """Return what ``work`` says of one tile."""
    rows, columns = ([_aligned(sides[which]) for sides in factors] for which in (0, 1))
    return work(_dense(block, recipe), weights, rows, columns, recipe.square.on_diagonal)

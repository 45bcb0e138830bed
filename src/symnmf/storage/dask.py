"""X as a Dask array: blocks are tasks of Dask's, factors stay with the caller.

A product is one graph: a task per tile makes its block, multiplies it and forgets it, and what
tiles have for a row of blocks is added by a task, in a fixed order. No part of X and no factor is
kept on workers, so Dask makes what a lost worker had again elsewhere: the same bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

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
    Sides,
    TiledMatrix,
    add_products,
    place,
    tile_facts,
    total_facts,
)


class Recipe(NamedTuple):
    """What whoever works on a block has to know of it."""

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
        self.name = name
        sizes = tuple(size for size in X.chunks[0] if size)  # slicing leaves chunks of no rows
        if X.chunks != (sizes, sizes):
            X = X.rechunk((sizes, sizes))
        self.rows = list(itertools.pairwise([0, *itertools.accumulate(sizes)]))
        self.tiles = list(itertools.combinations_with_replacement(range(len(self.rows)), 2))
        self.is_sparse = hasattr(X._meta, "tocsr")
        self.blocks = X.to_delayed()
        self.facts = self._look(across=not assume_symmetric)

    def _block(self, i: int, j: int) -> tuple[Any, Recipe]:
        """Return the task that makes a block, and what is to be known of it."""
        square = Square(*self.rows[i], *self.rows[j])
        where = f"block ({i}, {j}), {place(square)}"
        return self.blocks[i, j], Recipe(square, self.dtype, where, self.name)

    def _tasks(self, work: Callable[..., Any], *arguments: Iterable[Any], parts: int = 1) -> Any:
        """Return a task for each tile: ``work`` of its block, where it is, and the arguments."""
        task = _delayed(_on_block, nout=parts)
        return [
            task(work, *self._block(*tile), *rest)
            for tile, *rest in zip(self.tiles, *arguments, strict=True)
        ]

    def _sides(self, factor: np.ndarray) -> list[tuple[Any, Any]]:
        """Return the rows of a factor for the rows and the columns of each tile, as tasks."""
        import dask

        parts = (np.ascontiguousarray(factor[slice(*ends)]) for ends in self.rows)
        rows = [dask.delayed(part, pure=False, traverse=False) for part in parts]
        return [(rows[i], rows[j]) for i, j in self.tiles]

    def _look(self, across: bool) -> Facts:
        read_once()
        mirrors = [
            _delayed(_on_block)(_itself, *self._block(j, i)) if across and i != j else None
            for i, j in self.tiles
        ]
        return total_facts(_computed(self._tasks(_looked_at, mirrors)), self.dtype, self.name)

    def multiply(self, V: np.ndarray) -> np.ndarray:
        shares: list[list[Any]] = [[] for _ in self.rows]
        tasks = self._tasks(_multiplied, self._sides(V), parts=2)
        for (i, j), (own, mirrored) in zip(self.tiles, tasks, strict=True):
            shares[i].append(own)
            if i != j:
                shares[j].append(mirrored)
        return np.concatenate(_computed([_delayed(sum)(parts) for parts in shares]))

    def visit(
        self, work: Work, factors: Sequence[np.ndarray], weights: Callable[[Square], np.ndarray]
    ) -> Iterator[tuple[Square, Any]]:
        squares = [self._block(*tile)[1].square for tile in self.tiles]
        sides = [self._sides(factor) for factor in factors]
        of_tiles = list(zip(*sides, strict=True)) if sides else [()] * len(squares)
        tasks = self._tasks(_visited, [work] * len(squares), map(weights, squares), of_tiles)
        yield from zip(squares, _computed(tasks), strict=True)

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        for tile in self.tiles:
            block, recipe = self._block(*tile)
            yield recipe.square, _computed([_delayed(_on_block)(_dense, block, recipe)])[0]


def _delayed(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    import dask

    # names that no other run has, on a cluster that several share
    return dask.delayed(function, pure=False, **options)


def _computed(tasks: list[Any]) -> Any:
    import dask

    return dask.compute(*tasks)


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


def _multiplied(block: Block, recipe: Recipe, V: Sides) -> Sides:
    """Return a tile's share of the product for its own rows, and for those of its mirror image."""
    rows, columns = _aligned(V[0]), _aligned(V[1])
    out = np.zeros_like(rows), np.zeros_like(columns)
    add_products(block, recipe.square, (rows, columns), out, Threads(1))
    return out


def _dense(block: Block, recipe: Recipe) -> np.ndarray:
    return np.asarray(block.toarray() if sp.issparse(block) else block)


def _visited(
    block: Block, recipe: Recipe, work: Work, weights: np.ndarray, factors: Sequence[Sides]
) -> Any:
    rows, columns = ([_aligned(sides[which]) for sides in factors] for which in (0, 1))
    return work(_dense(block, recipe), weights, rows, columns, recipe.square.on_diagonal)

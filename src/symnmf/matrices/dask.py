"""X as a Dask array: blocks are tasks, factors stay with the caller.

A product is one graph. A task per tile reads or recomputes its block, multiplies it and forgets
it; a task per row of blocks adds what tiles have for it, in a fixed order. Nothing of X is kept on
workers and nothing is scattered, so a worker that is lost costs its share of the work, and the
scheduler does that again elsewhere: the same bits.
"""

from __future__ import annotations

import itertools
import logging
import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.matrices.border import check_shape
from symnmf.matrices.dtypes import float_dtype
from symnmf.matrices.tiles import (
    Block,
    Facts,
    Tile,
    TiledMatrix,
    add_products,
    residual_share,
    tile_facts,
)
from symnmf.parallel import Threads, one_blas_thread

log = logging.getLogger(__name__)

#: Seconds that a run waits for a cluster without workers.
PATIENCE = 120.0
#: Seconds between two looks at a cluster that works.
LOOK_EVERY = 1.0
#: Times that a product is asked for again after its workers died under it.
RETRIES = 20
#: Bytes that the recipe of a block may have before X is put on the cluster once instead.
RECIPE = 1_000_000

_numbers = itertools.count()


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "dask")


class Recipe:
    """How one block comes about: the part of the array's graph that makes it.

    It runs inside a task, so that a block never leaves the worker that uses it.
    """

    def __init__(
        self, graph: dict[Any, Any], key: tuple[str, int, int], tile: Tile, dtype: np.dtype
    ) -> None:
        self.graph, self.key, self.tile, self.dtype = graph, key, tile, dtype

    @property
    def where(self) -> str:
        return f"block ({self.key[1]}, {self.key[2]}), {self.tile}"

    def make(self, given: Any) -> Block:
        """Return the block, from what is ``given`` where it lives on the cluster already."""
        from dask.local import get_sync

        block = get_sync(self.graph, self.key) if given is None else given
        shape = tuple(getattr(block, "shape", ()))
        if shape != self.tile.shape:
            got, due = (" x ".join(map(str, size)) for size in (shape, self.tile.shape))
            raise InputError(f"X: {self.where} is {got} and should be {due}; mend the Dask array.")
        kind = getattr(block, "dtype", np.dtype(object))
        if kind.kind not in "fiub" or float_dtype(kind, "X") != self.dtype:
            raise InputError(
                f"X: {self.where} holds {kind} and should hold {self.dtype}; mend the Dask array."
            )
        if hasattr(block, "tocsr"):  # of scipy, or of the library `sparse`
            whole = sp.csr_array(block.tocsr(), dtype=self.dtype)
            whole.sum_duplicates()
            return whole
        return _aligned(block, self.dtype)


def _aligned(array: Any, dtype: np.dtype) -> np.ndarray:
    """Return an array as BLAS wants it; what came over a network may lie at any byte.

    NumPy multiplies such an array in another order.
    """
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _multiplied(
    recipe: Recipe, given: Any, above: np.ndarray, beside: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return a tile's share of the product for its own rows, and for those of its mirror image."""
    tile = recipe.tile
    with one_blas_thread():
        block = recipe.make(given)
        above, beside = (_aligned(rows, recipe.dtype) for rows in (above, beside))
        own = np.zeros((tile.shape[0], above.shape[1]), recipe.dtype)
        other = np.zeros((tile.right - tile.mirrored, above.shape[1]), recipe.dtype)
        add_products(block, tile, (above, beside), (own, other), Threads(1))
    return own, None if tile.on_diagonal else other


def _looked_at(
    recipe: Recipe,
    across: Recipe | None,
    scales: tuple[float, float],
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
        scales=(scales[0], scales[1]),
        name=name,
    )


def _apart(recipe: Recipe, scales: tuple[float, float], given: Any, *rows: np.ndarray) -> float:
    """Return ``residual_share`` for U and V of the tile's rows, then of its columns."""
    with one_blas_thread():
        return residual_share(
            recipe.make(given), recipe.tile, (rows[0], rows[1]), (rows[2], rows[3]), scales
        )


def _sum(parts: list[tuple[Any, int]]) -> np.ndarray:
    """Add up shares in the order given; each comes with which of a tile's two it is."""
    total = None
    for shares, which in parts:
        share = shares[which]
        total = share.copy() if total is None else np.add(total, share, out=total)
    assert total is not None
    return total


def _itself(value: Any) -> Any:
    return value


class DaskMatrix(TiledMatrix):
    """A Dask array, computed by whatever scheduler or client is current.

    Parameters
    ----------
    X : dask.array.Array
        Square, with known chunks; blocks may be NumPy arrays or sparse matrices.
    assume_symmetric : bool
        Believe that X is symmetric and compute blocks of its upper triangle only.
    n_jobs : int or None
        Threads for the factors, which are here; blocks are the scheduler's.
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
        if X.chunks[0] != X.chunks[1]:
            X = X.rechunk({1: X.chunks[0]})
        _check_workers(patience)
        self._plan(X, assume_symmetric)
        self.facts = self.look_again((1.0, 1.0))

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
        on_cluster = _client() is not None
        held = X if on_cluster and _has_futures(X) else None
        graphs: dict[Any, dict[Any, Any]] = {place: {} for place in tiles}
        if held is None:
            keys = {place: (X.name, *place) for place in tiles}
            whole = dict(da.optimize(X.dask, list(keys.values())))
            graphs = {place: dict(cull(whole, [key])[0]) for place, key in keys.items()}
            if on_cluster and any(_is_heavy(graph) for graph in graphs.values()):
                # in the caller's memory: put there once, not sent with every product
                held, graphs = X.persist(), {place: {} for place in tiles}
        self._held = held
        self.recipes = {
            place: Recipe(graphs[place], (X.name, *place), tile, self.dtype)
            for place, tile in tiles.items()
        }

    def _given(self, i: int, j: int) -> Any:
        """Return the key of a block that lives on the cluster; None for one that a task makes."""
        return None if self._held is None else self.recipes[i, j].key

    @property
    def is_sparse(self) -> bool:
        return self._is_sparse

    def look_again(self, scales: tuple[float, float]) -> Facts:
        graph: dict[Any, Any] = {}
        prefix = f"symnmf-look-{next(_numbers)}"
        for i, j in self.pairs:
            across = self.recipes[j, i] if self._across and i != j else None
            graph[prefix, i, j] = (
                _looked_at,
                self.recipes[i, j],
                across,
                scales,
                self._given(i, j),
                self._given(j, i) if across is not None else None,
                self.name,
            )
        return Facts.total(self._compute(graph, list(graph)), self.dtype, self.name)

    def multiply(self, V: np.ndarray, out: np.ndarray) -> None:
        prefix = f"symnmf-product-{next(_numbers)}"
        graph = self._slices(prefix, V)
        shares: list[list[tuple[Any, int]]] = [[] for _ in self.edges[1:]]
        for i, j in self.pairs:
            key = (prefix, i, j)
            graph[key] = (
                _multiplied,
                self.recipes[i, j],
                self._given(i, j),
                (f"{prefix}-V", i),
                (f"{prefix}-V", j),
            )
            shares[i].append((key, 0))
            if i != j:
                shares[j].append((key, 1))
        sums = [(f"{prefix}-sum", i) for i in range(len(shares))]
        for total, parts in zip(sums, shares, strict=True):
            graph[total] = (_sum, [list(part) for part in parts])
        clock = time.perf_counter()
        for i, rows in enumerate(self._compute(graph, sums)):
            out[self.edges[i] : self.edges[i + 1]] = rows
        log.debug("product of %d blocks: %.3f s", len(self.pairs), time.perf_counter() - clock)

    def _slices(self, prefix: str, V: np.ndarray, name: str = "V") -> dict[Any, Any]:
        """Return a task for each row of blocks that holds its rows of V."""
        return {
            (f"{prefix}-{name}", i): (_itself, np.ascontiguousarray(V[first:last]))
            for i, (first, last) in enumerate(itertools.pairwise(self.edges))
        }

    def residual_shares(self, U: np.ndarray, V: np.ndarray) -> Iterable[float]:
        prefix = f"symnmf-residual-{next(_numbers)}"
        names = "UU" if U is V else "UV"
        graph = self._slices(prefix, U, "U") | self._slices(prefix, V, names[1])
        keys = [(prefix, i, j) for i, j in self.pairs]
        for key, (i, j) in zip(keys, self.pairs, strict=True):
            rows = [(f"{prefix}-{name}", place) for place in (i, j) for name in names]
            recipe, given = self.recipes[i, j], self._given(i, j)
            graph[key] = (_apart, recipe, self.scales, given, *rows)
        return self._compute(graph, keys)

    def _compute(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        if self._held is not None:
            graph = dict(self._held.dask) | graph
        client = _client()
        if client is None:
            from dask.base import get_scheduler
            from dask.threaded import get

            return list((get_scheduler() or get)(graph, keys))
        return _on_cluster(client, graph, keys, self.patience)


def _client() -> Any:
    """Return the current client of a cluster, or None."""
    from dask.base import get_scheduler

    current = get_scheduler()
    client = getattr(current, "__self__", None)
    return client if type(client).__module__.startswith("distributed") else None


def _has_futures(X: Any) -> bool:
    """Whether an array is on the cluster already."""
    from distributed import Future

    return any(isinstance(value, Future) for value in dict(X.dask).values())


def _is_heavy(graph: dict[Any, Any]) -> bool:
    """Whether a recipe holds data, not only how to get it."""
    from distributed.protocol.pickle import dumps

    return len(dumps(graph)) > RECIPE


def _check_workers(patience: float) -> None:
    """Refuse a cluster without workers, or with workers that lack the package."""
    client = _client()
    if client is None:
        return
    _wait_for_workers(client, patience)
    from importlib.util import find_spec

    found = client.run(find_spec, "symnmf", on_error="return")
    lacking = [name for name, spec in found.items() if spec is None]
    if lacking:
        raise InputError(
            f"symnmf is not installed on {len(lacking)} of {len(found)} Dask workers, such as "
            f"{lacking[0]}; install it there, the same version as here."
        )


def _wait_for_workers(client: Any, patience: float) -> None:
    from distributed import TimeoutError as TooLong

    try:
        client.wait_for_workers(1, timeout=patience)
    except (TooLong, TimeoutError, OSError) as error:
        raise _short_of_workers(patience) from error


def _short_of_workers(patience: float) -> InputError:
    return InputError(
        f"the Dask cluster has had no workers for {patience:g} seconds; start some and go on from "
        f"the last checkpoint, or raise patience of symnmf.matrices.DaskMatrix."
    )


def _on_cluster(client: Any, graph: dict[Any, Any], keys: list[Any], patience: float) -> list[Any]:
    """Compute keys of a graph; ask again where workers died under it once too often."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    for attempt in range(RETRIES + 1):
        with warnings.catch_warnings():
            # factors are part of the graph, so that they are there again after a loss
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures = client.get(graph, keys, sync=False)
        try:
            _watch(client, futures, patience)
            return list(client.gather(futures))
        except (KilledWorker, FutureCancelledError) as error:
            if attempt == RETRIES:
                raise InputError(
                    f"workers of the Dask cluster died {RETRIES + 1} times under the same product "
                    f"({type(error).__name__}); see their logs, memory is the usual cause, and go "
                    f"on from the last checkpoint."
                ) from error
            log.warning("workers died under a product (%s); it is computed again", error)
            _wait_for_workers(client, patience)
        except ModuleNotFoundError as error:
            raise InputError(
                f"a Dask worker lacks the package {error.name!r}; install it there, the same "
                f"version as here."
            ) from error
    raise AssertionError("unreachable")


def _watch(client: Any, futures: list[Any], patience: float) -> None:
    """Wait for futures; raise where the cluster stays without workers."""
    from distributed import wait

    seen = time.monotonic()
    while True:
        try:
            wait(futures, timeout=LOOK_EVERY)
            return
        except TimeoutError:
            now = time.monotonic()
            if client.scheduler_info()["workers"]:
                seen = now
            elif now - seen > patience:
                client.cancel(futures)
                raise _short_of_workers(patience) from None
            else:
                log.warning("waiting for workers for %.0f s", now - seen)

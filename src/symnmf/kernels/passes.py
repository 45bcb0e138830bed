"""Passes over factors and over X that helpers share, see :mod:`symnmf.kernels.team`.

Each does one kernel of this package on all rows. ``shared`` is the array of the helpers,
``threads`` is how many share the pass with the caller counted, ``bounds`` says where parts begin,
and ``given`` are the arguments of the kernel. The last of them are its sums, one row for each part;
they are added up in the order of the parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.kernels import directions, pairs, reductions
from symnmf.kernels.compiling import compiled
from symnmf.kernels.hals import hals_rows
from symnmf.kernels.pivoting import pivot_rows
from symnmf.kernels.products import csr_rows, packed_dense_rows
from symnmf.kernels.team import do_parts, handed_over

#: Numbers in the sums of all parts from which on several threads add them up.
SHARED_SUM = 8192


@compiled(inner=True)
def _entries(given: Any, part: int, first: int, last: int) -> None:
    parts, total = given
    for number in range(len(parts)):
        for entry in range(first, last):
            total[entry] += parts[number, entry]


@compiled(inner=True)
def added_up(shared: np.ndarray, threads: int, parts: np.ndarray) -> np.ndarray:
    """Add up the rows of an array, one for each part; every thread some of the entries if many.

    Other cores wrote them, and one alone would wait for each line of their caches.
    """
    count, size = parts.shape
    total = np.zeros(size)
    if parts.size < SHARED_SUM:
        _entries((parts, total), 0, 0, size)
    else:
        bounds = np.arange(count + 1) * size // count
        function, given = handed_over(_entries, (parts, total))
        do_parts(shared, threads, function, given, bounds)
    return total


@compiled()
def inner(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`reductions.inner_rows` and return its sums."""
    function, kept = handed_over(reductions.inner_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[2])


@compiled()
def pair(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`reductions.pair_rows` and return its sums."""
    function, kept = handed_over(reductions.pair_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[2])


@compiled()
def split(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`reductions.split_rows` and return its sums."""
    function, kept = handed_over(reductions.split_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[3])


@compiled()
def natural_residual(
    shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any
) -> np.ndarray:
    """Do :func:`reductions.natural_residual_rows` and return its sums."""
    function, kept = handed_over(reductions.natural_residual_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[5])


@compiled()
def cross_gram(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`reductions.cross_gram_rows` and return its sums."""
    function, kept = handed_over(reductions.cross_gram_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[3])


@compiled()
def hals(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Do :func:`hals_rows`."""
    function, kept = handed_over(hals_rows, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled()
def pivot(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Do :func:`pivot_rows`."""
    function, kept = handed_over(_pivot, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled(inner=True)
def _pivot(given: Any, part: int, first: int, last: int) -> None:
    factor, product, anchor, gram, coupling = given
    pivot_rows(factor, product, anchor, gram, coupling, first, last)


@compiled()
def direction(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`directions.direction_rows` and return its sums."""
    function, kept = handed_over(directions.direction_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[5])


@compiled()
def advance(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Do :func:`directions.advance_rows`."""
    function, kept = handed_over(directions.advance_rows, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled()
def gradient(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> np.ndarray:
    """Do :func:`pairs.gradient_rows` and return its sums."""
    function, kept = handed_over(pairs.gradient_rows, given)
    do_parts(shared, threads, function, kept, bounds)
    return added_up(shared, threads, given[11])


@compiled()
def target(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Do :func:`pairs.target_rows`."""
    function, kept = handed_over(pairs.target_rows, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled()
def gauss_newton(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    prepared: Any,
    relaxed: Any,
    vectors: np.ndarray,
    values: np.ndarray,
    shift: float,
    steps: int,
) -> None:
    """Do what :func:`directions.prepare_rows` and :func:`directions.relax` do."""
    function, kept = handed_over(directions.prepare_rows, prepared)
    do_parts(shared, threads, function, kept, bounds)
    function, kept = handed_over(directions.relax_rows, relaxed)
    place = relaxed[9]
    place[1] = steps
    for number in range(steps):
        place[0] = number
        moment = added_up(shared, threads, relaxed[11])
        directions.couple_into(relaxed[4], moment, vectors, values, shift)
        do_parts(shared, threads, function, kept, bounds)


@compiled(inner=True)
def _csr(given: Any, part: int, first: int, last: int) -> None:
    indptr, indices, data, V, out = given
    csr_rows(indptr, indices, data, V, out, first, last)


@compiled()
def csr(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Write X @ V for a sparse X; ``given`` is indptr, indices, data, V, out."""
    function, kept = handed_over(_csr, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled(inner=True)
def _dense(given: Any, part: int, first: int, last: int) -> None:
    X, V, out = given
    packed_dense_rows(X, V, out, first, last)


@compiled()
def dense(shared: np.ndarray, threads: int, bounds: np.ndarray, given: Any) -> None:
    """Write X @ V for a C-ordered X; ``given`` is X, V, out."""
    function, kept = handed_over(_dense, given)
    do_parts(shared, threads, function, kept, bounds)

"""Passes over factors and over X that helpers share, see :mod:`symnmf.kernels.team`.

Each is a kernel of this package on all rows. ``shared`` is the array of the helpers, ``threads``
is how many share the pass with the caller counted, ``bounds`` says where parts begin, and the other
arguments are those of the kernel. Sums are added up in the order of the parts. An array made here
must be used after :func:`do_parts`: a compiled function frees it after its last use, and does not
see that the helpers use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.kernels.compiling import compiled
from symnmf.kernels.directions import (
    advance_rows,
    couple,
    direction_rows,
    prepare_rows,
    relax_rows,
)
from symnmf.kernels.hals import hals_rows
from symnmf.kernels.pairs import gradient_rows, target_rows
from symnmf.kernels.pivoting import pivot_rows
from symnmf.kernels.products import csr_rows, packed_dense_rows
from symnmf.kernels.reductions import (
    cross_gram_rows,
    inner_rows,
    natural_residual_rows,
    pair_rows,
    split_rows,
)
from symnmf.kernels.team import do_parts, handed_over

#: Numbers in the sums of all parts from which on several threads add them up.
SHARED_SUM = 8192


@compiled()
def _added(parts: np.ndarray) -> Any:
    """Add up matrices, one for each part."""
    total = parts[0].copy()
    for number in range(1, len(parts)):
        total += parts[number]
    return total


@compiled()
def _entries(given: Any, part: int, first: int, last: int) -> None:
    parts, total = given
    for number in range(len(parts)):
        for entry in range(first, last):
            total[entry] += parts[number, entry]


@compiled()
def _gathered(shared: np.ndarray, threads: int, parts: np.ndarray) -> np.ndarray:
    """Add up matrices, one for each part; every thread some of the entries if there are many.

    Other cores wrote them, and one alone would wait for each line of their caches.
    """
    if parts.size < SHARED_SUM:
        return _added(parts)
    total = np.zeros(parts.shape[1:])
    count, size = len(parts), total.size
    bounds = np.arange(count + 1) * size // count
    function, given = handed_over(_entries, (parts.reshape(count, size), total.reshape(size)))
    do_parts(shared, threads, function, given, bounds)
    return total


@compiled()
def _inner(given: Any, part: int, first: int, last: int) -> None:
    A, B, sums = given
    sums[part, 0] = inner_rows(A, B, first, last)


@compiled()
def inner(
    shared: np.ndarray, threads: int, bounds: np.ndarray, A: np.ndarray, B: np.ndarray
) -> float:
    """Return <A, B>."""
    sums = np.zeros((len(bounds) - 1, 1))
    function, given = handed_over(_inner, (A, B, sums))
    do_parts(shared, threads, function, given, bounds)
    return _added(sums)[0]


@compiled()
def _pair(given: Any, part: int, first: int, last: int) -> None:
    U, V, sums = given
    sums[part, 0], sums[part, 1], sums[part, 2] = pair_rows(U, V, first, last)


@compiled()
def pair(
    shared: np.ndarray, threads: int, bounds: np.ndarray, U: np.ndarray, V: np.ndarray
) -> tuple[float, float, float]:
    """Return ||U - V||^2, <U, V> and ||V||^2."""
    sums = np.zeros((len(bounds) - 1, 3))
    function, given = handed_over(_pair, (U, V, sums))
    do_parts(shared, threads, function, given, bounds)
    total = _added(sums)
    return total[0], total[1], total[2]


@compiled()
def _split(given: Any, part: int, first: int, last: int) -> None:
    product, U, V, sums = given
    sums[part, 0], sums[part, 1], sums[part, 2], sums[part, 3] = split_rows(
        product, U, V, first, last
    )


@compiled()
def split(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    product: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
) -> tuple[float, float, float, float]:
    """Return <product, U>, <product, V>, ||U - V||^2 and ||V||^2."""
    sums = np.zeros((len(bounds) - 1, 4))
    function, given = handed_over(_split, (product, U, V, sums))
    do_parts(shared, threads, function, given, bounds)
    total = _added(sums)
    return total[0], total[1], total[2], total[3]


@compiled()
def _natural_residual(given: Any, part: int, first: int, last: int) -> None:
    U, target, gram, step, sums = given
    sums[part, 0] = natural_residual_rows(U, target, gram, step, first, last)


@compiled()
def natural_residual(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    target: np.ndarray,
    gram: np.ndarray,
    step: float,
) -> float:
    """Return ||U - max(U - step * 2 (U gram - target), 0)||^2."""
    sums = np.zeros((len(bounds) - 1, 1))
    function, given = handed_over(_natural_residual, (U, target, gram, step, sums))
    do_parts(shared, threads, function, given, bounds)
    return _added(sums)[0]


@compiled()
def _cross_gram(given: Any, part: int, first: int, last: int) -> None:
    A, B, sums = given
    sums[part] = cross_gram_rows(A, B, first, last)


@compiled()
def cross_gram(
    shared: np.ndarray, threads: int, bounds: np.ndarray, A: np.ndarray, B: np.ndarray
) -> np.ndarray:
    """Return A^T B."""
    sums = np.zeros((len(bounds) - 1, A.shape[1], B.shape[1]))
    function, given = handed_over(_cross_gram, (A, B, sums))
    do_parts(shared, threads, function, given, bounds)
    return _gathered(shared, threads, sums)


@compiled()
def _hals(given: Any, part: int, first: int, last: int) -> None:
    factor, product, anchor, gram, coupling, sweeps = given
    hals_rows(factor, product, anchor, gram, coupling, sweeps, first, last)


@compiled()
def hals(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    factor: np.ndarray,
    product: np.ndarray,
    anchor: np.ndarray,
    gram: np.ndarray,
    coupling: float,
    sweeps: int,
) -> None:
    """Sweep over the columns of ``factor``, in place."""
    function, given = handed_over(_hals, (factor, product, anchor, gram, coupling, sweeps))
    do_parts(shared, threads, function, given, bounds)


@compiled()
def _pivot(given: Any, part: int, first: int, last: int) -> None:
    factor, product, anchor, gram, coupling = given
    pivot_rows(factor, product, anchor, gram, coupling, first, last)


@compiled()
def pivot(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    factor: np.ndarray,
    product: np.ndarray,
    anchor: np.ndarray,
    gram: np.ndarray,
    coupling: float,
) -> None:
    """Solve the rows of ``factor`` exactly, in place."""
    function, given = handed_over(_pivot, (factor, product, anchor, gram, coupling))
    do_parts(shared, threads, function, given, bounds)


@compiled()
def _direction(given: Any, part: int, first: int, last: int) -> None:
    U, product, Z, image, sums, cross, length = given
    sums[part, 0], sums[part, 1], cross[part], length[part] = direction_rows(
        U, product, Z, image, first, last
    )


@compiled()
def direction(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    product: np.ndarray,
    Z: np.ndarray,
    image: np.ndarray,
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Turn Z into D = Z - U and X Z into X D; return <X U, D>, <X D, D>, U^T D and D^T D."""
    parts, r = len(bounds) - 1, U.shape[1]
    sums, cross, length = np.zeros((parts, 2)), np.zeros((parts, r, r)), np.zeros((parts, r, r))
    function, given = handed_over(_direction, (U, product, Z, image, sums, cross, length))
    do_parts(shared, threads, function, given, bounds)
    total = _added(sums)
    return (
        total[0],
        total[1],
        _gathered(shared, threads, cross),
        _gathered(shared, threads, length),
    )


@compiled()
def _advance(given: Any, part: int, first: int, last: int) -> None:
    U, product, D, image, step = given
    advance_rows(U, product, D, image, step, first, last)


@compiled()
def advance(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    product: np.ndarray,
    D: np.ndarray,
    image: np.ndarray,
    step: float,
) -> None:
    """Add ``step`` D to U and ``step`` X D to X U; D becomes the step made."""
    function, given = handed_over(_advance, (U, product, D, image, step))
    do_parts(shared, threads, function, given, bounds)


@compiled()
def _gradient(given: Any, part: int, first: int, last: int) -> None:
    U, product, gram, level, slope, steps, changes, newest, slots, sums = given
    sums[part] = gradient_rows(
        U, product, gram, level, slope, steps, changes, newest, slots, first, last
    )


@compiled()
def gradient(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    level: float,
    slope: np.ndarray,
    steps: np.ndarray,
    changes: np.ndarray,
    newest: int,
    slots: np.ndarray,
) -> np.ndarray:
    """Bring the gradient up to date; return the sums of :func:`gradient_rows`."""
    sums = np.zeros((len(bounds) - 1, 6, max(len(steps), 2)))
    given = (U, product, gram, level, slope, steps, changes, newest, slots, sums)
    function, kept = handed_over(_gradient, given)
    do_parts(shared, threads, function, kept, bounds)
    return _added(sums)


@compiled()
def _target(given: Any, part: int, first: int, last: int) -> None:
    U, slope, steps, changes, own, step_weights, change_weights, out = given
    target_rows(U, slope, steps, changes, own, step_weights, change_weights, out, first, last)


@compiled()
def target(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    slope: np.ndarray,
    steps: np.ndarray,
    changes: np.ndarray,
    own: float,
    step_weights: np.ndarray,
    change_weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write what the quasi-Newton step aims at."""
    given = (U, slope, steps, changes, own, step_weights, change_weights, out)
    function, kept = handed_over(_target, given)
    do_parts(shared, threads, function, kept, bounds)


@compiled()
def _prepare(given: Any, part: int, first: int, last: int) -> None:
    U, product, gram, vectors, dual, weight, basis, fixed, pull, room, moments = given
    moments[part] = prepare_rows(
        U, product, gram, vectors, dual, weight, basis, fixed, pull, room[part], first, last
    )


@compiled()
def _relax(given: Any, part: int, first: int, last: int) -> None:
    U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, room, moments = given
    moments[part] = relax_rows(
        U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, room[part],
        first, last,
    )  # fmt: skip


@compiled()
def gauss_newton(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    turn: np.ndarray,
    inverse: np.ndarray,
    vectors: np.ndarray,
    values: np.ndarray,
    weight: float,
    shift: float,
    relaxation: float,
    dual: np.ndarray,
    Z: np.ndarray,
    basis: np.ndarray,
    fixed: np.ndarray,
    pull: np.ndarray,
    room: np.ndarray,
    steps: int,
) -> np.ndarray:
    """Do ``steps`` steps of alternating directions from Z = U, see :func:`relax_rows`.

    ``basis``, ``fixed``, ``pull`` and ``room``, two blocks of rows for each part, are written to.
    Return the last moment, basis^T pull.
    """
    moments = np.zeros((len(bounds) - 1, *gram.shape))
    coupling = np.empty_like(gram)
    given = (U, product, gram, turn, dual, weight, basis, fixed, pull, room, moments)
    function, kept = handed_over(_prepare, given)
    do_parts(shared, threads, function, kept, bounds)
    relaxed = (U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, room, moments)
    function, kept = handed_over(_relax, relaxed)
    for _ in range(steps):
        coupling[:] = couple(_gathered(shared, threads, moments), vectors, values, shift)
        do_parts(shared, threads, function, kept, bounds)
    # returned, so that neither is freed while helpers still write to it
    return _gathered(shared, threads, moments) + 0.0 * coupling


@compiled()
def _csr(given: Any, part: int, first: int, last: int) -> None:
    indptr, indices, data, V, out = given
    csr_rows(indptr, indices, data, V, out, first, last)


@compiled()
def csr(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write X @ V for a sparse X."""
    function, given = handed_over(_csr, (indptr, indices, data, V, out))
    do_parts(shared, threads, function, given, bounds)


@compiled()
def _dense(given: Any, part: int, first: int, last: int) -> None:
    X, V, out = given
    packed_dense_rows(X, V, out, first, last)


@compiled()
def dense(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    X: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write X @ V for a C-ordered X."""
    function, given = handed_over(_dense, (X, V, out))
    do_parts(shared, threads, function, given, bounds)

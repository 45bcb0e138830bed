"""Parts of X: what there is to know of one, and its two products.

A tile holds rows ``a..b`` and columns ``c..d`` of X on or above the diagonal. Its entries count
for their mirror image too, so a product needs the upper triangle only.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled


@compiled(inline="always")
def _mixed(bits: np.uint64, i: np.uint64, j: np.uint64) -> np.uint64:
    """Return 64 bits that depend on an entry and its position (splitmix64)."""
    z = bits + i * np.uint64(0x9E3779B97F4A7C15) + j * np.uint64(0xD1B54A32D192ED03)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(fastmath=REORDER)
def dense_facts(
    block: np.ndarray,
    bits: np.ndarray,
    top: int,
    left: int,
    begin: int,
    end: int,
) -> tuple[bool, float, float, np.uint64]:
    """Return whether entries are finite and >= 0, the largest, the sum of squares, a fingerprint.

    Rows ``begin..end`` of a tile whose first entry is X[top, left]; entries below the diagonal
    are passed over and those above it are squared twice. The fingerprint is a sum modulo 2^64 over
    the nonzero entries, so it does not depend on how X is cut, nor on zeros being stored.
    """
    valid, largest, total, content = True, 0.0, 0.0, np.uint64(0)
    most = np.finfo(block.dtype).max
    for i in range(begin, end):
        first = max(0, top + i - left)
        high, squares, hashed, good = 0.0, 0.0, np.uint64(0), True
        for j in range(first, block.shape[1]):
            x = block[i, j]
            good = good and (x >= 0) and (x <= most)
            high = max(high, np.float64(x))
            squares += np.float64(x) ** 2
            mixed = _mixed(np.uint64(bits[i, j]), np.uint64(top + i), np.uint64(left + j))
            hashed += mixed if x != 0 else np.uint64(0)
        squares *= 2.0
        if top + i >= left and first < block.shape[1]:
            squares -= np.float64(block[i, first]) ** 2  # the diagonal has no mirror image
        valid = valid and good
        largest = max(largest, high)
        total += squares
        content += hashed
    return valid, largest, total, content


@compiled()
def csr_facts(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    bits: np.ndarray,
    top: int,
    left: int,
    begin: int,
    end: int,
) -> tuple[bool, float, float, np.uint64]:
    """Return what :func:`dense_facts` returns, for a tile in CSR form."""
    valid, largest, total, content = True, 0.0, 0.0, np.uint64(0)
    most = np.finfo(data.dtype).max
    for i in range(begin, end):
        squares = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            row, column, x = top + i, left + np.int64(indices[p]), data[p]
            valid = valid and (x >= 0) and (x <= most)
            if column < row or x == 0:
                continue
            largest = max(largest, np.float64(x))
            square = np.float64(x) ** 2
            squares += square if column == row else 2.0 * square
            content += _mixed(np.uint64(bits[p]), np.uint64(row), np.uint64(column))
        total += squares
    return valid, largest, total, content


@compiled()
def csr_add(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Add rows ``begin..end`` of ``tile @ V`` to ``out``."""
    for i in range(begin, end):
        row = out[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, other = data[p], V[indices[p]]
            for c in range(V.shape[1]):
                row[c] += x * other[c]


@compiled()
def csr_add_mirror(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Add rows ``begin..end`` of ``tile^T @ V`` to ``out``, in the order of the tile's rows.

    Every thread goes through all indices and adds what falls into its own rows: each row is summed
    in one order, however many threads there are.
    """
    for i in range(len(indptr) - 1):
        other = V[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if begin <= j < end:
                x, row = data[p], out[j]
                for c in range(V.shape[1]):
                    row[c] += x * other[c]

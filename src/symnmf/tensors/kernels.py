"""Products of a sparse symmetric tensor of order 3 or 4 with factors, row by row.

Row i of T_(1)(W kr V) is the sum, over the stored tuples that hold i, of the value times the rows
of the factors at the other indices. So the tensor is kept as one list of tuples per row: a row is
summed in the same order whatever range it is computed in, no two threads write to one row, and the
result is the same to the last bit for every number of threads.

``others[e]`` are the indices beside i of entry e, and ``weights[e]`` is the value times the number
of different orders these indices come in: 2 for (j, k), 1 for (j, j).
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled(fastmath={"contract", "nsz"})
def power_rows(
    indptr: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    U: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Write rows ``begin..end`` of T_(1)(U kr ... kr U) to ``out``."""
    r = U.shape[1]
    triples = others.shape[1] == 2
    for i in range(begin, end):
        row = out[i]
        row[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            x = weights[e]
            first, second = U[others[e, 0]], U[others[e, 1]]
            if triples:
                for c in range(r):
                    row[c] += x * first[c] * second[c]
            else:
                third = U[others[e, 2]]
                for c in range(r):
                    row[c] += x * first[c] * second[c] * third[c]


@compiled(fastmath={"contract", "nsz"})
def mixed_rows(
    indptr: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Write rows ``begin..end`` of T_(1)(A kr B) or, of order 4, of T_(1)(A kr B kr C) to ``out``.

    T is symmetric, so each entry takes the mean over the orders of its indices.
    """
    r = A.shape[1]
    triples = others.shape[1] == 2
    half, sixth = A.dtype.type(0.5), A.dtype.type(1.0 / 6.0)
    for i in range(begin, end):
        row = out[i]
        row[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            j, k = others[e, 0], others[e, 1]
            a, b, p, q = A[j], B[k], A[k], B[j]
            if triples:
                x = half * weights[e]
                for c in range(r):
                    row[c] += x * (a[c] * b[c] + p[c] * q[c])
            else:
                m = others[e, 2]
                x = sixth * weights[e]
                s, t = A[m], B[m]
                u, v, w = C[j], C[k], C[m]
                for c in range(r):
                    row[c] += x * (
                        a[c] * (b[c] * w[c] + t[c] * v[c])
                        + p[c] * (q[c] * w[c] + t[c] * u[c])
                        + s[c] * (q[c] * v[c] + b[c] * u[c])
                    )


@compiled()
def list_triangles(indptr: np.ndarray, indices: np.ndarray, out: np.ndarray) -> int:
    """Write the triangles of a graph to ``out`` as rows of three nodes; return how many there are.

    The graph lists for each node only the neighbours behind it in some order, sorted; an ``out``
    without rows is a request to count. Two sorted lists are merged for each edge.
    """
    found = 0
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            a, b = indptr[i], indptr[j]
            while a < indptr[i + 1] and b < indptr[j + 1]:
                if indices[a] < indices[b]:
                    a += 1
                elif indices[a] > indices[b]:
                    b += 1
                else:
                    if len(out):
                        out[found, 0], out[found, 1], out[found, 2] = i, j, indices[a]
                    found += 1
                    a += 1
                    b += 1
    return found

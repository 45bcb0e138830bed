"""What kernels do to arrays, in few instructions: flat views, and products by BLAS.

NumPy's slices, reshapes and ``np.dot`` are compiled anew for every kernel and every layout, and a
first call waits for that: with them a kernel took two to four times as long to compile. All arrays
here are C-ordered; others are refused while the kernel is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

__all__ = ["CACHED_BYTES", "CACHE_LINE", "PREFETCH_AHEAD", "multiply", "prefetch", "span"]

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
ADDRESS = I8.as_pointer()

# Entries between the prefetch of a row of a factor and its use; 8 and 32 measured nearly the same.
PREFETCH_AHEAD = 16
CACHE_LINE = 64
#: A factor of up to so many bytes is in cache already, and hints would only cost.
CACHED_BYTES = 1 << 19

#: numba's name for BLAS: kind, transposed a and b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc;
#: in Fortran's order.
GEMM = "numba_xxgemm"
GEMM_TYPE = ir.FunctionType(
    ir.IntType(32),
    [I8, I8, I8, I64, I64, I64, ADDRESS, ADDRESS, I64, ADDRESS, I64, ADDRESS, ADDRESS, I64],
)


def start_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the address of the first entry of an array."""
    return context.make_array(kind)(context, builder, array).data


def check_order(*arrays: Any) -> None:
    """Refuse arrays whose entries do not follow each other."""
    for array in arrays:
        if not (isinstance(array, types.Array) and array.layout == "C"):
            raise TypingError(f"a kernel needs C-ordered arrays, not {array}")


def ask_for(builder: Any, place: Any) -> None:
    """Emit the hint that the cache line at an address will be read: harmless whatever it is."""
    kind = ir.FunctionType(ir.VoidType(), [ADDRESS, I32, I32, I32])
    hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # a read, kept in all caches, data
    builder.call(hint, [builder.bitcast(place, ADDRESS), I32(0), I32(3), I32(1)])


@intrinsic
def prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
    """Ask for the cache line of entry ``offset`` of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = start_of(context, builder, signature.args[0], arguments[0])
        ask_for(builder, builder.gep(start, [arguments[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def span(typing_context: Any, array: Any, first: Any, count: Any) -> Any:
    """Return ``count`` entries from number ``first`` on, as a flat array without an owner.

    They are entries of ``array``, so it has to stay alive for as long as they are used.
    """
    # 12 ms, for those who compile only
    from numba.np.arrayobj import populate_array

    check_order(array)
    flat = types.Array(array.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, begin, length = arguments
        found = context.make_array(flat)(context, builder)
        size = I64(context.get_abi_sizeof(context.get_data_type(flat.dtype)))
        data = builder.gep(start_of(context, builder, signature.args[0], whole), [begin])
        populate_array(
            found, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None
        )
        return found._getvalue()

    return flat(array, types.int64, types.int64), generate


@intrinsic(prefer_literal=True)
def multiply(
    typing_context: Any, orders: Any, m: Any, n: Any, k: Any, A: Any, B: Any, C: Any
) -> Any:
    """Write an m x n product of two matrices to C; ``orders`` says which is transposed.

    "nn" for A B, "tn" for A^T B, "nt" for A B^T; "nn+" adds A B to what C holds. All three are
    dense and begin where the arrays do.
    """
    check_order(A, B, C)
    if not A.dtype == B.dtype == C.dtype:
        raise TypingError(f"factors and product differ in type: {A}, {B}, {C}")
    left, right = (char == "t" for char in orders.literal_value[:2])
    kept = 1.0 if orders.literal_value.endswith("+") else 0.0
    single = A.dtype == types.float32
    real = ir.FloatType() if single else ir.DoubleType()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, rows, columns, inner, *_ = arguments

        def address(number: int) -> Any:
            data = start_of(context, builder, signature.args[number], arguments[number])
            return builder.bitcast(data, ADDRESS)

        def constant(value: float) -> Any:
            place = cgutils.alloca_once_value(builder, ir.Constant(real, value))
            return builder.bitcast(place, ADDRESS)

        # what is C-ordered is the transpose of what Fortran reads: C^T = B^T A^T
        gemm = cgutils.get_or_insert_function(builder.module, GEMM_TYPE, GEMM)
        letters = [I8(ord(letter)) for letter in "sdnt"]
        builder.call(
            gemm,
            [
                letters[not single], letters[2 + right], letters[2 + left],
                columns, rows, inner, constant(1.0),
                address(5), inner if right else columns,
                address(4), rows if left else inner,
                constant(kept), address(6), columns,
            ],
        )  # fmt: skip
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(orders, i64, i64, i64, A, B, C), generate

"""What kernels do to arrays, in few instructions: flat views and hints.

NumPy's slices and reshapes are compiled anew for every kernel and every layout, and a first call
waits for that: with them a kernel took two to four times as long to compile. All arrays here are
C-ordered; others are refused while the kernel is compiled.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic


def _host_tile() -> tuple[int, int]:
    """Bytes per vector register, and how many vectors wide a tile of six rows may be.

    ``6 * width`` sums, ``width`` vectors of ``V`` and one entry of ``X`` have to fit into the
    register file: 29 of the 32 registers of AVX-512 and ARM, 15 of the 16 of older x86. A wrong
    guess costs speed only, since LLVM splits vectors the processor lacks.
    """
    if platform.machine().lower() in {"arm64", "aarch64"}:
        return 16, 4
    features = llvmlite.binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 4
    return (32, 2) if features.get("avx2") else (16, 2)


# Compiled into the kernels; numba's disk cache is keyed by the same processor features.
VECTOR_BYTES, TILE_VECTORS = _host_tile()

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
ADDRESS = I8.as_pointer()

# Entries between the prefetch of a row of a factor and its use; 8 and 32 measured nearly the same.
PREFETCH_AHEAD = 16
CACHE_LINE = 64
#: A factor of up to so many bytes is in cache already, and hints would only cost.
CACHED_BYTES = 1 << 19


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


class Vectors:
    """Emits what a row of a thin matrix takes part in, a few registers of so many bytes at a time.

    They begin at entry ``left`` of the row, but the last of them at entry ``last``, so that none
    reaches past the end of a row; entries that are in two vectors are written twice.
    """

    def __init__(
        self, context: Any, builder: Any, kind: Any, size: int, count: int, left: Any, last: Any
    ) -> None:
        self.builder, self.itemsize = builder, kind.bitwidth // 8
        lanes = size // self.itemsize
        self.type = ir.VectorType(context.get_value_type(kind), lanes)
        self.every_lane = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        self.zeros = [ir.Constant(self.type, None)] * count
        offsets = [builder.add(left, I64(k * lanes)) for k in range(count - 1)]
        self.offsets = [*offsets, last]
        self.fused = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.type, [self.type] * 3),
            f"llvm.fmuladd.v{lanes}f{kind.bitwidth}",
        )

    def places(self, row: Any) -> list[Any]:
        """Return where the vectors of a row begin."""
        starts = (self.builder.gep(row, [offset]) for offset in self.offsets)
        return [self.builder.bitcast(start, self.type.as_pointer()) for start in starts]

    def load(self, row: Any) -> list[Any]:
        return [self.builder.load(place, align=self.itemsize) for place in self.places(row)]

    def store(self, values: list[Any], row: Any) -> None:
        for value, place in zip(values, self.places(row), strict=True):
            self.builder.store(value, place, align=self.itemsize)

    def added(self, entry: Any, row: list[Any], sums: list[Any]) -> list[Any]:
        """Return the sums with an entry times a row added to them."""
        undefined = ir.Constant(self.type, ir.Undefined)
        x = self.builder.insert_element(undefined, self.builder.load(entry), I32(0))
        x = self.builder.shuffle_vector(x, undefined, self.every_lane)
        return [self.builder.call(self.fused, [x, v, s]) for v, s in zip(row, sums, strict=True)]

    def loop(
        self, begin: Any, stop: Any, step: int, sums: list[Any], body: Callable[..., list[Any]]
    ) -> list[Any]:
        """Emit a loop that makes new sums of a number and the old ones; return the last."""
        builder, before = self.builder, self.builder.block
        head, inside, after = map(builder.append_basic_block, ["head", "inside", "after"])
        builder.branch(head)
        builder.position_at_end(head)
        k, kept = builder.phi(I64), [builder.phi(self.type) for _ in sums]
        builder.cbranch(builder.icmp_signed("<", k, stop), inside, after)
        builder.position_at_end(inside)
        updated = body(k, kept)
        following = builder.add(k, I64(step))
        for phi, first, later in zip(
            [k, *kept], [begin, *sums], [following, *updated], strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(later, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return kept


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

"""Threads that stay in compiled code from one pass over rows to the next.

A pass over a factor takes tens of microseconds on a few thousand rows. Handing parts of it to a
pool of Python threads takes as long for each thread, since every one of them needs the interpreter
to begin and to report: on 16 threads that is a millisecond a pass. Here the interpreter has no part
in it. Helpers wait in a compiled loop for a ticket, which is the number of a pass and of its parts.
Each thread, the caller too, begins with parts of its own, whose rows are in the cache of its core
since the last pass, and then takes what others have not begun. So nobody waits for a helper that
the system has put aside. A helper that finds no ticket for a while goes to sleep and is woken for
the next pass.

A pass is a compiled function of a tuple of arguments, the number of the part and its first and last
row. Sums are kept by part and added up in the order of the parts, so that they do not depend on who
did what.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import mmap
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from symnmf.kernels.compiling import compiled
from symnmf.parallel import MOST_PARTS

__all__ = ["do_parts", "handed_over", "together"]

# places in the shared array, each on a cache line of its own; the bounds of the parts follow, and
# the last pass in which each part was taken
LINE = 8
TICKET, DONE, BUSY, FUNCTION, ARGUMENTS, FAILED, THREADS = (LINE * number for number in range(7))
BOUNDS = LINE * 7
TAKEN = BOUNDS + LINE * (MOST_PARTS // LINE + 1)
PLACES = TAKEN + MOST_PARTS

# a ticket is the number of the pass and how many parts it has
PASS, MASK = 16, 0xFFFF

#: Looks for a ticket after which a helper goes to sleep: some 1.5 ms on an idle core,
#: longer than the eigenvalues of a Gram matrix take, since to wake helpers takes long.
PATIENCE = 100_000
#: Looks after which whoever waits lets other threads have the core.
RESTLESS = 200

#: Address space that OpenBLAS asks for once a thread more is in it than ever before. It asks again
#: and again if there is none.
BLAS_BUFFER = 2**27

try:
    import resource
except ImportError:  # not on Windows
    LIMITS: tuple[int, ...] = ()
else:
    LIMITS = tuple(getattr(resource, f"RLIMIT_{name}") for name in ("AS", "DATA"))

T = TypeVar("T")

I64 = ir.IntType(64)
#: What a part is called as: arguments, part, first and last row. It returns whether it failed.
PART = ir.FunctionType(I64, [I64] * 4)


@intrinsic
def handed_over(typing_context: Any, function: Any, arguments: Any) -> Any:
    """Return the address of a compiled function of a part, and that of its arguments.

    The arguments are kept on the stack of the caller, and so must be used before it returns.
    Arrays lose their owner there: threads that count references to the same array, as every view of
    it does, wait for each other. On 16 cores a sparse product took five times as long with them.
    """
    inner = function.get_call_type(typing_context, (arguments, *[types.int64] * 3), {})

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = function.dispatcher.get_compile_result(inner)
        context.active_code_library.add_linking_library(found.library)
        callee = context.declare_function(builder.module, found.fndesc)
        kept = cgutils.alloca_once_value(builder, _borrowed(context, builder, arguments, values[1]))
        name = f"{builder.function.name}.part.{len(builder.module.functions)}"
        part = ir.Function(builder.module, PART, name)
        part.linkage = "internal"
        inside = ir.IRBuilder(part.append_basic_block())
        given = inside.load(inside.inttoptr(part.args[0], kept.type))
        status, _ = context.call_conv.call_function(
            inside, callee, found.fndesc.restype, found.fndesc.argtypes, [given, *part.args[1:]]
        )
        inside.ret(inside.zext(status.is_error, I64))
        addresses = [builder.ptrtoint(part, I64), builder.ptrtoint(kept, I64)]
        return context.make_tuple(builder, signature.return_type, addresses)

    return types.UniTuple(types.int64, 2)(function, arguments), generate


def _borrowed(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    """Return a tuple in which arrays have no owner, so that nobody counts references to them."""
    for place, one in enumerate(kind.types):
        if isinstance(one, types.Array):
            given = builder.extract_value(arguments, place)
            array = context.make_array(one)(context, builder, value=given)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            arguments = builder.insert_value(arguments, array._getvalue(), place)
    return arguments


@intrinsic
def _call(
    typing_context: Any, function: Any, arguments: Any, part: Any, first: Any, last: Any
) -> Any:
    """Call what :func:`handed_over` gave the address of; return 1 if it failed, else 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.call(builder.inttoptr(values[0], PART.as_pointer()), values[1:])

    return types.int64(*[types.int64] * 5), generate


def _place(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    start = context.make_array(signature.args[0])(context, builder, values[0]).data
    return builder.gep(start, [values[1]])


@intrinsic
def _load(typing_context: Any, shared: Any, place: Any) -> Any:
    """Read a number that other threads write."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, values), "acquire", 8)

    return types.int64(shared, types.int64), generate


@intrinsic
def _store(typing_context: Any, shared: Any, place: Any, value: Any) -> Any:
    """Write a number that other threads read."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = _place(context, builder, signature, values)
        builder.store_atomic(values[2], where, "release", 8)
        return context.get_dummy_value()

    return types.void(shared, types.int64, types.int64), generate


@intrinsic
def _add(typing_context: Any, shared: Any, place: Any, value: Any) -> Any:
    """Add to a number that other threads add to as well."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = _place(context, builder, signature, values)
        return builder.atomic_rmw("add", where, values[2], "acq_rel")

    return types.int64(shared, types.int64, types.int64), generate


@intrinsic
def _swap(typing_context: Any, shared: Any, place: Any, old: Any, new: Any) -> Any:
    """Write a number unless another thread has changed the old one; return whether it was so."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        where = _place(context, builder, signature, values)
        found = builder.cmpxchg(where, values[2], values[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(shared, *[types.int64] * 3), generate


_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_YIELDS = bool(llvmlite.binding.address_of_symbol("sched_yield"))


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Tell the core that this thread waits."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if _X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _let_others_run(typing_context: Any) -> Any:
    """Let the system give the core to another thread."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if _YIELDS:
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@compiled(inner=True)
def _do_own_and_others(shared: np.ndarray, ticket: int, thread: int) -> None:
    """Do parts of a pass until all are taken, from those of this thread on."""
    number, parts = ticket >> PASS, ticket & MASK
    function, arguments = _load(shared, FUNCTION), _load(shared, ARGUMENTS)
    own = thread * parts // max(_load(shared, THREADS), 1)
    for offset in range(parts):
        part = (own + offset) % parts
        first, last = _load(shared, BOUNDS + part), _load(shared, BOUNDS + part + 1)
        before = _load(shared, TAKEN + part)
        # while a part is left the pass is not over, so what was read belongs to it
        if before < number and _swap(shared, TAKEN + part, before, number):
            if _call(function, arguments, part, first, last):
                _store(shared, FAILED, 1)
            _add(shared, DONE, 1)


@compiled()
def serve(shared: np.ndarray, thread: int, patience: int) -> None:
    """Do parts of passes until there has been none for a while."""
    idle, done = 0, 0
    while idle < patience:
        ticket = _load(shared, TICKET)
        if ticket != done:
            _do_own_and_others(shared, ticket, thread)
            idle, done = 0, ticket
            continue
        idle += 1
        _pause()
        if idle % RESTLESS == 0:
            _let_others_run()


@compiled()
def do_parts(
    shared: np.ndarray, threads: int, function: int, arguments: int, bounds: np.ndarray
) -> None:
    """Do all parts of a pass, with whoever helps; alone where the helpers are another caller's.

    All that a kernel raises is that it got no memory, and so that is what is raised here.
    """
    parts, failed = len(bounds) - 1, 0
    if parts == 1 or not _swap(shared, BUSY, 0, 1):
        for part in range(parts):
            failed |= _call(function, arguments, part, bounds[part], bounds[part + 1])
        if failed:
            raise MemoryError("no memory for a pass over rows")
        return
    for number in range(parts + 1):
        _store(shared, BOUNDS + number, bounds[number])
    _store(shared, FUNCTION, function)
    _store(shared, ARGUMENTS, arguments)
    _store(shared, THREADS, threads)
    _store(shared, DONE, 0)
    _store(shared, FAILED, 0)
    ticket = (((_load(shared, TICKET) >> PASS) + 1) << PASS) | parts
    _store(shared, TICKET, ticket)
    _do_own_and_others(shared, ticket, 0)
    idle = 0
    while _load(shared, DONE) < parts:
        idle += 1
        _pause()
        if idle % RESTLESS == 0:
            _let_others_run()
    failed = _load(shared, FAILED)
    _store(shared, BUSY, 0)
    if failed:
        raise MemoryError("no memory for a pass over rows")


class _Helpers:
    """The helpers of this process: threads that are started when first needed and then kept."""

    def __init__(self) -> None:
        self._begin()
        atexit.register(self._rest)
        if hasattr(os, "register_at_fork"):  # a child has the array but not the threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._shared = np.zeros(PLACES, np.int64)
        self._starting = threading.Lock()
        self._alarms: list[Any] = []
        self._asleep: set[int] = set()
        self._patience = PATIENCE

    def at_hand(self, count: int) -> np.ndarray:
        """Return the array that passes are announced in, with so many helpers awake."""
        if len(self._alarms) < count:
            self._start(count)
        while self._asleep:
            try:
                number = min(self._asleep)
                if number >= count:
                    break
                self._asleep.remove(number)
            except (KeyError, ValueError, RuntimeError):  # another caller was quicker
                continue
            self._alarms[number].release()
        return self._shared

    def _start(self, count: int) -> None:
        with self._starting:
            while len(self._alarms) < count:
                alarm = _thread.allocate_lock()
                alarm.acquire()
                try:
                    _thread.start_new_thread(self._help, (len(self._alarms), alarm, self._shared))
                except (RuntimeError, MemoryError):  # the system has none: the caller does more
                    return
                self._alarms.append(alarm)

    def _help(self, number: int, alarm: Any, shared: np.ndarray) -> None:
        with contextlib.suppress(MemoryError):
            while self._patience:
                serve(shared, number + 1, self._patience)
                self._asleep.add(number)
                alarm.acquire()

    def _rest(self) -> None:
        """Send all to sleep, before the interpreter frees what they run."""
        self._patience = 0
        end = time.monotonic() + 0.1
        while len(self._asleep) < len(self._alarms) and time.monotonic() < end:
            time.sleep(0.001)


_helpers = _Helpers()


def _too_little_for(helpers: int) -> bool:
    """Whether a limit leaves too little address space for BLAS in so many threads more."""
    if all(resource.getrlimit(limit)[0] == resource.RLIM_INFINITY for limit in LIMITS):
        return False
    try:
        mmap.mmap(-1, helpers * BLAS_BUFFER, flags=mmap.MAP_PRIVATE).close()
    except OSError:
        return True
    return False


def together(work: Callable[..., T], threads: int, bounds: np.ndarray, *given: Any) -> T:
    """Return ``work(shared, threads, bounds, *given)``, a pass that so many threads share.

    One thread does all of it if a limit leaves too little memory for BLAS in the others.
    """
    count = min(threads, len(bounds) - 1)
    if count > 1 and _too_little_for(count - 1):
        count, bounds = 1, bounds[[0, -1]]
    return work(_helpers.at_hand(count - 1), count, bounds, *given)

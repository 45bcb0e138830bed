"""One way to compile a kernel, which survives an install folder nobody may write to."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.ccallback import CFunc

from symnmf.errors import InputError, warn

#: What lets sums run in SIMD lanes, for ``fastmath``.
REORDER = {"reassoc", "contract", "nsz"}
#: Rows of a factor that stay in cache through all that a kernel does to them.
BLOCK = 256


@functools.cache
def sources() -> str:
    """Return a digest of the source of all kernels."""
    digest = hashlib.blake2b(digest_size=16)
    with contextlib.suppress(OSError):  # in an archive, whose name has the version
        for path in sorted(Path(__file__).parent.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class ForgivingCache(FunctionCache):
    """numba's cache of one kernel, whose damage costs time and nothing else.

    A file that was cut short makes numba raise whatever unpickling stumbles over, and a full disk
    stops the compilation that had just succeeded. Either way the kernel is compiled again.

    numba looks at the file of a kernel only. But kernels have others compiled into them, so here
    an entry is for the sources of all kernels.
    """

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel from the disk; None if there is none that can be used."""
        try:
            return super().load_overload((signature, sources()), target)
        except Exception as error:
            with contextlib.suppress(Exception):
                self.flush()  # an index that cannot be read could not be added to either
            _warn_of_cache(self.cache_path, error)
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep a compiled kernel, where that works."""
        try:
            super().save_overload((signature, sources()), data)
        except Exception as error:
            _warn_of_cache(self.cache_path, error)


_folders_warned_of: set[str] = set()


def _warn_of_cache(folder: str, error: Exception) -> None:
    if folder in _folders_warned_of:
        return
    _folders_warned_of.add(folder)
    reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    warn(
        f"numba's cache in {folder!r} cannot be used ({reason[:200]}), so kernels are compiled "
        f"again; remove its files, or name another folder in NUMBA_CACHE_DIR.",
        RuntimeWarning,
    )


def _cache_of(function: Callable[..., Any]) -> Any:
    try:
        return ForgivingCache(function)
    except (RuntimeError, OSError):  # numba: "cannot cache function ...: no locator available"
        return NullCache()


def compiled(*, inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` without the GIL, cached on disk wherever numba finds a writable folder.

    An ``inner`` function is called by kernels alone. What makes it callable from Python, a seventh
    of the time to compile :func:`symnmf.kernels.coordinate.sweep_csr`, is left out.

    Threads come from :mod:`symnmf.parallel`, never from numba: its barriers wait for threads that
    the system has put aside, and what waits spins beside those that work.
    """
    settings = {
        "nogil": True,
        "error_model": "numpy",
        # nobody calls a kernel from C, and that wrapper takes a tenth of the time to compile
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": inner,
        **options,
    }

    if numba.config.DISABLE_JIT:
        raise InputError(
            "NUMBA_DISABLE_JIT is set, but kernels of symnmf call each other by address, which "
            "Python cannot do; unset it."
        )

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**settings)(function)
        kernel._cache = _cache_of(function)
        return kernel

    return decorate


def shared(function: Callable[..., None], arguments: tuple[Any, ...], symbol: str) -> None:
    """Compile a function once, for kernels to call by this symbol instead of having it in them."""
    own: Any = CFunc(function, (arguments, numba.void), {}, {"error_model": "numpy"})
    own._cache = _cache_of(function)
    own.compile()
    llvmlite.binding.add_symbol(symbol, own.address)

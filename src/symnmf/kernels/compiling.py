"""One way to compile a kernel, which survives an install folder nobody may write to."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core.caching import FunctionCache, NullCache

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


class ForgivingCache:
    """numba's cache of one kernel, whose damage costs time and nothing else.

    A file that was cut short makes numba raise whatever unpickling stumbles over, and a full disk
    stops the compilation that had just succeeded. Either way the kernel is compiled again. The
    cache is opened when the kernel is first used: numba tries whether it may write there.

    numba looks at the file of a kernel only. But kernels have others compiled into them and call
    them by their addresses, so here an entry is for the sources of all kernels.
    """

    warned: ClassVar[bool] = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @cached_property
    def _cache(self) -> Any:
        try:
            return FunctionCache(self._function)
        except (RuntimeError, OSError):  # numba: "cannot cache function ...: no locator available"
            return NullCache()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled kernel from the disk; None if there is none that can be used."""
        try:
            return self._cache.load_overload((signature, sources()), target)
        except Exception as error:
            with contextlib.suppress(Exception):
                self._cache.flush()  # an index that cannot be read could not be added to either
            self._say(error)
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep a compiled kernel, where that works."""
        try:
            self._cache.save_overload((signature, sources()), data)
        except Exception as error:
            self._say(error)

    def _say(self, error: Exception) -> None:
        if ForgivingCache.warned:
            return
        ForgivingCache.warned = True
        said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        warn(
            f"numba's cache in {self._cache.cache_path!r} cannot be used ({said[:200]}), so "
            f"kernels are compiled again; remove its files, or name another folder in "
            f"NUMBA_CACHE_DIR.",
            RuntimeWarning,
        )


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
            "NUMBA_DISABLE_JIT is set, but kernels of symnmf call BLAS and each other by address, "
            "which Python cannot do; unset it."
        )

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**settings)(function)
        kernel._cache = ForgivingCache(function)
        return kernel

    return decorate

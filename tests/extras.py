"""What tests do where an extra of the library is not installed: they skip, and say which."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from types import ModuleType
from typing import Any

import pytest

#: Modules of each extra; ``test`` holds what only tests need.
EXTRAS = {
    "plots": ("matplotlib",),
    "pandas": ("pandas",),
    "tables": ("pyarrow",),
    "graphs": ("networkx", "igraph"),
    "approximate": ("pynndescent",),
    "blocks": ("zarr", "h5py"),
    "distributed": ("dask", "distributed"),
    "gpu": ("torch",),
    "progress": ("tqdm",),
    "anndata": ("anndata",),
    "test": ("array_api_strict", "playwright", "polars"),
}
EXTRA_OF = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def absent(extra: str) -> bool:
    return any(importlib.util.find_spec(module) is None for module in EXTRAS[extra])


def skip(module: str) -> None:
    extra = EXTRA_OF[module.partition(".")[0]]
    pytest.skip(f"{module} is absent: pip install 'symnmf[{extra}]'", allow_module_level=True)


class Absent:
    """Stands for a module that is not there; whoever uses it skips."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if "PYTEST_CURRENT_TEST" not in os.environ:  # pytest looks at every name of a module
            raise AttributeError(attribute)
        return skip(self._name)


def optional(name: str) -> ModuleType | Absent:
    """Return a module, or what skips the test that first uses it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return Absent(name)


def reason_to_skip(error: BaseException) -> str | None:
    """Return why a test that ended in ``error`` could not be run here; None for a failure.

    A missing module is a reason where the test itself asked for it. Where the library did, a
    message on the way must name an extra that is not installed.
    """
    step: BaseException | None = error
    while step is not None:
        named = re.search(r"pip install 'symnmf\[(\w+)", str(step))
        if named and named[1] in EXTRAS and absent(named[1]):
            return f"needs pip install 'symnmf[{named[1]}]'"
        step = step.__context__
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    by_a_test = place is not None and "tests" in place.tb_frame.f_code.co_filename.split("/")
    missing = error.name or "" if isinstance(error, ImportError) else ""
    if by_a_test and missing.partition(".")[0] in EXTRA_OF:
        return f"{missing} is absent"
    return None

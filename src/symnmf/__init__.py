"""Symmetric nonnegative matrix factorization: X ~ U U^T with U >= 0.

Importing this package imports nothing heavy; each name below loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symnmf import certificate, errors, matrices, penalty, solvers
    from symnmf.certificate import Certificate
    from symnmf.errors import InputError
    from symnmf.result import History, Result
    from symnmf.solve import Snapshot, factorize

_HOMES = {
    "Certificate": "symnmf.certificate",
    "History": "symnmf.result",
    "InputError": "symnmf.errors",
    "Result": "symnmf.result",
    "Snapshot": "symnmf.solve",
    "factorize": "symnmf.solve",
}
_MODULES = ("certificate", "errors", "matrices", "penalty", "solvers")

__all__ = [
    "Certificate",
    "History",
    "InputError",
    "Result",
    "Snapshot",
    "certificate",
    "errors",
    "factorize",
    "matrices",
    "penalty",
    "solvers",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"symnmf.{name}")
    raise AttributeError(f"module 'symnmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""Symmetric nonnegative matrix factorization: X ~ U U^T with U >= 0.

Importing this package imports nothing heavy; each name below loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symnmf import (
        certificate,
        datasets,
        errors,
        experiments,
        graphs,
        matrices,
        metrics,
        penalty,
        plots,
        readers,
        report,
        solvers,
    )
    from symnmf.certificate import Certificate
    from symnmf.community import communities
    from symnmf.comparison import Comparison, compare
    from symnmf.errors import InputError
    from symnmf.estimator import SymNMF
    from symnmf.result import History, Result
    from symnmf.solve import Snapshot, factorize

_HOMES = {
    "Certificate": "symnmf.certificate",
    "Comparison": "symnmf.comparison",
    "History": "symnmf.result",
    "InputError": "symnmf.errors",
    "Result": "symnmf.result",
    "Snapshot": "symnmf.solve",
    "SymNMF": "symnmf.estimator",
    "communities": "symnmf.community",
    "compare": "symnmf.comparison",
    "factorize": "symnmf.solve",
}
_MODULES = (
    "certificate",
    "datasets",
    "errors",
    "experiments",
    "graphs",
    "matrices",
    "metrics",
    "penalty",
    "plots",
    "readers",
    "report",
    "solvers",
)

__all__ = [
    "Certificate",
    "Comparison",
    "History",
    "InputError",
    "Result",
    "Snapshot",
    "SymNMF",
    "certificate",
    "communities",
    "compare",
    "datasets",
    "errors",
    "experiments",
    "factorize",
    "graphs",
    "matrices",
    "metrics",
    "penalty",
    "plots",
    "readers",
    "report",
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

"""Symmetric nonnegative matrix factorization: X ~ U U^T with U >= 0.

Importing this package imports nothing heavy; each name below loads what it needs on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symnmf import (
        coupling,
        datasets,
        extending,
        graphs,
        io,
        metrics,
        plots,
        report,
        scanpy,
        solvers,
        storage,
        tensors,
    )
    from symnmf.bounds import Bound
    from symnmf.calls import Seconds
    from symnmf.cluster.judgement import RankSelection
    from symnmf.cluster.quality import Quality, QualityWarning, modularity_scorer
    from symnmf.cluster.tree import Hierarchy, hierarchy
    from symnmf.columns import Consensus, consensus
    from symnmf.community import Communities, communities
    from symnmf.comparison import Comparison, compare
    from symnmf.errors import InputError
    from symnmf.estimator import SymNMF
    from symnmf.placing import top_features
    from symnmf.run.certificate import Certificate
    from symnmf.run.factorizing import factorize
    from symnmf.run.problem import Problem
    from symnmf.run.result import History, Result, Snapshot

_MODULE_OF = {
    "Bound": "symnmf.bounds",
    "Certificate": "symnmf.run.certificate",
    "Communities": "symnmf.community",
    "Consensus": "symnmf.columns",
    "consensus": "symnmf.columns",
    "Comparison": "symnmf.comparison",
    "History": "symnmf.run.result",
    "Hierarchy": "symnmf.cluster.tree",
    "InputError": "symnmf.errors",
    "Problem": "symnmf.run.problem",
    "Quality": "symnmf.cluster.quality",
    "QualityWarning": "symnmf.cluster.quality",
    "Result": "symnmf.run.result",
    "Seconds": "symnmf.calls",
    "Snapshot": "symnmf.run.result",
    "SymNMF": "symnmf.estimator",
    "communities": "symnmf.community",
    "compare": "symnmf.comparison",
    "factorize": "symnmf.run.factorizing",
    "hierarchy": "symnmf.cluster.tree",
    "RankSelection": "symnmf.cluster.judgement",
    "modularity_scorer": "symnmf.cluster.quality",
    "top_features": "symnmf.placing",
}
_MODULES = {
    "datasets": "symnmf.datasets",
    "extending": "symnmf.extending",
    "graphs": "symnmf.graphs",
    "storage": "symnmf.storage",
    "metrics": "symnmf.metrics",
    "coupling": "symnmf.coupling",
    "plots": "symnmf.plots",
    "io": "symnmf.io",
    "report": "symnmf.report",
    "scanpy": "symnmf.scanpy",
    "solvers": "symnmf.solvers",
    "tensors": "symnmf.tensors",
}

__all__ = [
    "Bound",
    "Certificate",
    "Communities",
    "Comparison",
    "Consensus",
    "Hierarchy",
    "History",
    "InputError",
    "Problem",
    "Quality",
    "QualityWarning",
    "RankSelection",
    "Result",
    "Seconds",
    "Snapshot",
    "SymNMF",
    "communities",
    "compare",
    "consensus",
    "coupling",
    "datasets",
    "extending",
    "factorize",
    "graphs",
    "hierarchy",
    "io",
    "metrics",
    "modularity_scorer",
    "plots",
    "report",
    "scanpy",
    "solvers",
    "storage",
    "tensors",
    "top_features",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'symnmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

"""Symmetric nonnegative matrix factorization: X ~ U U^T with U >= 0.

Importing this package imports nothing heavy; each name below loads what it needs on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symnmf import coupling as coupling
    from symnmf import datasets as datasets
    from symnmf import extending as extending
    from symnmf import graphs as graphs
    from symnmf import io as io
    from symnmf import metrics as metrics
    from symnmf import plots as plots
    from symnmf import report as report
    from symnmf import scanpy as scanpy
    from symnmf import solvers as solvers
    from symnmf import storage as storage
    from symnmf import tensors as tensors
    from symnmf.cluster.quality import QualityWarning as QualityWarning
    from symnmf.cluster.quality import modularity_scorer as modularity_scorer
    from symnmf.cluster.tree import hierarchy as hierarchy
    from symnmf.columns import consensus as consensus
    from symnmf.community import Communities as Communities
    from symnmf.community import communities as communities
    from symnmf.comparison import compare as compare
    from symnmf.errors import InputError as InputError
    from symnmf.estimator import SymNMF as SymNMF
    from symnmf.placing import top_features as top_features
    from symnmf.run.factorizing import factorize as factorize
    from symnmf.run.problem import Problem as Problem
    from symnmf.run.result import Result as Result

_NAMES = {
    "cluster.quality": ["QualityWarning", "modularity_scorer"],
    "cluster.tree": ["hierarchy"],
    "columns": ["consensus"],
    "community": ["Communities", "communities"],
    "comparison": ["compare"],
    "errors": ["InputError"],
    "estimator": ["SymNMF"],
    "placing": ["top_features"],
    "run.factorizing": ["factorize"],
    "run.problem": ["Problem"],
    "run.result": ["Result"],
}
_MODULES = (
    "coupling", "datasets", "extending", "graphs", "io", "metrics", "plots", "report", "scanpy",
    "solvers", "storage", "tensors",
)  # fmt: skip

__all__ = sorted([*_MODULES, *(name for names in _NAMES.values() for name in names)])

__getattr__, __dir__ = offered(__name__, _NAMES | dict.fromkeys(_MODULES, ()))

"""From data to clusters: the one way that all entry points take.

Data become similarities, these a :class:`symnmf.Problem`, a search over starts factorizes it, and
what it finds is numbered and judged. :class:`symnmf.SymNMF`, :func:`symnmf.communities`,
:mod:`symnmf.scanpy` and ``symnmf cluster`` only say what the data are and what is done with the
clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

if TYPE_CHECKING:
    from symnmf.cluster.fitted import Fitted
    from symnmf.cluster.pipeline import Pipeline, Prepared, rows_of
    from symnmf.cluster.similarities import PRECOMPUTED, Building, Similarities

__all__ = [
    "PRECOMPUTED",
    "Building",
    "Fitted",
    "Pipeline",
    "Prepared",
    "Similarities",
    "rows_of",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "fitted": ("Fitted",),
        "pipeline": ("Pipeline", "Prepared", "rows_of"),
        "similarities": ("PRECOMPUTED", "Building", "Similarities"),
    },
)

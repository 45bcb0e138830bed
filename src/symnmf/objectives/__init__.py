"""What is minimised over U >= 0, and all that depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

if TYPE_CHECKING:
    from symnmf.objectives.attributed import Attributed
    from symnmf.objectives.frobenius import Frobenius, MatrixObjective
    from symnmf.objectives.hyperedges import HyperedgeLikelihood
    from symnmf.objectives.likelihood import Likelihood
    from symnmf.objectives.objective import Measurement, Objective
    from symnmf.objectives.terms import L1, Links, Ridge, Term
    from symnmf.objectives.weighted import Weighted

__all__ = [
    "L1",
    "Attributed",
    "Frobenius",
    "HyperedgeLikelihood",
    "Likelihood",
    "Links",
    "MatrixObjective",
    "Measurement",
    "Objective",
    "Ridge",
    "Term",
    "Weighted",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "attributed": ("Attributed",),
        "frobenius": ("Frobenius", "MatrixObjective"),
        "hyperedges": ("HyperedgeLikelihood",),
        "likelihood": ("Likelihood",),
        "objective": ("Measurement", "Objective"),
        "terms": ("L1", "Links", "Ridge", "Term"),
        "weighted": ("Weighted",),
    },
)

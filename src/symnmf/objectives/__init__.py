"""What is minimised over U >= 0, and all that depends on it."""

from symnmf.objectives.added import Added
from symnmf.objectives.attributed import Attributed
from symnmf.objectives.frobenius import Frobenius, MatrixObjective
from symnmf.objectives.hyperedges import HyperedgeLikelihood
from symnmf.objectives.likelihood import Likelihood
from symnmf.objectives.objective import CAPABILITIES, Measurement, Objective
from symnmf.objectives.tensor import TensorMisfit
from symnmf.objectives.terms import L1, Links, Ridge, Term
from symnmf.objectives.weighted import Weighted

__all__ = [
    "CAPABILITIES",
    "L1",
    "Added",
    "Attributed",
    "Frobenius",
    "HyperedgeLikelihood",
    "Likelihood",
    "Links",
    "MatrixObjective",
    "Measurement",
    "Objective",
    "Ridge",
    "TensorMisfit",
    "Term",
    "Weighted",
]

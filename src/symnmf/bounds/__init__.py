"""How far from the best possible a factor can be: bounds that hold for every U >= 0."""

from symnmf.bounds.bound import GLOBAL_TOL, Bound
from symnmf.bounds.computing import best_bound
from symnmf.bounds.target import Target, frobenius, weighted

__all__ = ["GLOBAL_TOL", "Bound", "Target", "best_bound", "frobenius", "weighted"]

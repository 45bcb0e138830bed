"""What authors of a solver, a rule for lambda, a term, an objective or a storage backend need.

CONTRIBUTING.md says how each is written; everything else behind the entry points may change.
"""

from symnmf.coupling import Coupling
from symnmf.objectives import Frobenius, MatrixObjective, Objective, Term
from symnmf.ops import Factor, HostOps, Ops
from symnmf.solvers import Solver, SplitSolver
from symnmf.state import Kept, Layout, Point, State
from symnmf.storage import SymmetricArray, SymmetricMatrix, as_symmetric

__all__ = [
    "Coupling",
    "Factor",
    "Frobenius",
    "HostOps",
    "Kept",
    "Layout",
    "MatrixObjective",
    "Objective",
    "Ops",
    "Point",
    "Solver",
    "SplitSolver",
    "State",
    "SymmetricArray",
    "SymmetricMatrix",
    "Term",
    "as_symmetric",
]

"""Operations on tall factors, on every device.

A factor is n x r with n large. Solvers never see what it is made of: they hold it, hand it to the
operations of the matrix they work on, and get r x r matrices and numbers back. :class:`Ops` lists
the operations; :class:`HostOps` does them on NumPy arrays with compiled kernels and threads.
"""

from symnmf.ops.host import HostOps
from symnmf.ops.operations import Factor, Hals, Line, Nnls, Ops, RowSolver, quartic

__all__ = ["Factor", "Hals", "HostOps", "Line", "Nnls", "Ops", "RowSolver", "quartic"]

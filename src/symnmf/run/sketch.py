r"""A sketch of X from a few readings of it, whose factorization is where a run on X begins.

The range finder of Halko, Martinsson and Tropp (2011): an orthonormal basis Q of more columns than
U has, from products with X, and :math:`X \approx Q (Q^\top X Q) Q^\top`. A run on that costs no
reading of X. It ends near a minimum of the problem on X, and few iterations on X are left to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from symnmf import calls
from symnmf.run.spectral import Basis, basis_in, orthonormal, random_block
from symnmf.storage import SymmetricMatrix

#: Columns of the sketch for each column of U.
WIDTH = 4

#: Products with X that a random block goes through before its span is taken.
POWERS = 3


@dataclass(frozen=True, eq=False)
class Sketch:
    """B C B^T in place of X, and what it says of X's leading eigenvectors.

    Attributes
    ----------
    X : SymmetricMatrix
        The sketch, kept where X is.
    basis : Basis
        The leading eigenpairs of the sketch.
    """

    X: SymmetricMatrix
    basis: Basis

    @classmethod
    def of(cls, X: SymmetricMatrix, rank: int) -> Sketch | None:
        """Read X a few times; None where time is up."""
        width = min(WIDTH * rank, X.shape[0])
        block = random_block(X, width)
        for _ in range(POWERS):
            block = orthonormal(X.ops, X.matmul(block))
            if calls.out_of_time():
                return None
        image = X.matmul(block)
        core = X.ops.cross(block, image)
        from symnmf.storage.lowrank import low_rank

        sketch = low_rank(X.ops, block, 0.5 * (core + core.T))
        return cls(sketch, basis_in(X, block, image, rank))

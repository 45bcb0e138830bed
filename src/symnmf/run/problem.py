"""What is to be factorized: X, checked once, and the units its runs work in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.parallel import Threads
from symnmf.run.units import Units
from symnmf.storage import SymmetricMatrix, observed


@dataclass(frozen=True, eq=False)
class Problem:
    """X, checked and scanned once, for all that is done with it.

    Whatever takes X takes a Problem too, and then neither checks nor scans X again.

    Attributes
    ----------
    X : SymmetricMatrix
        X in the caller's units.
    units : Units
        The units of the runs.
    scaled : SymmetricMatrix
        X in these; X itself unless its entries are extreme.
    given : object
        What the caller passed, whose kind of array the results have.
    rank : int or None
        The rank it was made ready for, where that has been done.
    """

    X: SymmetricMatrix
    units: Units
    scaled: SymmetricMatrix
    given: Any
    rank: int | None = None

    @classmethod
    def of(
        cls, X: Any, *, n_jobs: int | None = None, device: Any = None, **observing: Any
    ) -> Problem:
        """Check X as :func:`symnmf.storage.observed` does, and choose its units."""
        if not isinstance(X, Problem):
            return cls._around(observed(X, n_jobs=n_jobs, device=device, **observing), X)
        if device is not None or any(observing.values()):
            raise InputError(
                "X is a Problem, which knows its device and what was observed; say these when it "
                "is made."
            )
        return X if n_jobs is None else X.on(Threads(n_jobs))

    @classmethod
    def _around(cls, X: SymmetricMatrix, given: Any) -> Problem:
        units = Units.of(X)
        return cls(X, units, units.matrix(X), given)

    def for_rank(self, rank: int, *, warn: bool = True) -> Problem:
        """Return it ready for factors of ``rank`` columns; warn of rows that are hardly seen."""
        if self.rank == rank:
            return self
        check_rank(rank, self.X)
        X = self.X.for_rank(int(rank), warn=warn)
        ready = self if X is self.X else self._around(X, self.given)
        return replace(ready, rank=int(rank))

    def on(self, threads: Threads) -> Problem:
        """Return it for use on these threads."""
        X = self.X.on(threads)
        scaled = X if self.scaled is self.X else self.scaled.on(threads)
        return replace(self, X=X, scaled=scaled)


def check_rank(rank: int, X: SymmetricMatrix) -> None:
    """Refuse a rank outside 1..n."""
    n = X.shape[0]
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
    if not whole or not 1 <= rank <= n:
        raise InputError(
            f"rank must be a whole number from 1 to the {n} row(s) of X, got {rank!r}."
        )

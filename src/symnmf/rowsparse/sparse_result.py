"""A finished factorization whose U is sparse, and what can be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.run.result import OUTSIDE, History, Result
from symnmf.storage.indices import check_indices

FORMAT = "symnmf-sparse-result-1"


@dataclass(frozen=True)
class SparseCertificate:
    """Whether U is a stationary point of the Poisson loss, on its support and off it.

    Attributes
    ----------
    on_support : float
        Natural residual of the entries that are not zero, over ||U||_F.
    off_support : float
        The same for the entries that are zero and would lower f if they grew. Only columns that
        some neighbour has can do so.
    full_rows : int
        Rows that hold as many entries as they may, and so cannot take another.
    monotone : bool
        Whether the loss never rose.
    status : str
        How the run ended.
    tol : float
        What has to be met.
    """

    on_support: float
    off_support: float
    full_rows: int
    monotone: bool
    status: str
    tol: float

    @property
    def stationarity(self) -> float:
        """Both residuals together."""
        return float(np.hypot(self.on_support, self.off_support))

    @property
    def certified(self) -> bool:
        """Whether U is a stationary point to ``tol``."""
        return self.stationarity <= self.tol

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.certified:
            return f"Certified: U is a stationary point to the tolerance {self.tol:.2g}."
        where = "on" if self.on_support >= self.off_support else "off"
        return (
            f"Not certified: U is not stationary ({self.stationarity:.2g}, mostly {where} its "
            f"support, above {self.tol:.2g}); let the run go on with a smaller tol."
        )

    def __str__(self) -> str:
        rose = "never rose" if self.monotone else "ROSE"
        return "\n".join(
            [
                self.verdict,
                f"  residual on the support    {self.on_support:.3e}",
                f"  residual off the support   {self.off_support:.3e}",
                f"  rows that are full         {self.full_rows}",
                f"  the loss {rose}; the run ended with {self.status!r}",
            ]
        )


@dataclass(frozen=True, eq=False)
class SparseResult(Result):
    """A :class:`symnmf.Result` whose U is a ``scipy.sparse.csr_array``.

    ``error`` is the part of the deviance that is left: 1 where no edge is explained but by the
    background, 0 where every edge has its own rate.

    Attributes
    ----------
    background : float
        The rate b of an edge that no community explains.
    """

    U: Any
    V: Any
    background: float = 0.0
    checked: SparseCertificate | None = field(default=None, repr=False)

    @property
    def labels(self) -> np.ndarray:
        """The column of the largest entry of each row; -1 for a row of zeros."""
        if not self.U.shape[1]:
            return np.full(self.U.shape[0], OUTSIDE)
        largest = np.asarray(self.U.argmax(axis=1)).ravel()
        return np.where(np.diff(self.U.indptr) > 0, largest, OUTSIDE)

    @property
    def membership(self) -> Any:
        """U with rows scaled to sum 1, sparse."""
        totals = np.repeat(np.asarray(self.U.sum(axis=1)).ravel(), np.diff(self.U.indptr))
        return sp.csr_array((self.U.data / totals, self.U.indices, self.U.indptr), self.U.shape)

    @property
    def dead_columns(self) -> np.ndarray:
        """The columns of U that are zero."""
        return np.flatnonzero(np.bincount(self.U.indices, minlength=self.U.shape[1]) == 0)

    def certificate(self, problem: Any = None, *, tol: float | None = None) -> Any:
        """Return the residuals that were measured when the run ended."""
        if self.checked is None:
            raise InputError("this result was read from a file, which keeps no certificate.")
        chosen = self.checked.tol if tol is None else float(tol)
        return SparseCertificate(**{**self.checked.__dict__, "tol": chosen})

    def save(self, path: str | Path, *, names: Sequence[Any] | None = None) -> None:
        """Write to an npz archive (no pickle), atomically; ``names`` are not kept."""
        write_archive(
            path,
            {
                "format": np.array(FORMAT),
                "data": self.U.data,
                "indices": self.U.indices,
                "indptr": self.U.indptr,
                "columns": np.array(self.U.shape[1]),
                "numbers": np.array(
                    [self.value, self.error, self.n_iter, self.tol, self.background]
                ),
                "words": np.array([self.status, self.solver]),
                "history": self.history.to_array(),
            },
        )

    @classmethod
    def load(cls, path: str | Path) -> SparseResult:
        """Read what :meth:`save` wrote; a file that is not that or is damaged is an InputError."""
        stored = read_archive(path, FORMAT)
        try:
            indptr = stored["indptr"]
            shape = (len(indptr) - 1, int(stored["columns"]))
            U = sp.csr_array((stored["data"], stored["indices"], indptr), shape=shape)
            check_indices(U, "U")  # SciPy's own check overlooks some
            if U.nnz and not (np.isfinite(U.data).all() and U.data.min() >= 0):
                raise ValueError("U has entries that are negative or not finite")
            value, error, n_iter, tol, background = stored["numbers"].tolist()
            status, solver = stored["words"].tolist()
            return cls(
                U=U,
                V=U,
                value=value,
                error=error,
                n_iter=int(n_iter),
                status=status,
                coupling=0.0,
                history=History.of(stored["history"]),
                solver=solver,
                tol=tol,
                background=background,
            )
        except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            raise InputError(f"{path} is not a whole symnmf result ({error}).") from error

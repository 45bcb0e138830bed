"""What can be said of a row-sparse U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
        return (
            f"Not certified: U is not stationary ({self.stationarity:.2g}, above {self.tol:.2g}); "
            f"let the run go on with a smaller tol."
        )

    def __str__(self) -> str:
        rose = "never rose" if self.monotone else "ROSE"
        return (
            f"{self.verdict}\n"
            f"  residual on the support    {self.on_support:.3e}\n"
            f"  residual off the support   {self.off_support:.3e}\n"
            f"  rows that are full         {self.full_rows}\n"
            f"  the loss {rose}; the run ended with {self.status!r}"
        )

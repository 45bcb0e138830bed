"""The method to take where nothing speaks for another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symnmf.solvers.hals_newton import HalsNewton


@dataclass(frozen=True)
class Auto(HalsNewton):
    """The method that the measurements support, at present :class:`HalsNewton` as it is.

    Its minima are as good as those of A-SymHALS within the spread of the starts, and it is much
    faster on dense matrices of small error and somewhat faster on similarity graphs; on sparse
    graphs whose factors exceed the cache A-SymHALS is faster at tight targets. The numbers are in
    docs/hals-newton.md. A name of its own, so that the choice can follow later
    measurements without changing what "hals-newton" means.
    """

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = "the method to use where nothing speaks for another (hals-newton)"

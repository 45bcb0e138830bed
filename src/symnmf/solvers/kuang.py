"""The penalised ANLS of Kuang, Yun and Park (2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symnmf.solvers.symanls import SymANLS


@dataclass(frozen=True)
class KuangANLS(SymANLS):
    """SymANLS under Kuang's lambda: 1.01 times the last until ||U - V||_F / ||V||_F < 1e-8.

    Their published code keeps lambda = max(X)^2 instead: ``coupling="kuang-fixed"``.
    """

    name: ClassVar[str] = "kuang-anls"
    summary: ClassVar[str] = "SymANLS with lambda growing by 1.01 (Kuang, Yun and Park 2015)"
    default_coupling: ClassVar[str] = "geometric"

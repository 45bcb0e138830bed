"""What a search for the number of clusters comes to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from symnmf.run.result import Result
from symnmf.selection.choosing_rank import Choice


@dataclass(frozen=True, eq=False)
class RankSelection:
    """What :func:`select_rank` found.

    Attributes
    ----------
    recommendation : int or None
        The number of clusters; None if no number is clear.
    reason : str
        Why, in one sentence.
    choices : dict of str to Choice
        The choice of each criterion, with the ranks it cannot tell apart.
    table : dict of str to ndarray
        One row per rank; see :meth:`to_frame`.
    best : Result or None
        The best of several starts on all of X with the recommended rank.
    bethe_hessian : int or None
        Negative eigenvalues of the Bethe-Hessian, for graphs without weights.
    status : str
        "done", or "stopped" if the search was interrupted. The recommendation is then None unless
        all runs that matter are complete.
    settings : dict
        The ranks tried, folds, runs, the seed (``random_state``), and how many of the fits were
        done.
    """

    recommendation: int | None
    reason: str
    choices: dict[str, Choice]
    table: dict[str, np.ndarray] = field(repr=False)
    best: Result | None = field(repr=False)
    bethe_hessian: int | None = None
    status: str = "done"
    settings: dict[str, Any] = field(default_factory=dict, repr=False)

    def stopped(self, when: str) -> RankSelection:
        """Return the same with the status "stopped", and a reason that says when that was."""
        reason = f"Stopped {when}; {self.reason[0].lower()}{self.reason[1:]}"
        return replace(self, status="stopped", reason=reason)

    @property
    def verdict(self) -> str:
        """The recommendation as a heading."""
        number = self.recommendation
        if self.status == "stopped":
            return "Stopped early" + ("" if number is None else f": {number} clusters")
        return "No clear number of clusters" if number is None else f"{number} clusters"

    def __str__(self) -> str:
        number = self.recommendation
        if self.status == "stopped":
            lines = [self.reason] + ([] if number is None else [f"Clusters: {number}."])
        else:
            lines = [f"Clusters: {'no clear number' if number is None else number}. {self.reason}"]
        lines += [f"  {name:14} {choice}" for name, choice in self.choices.items()]
        if self.bethe_hessian is not None:
            lines.append(f"  {'Bethe-Hessian':14} {self.bethe_hessian} negative eigenvalues")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame (needs the extra ``pandas``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "RankSelection.to_frame needs pandas: pip install 'symnmf[pandas]'."
            ) from error
        return pd.DataFrame(self.table)

    def plot(self) -> Any:
        """Return a matplotlib Figure with the score of each criterion against the rank."""
        from symnmf.selection.figures import draw

        return draw(self)

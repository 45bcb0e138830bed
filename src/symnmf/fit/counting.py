"""How many clusters, where the user leaves that open."""

from __future__ import annotations

from typing import Any

from symnmf import errors
from symnmf.run.start import RandomState
from symnmf.selection import select_rank
from symnmf.selection.found import RankSelection

#: The number of clusters that asks for one to be found.
AUTO = "auto"

#: The most clusters that are tried.
MOST = 20


def choose_count(
    A: Any, random_state: RandomState, n_jobs: int | None
) -> tuple[int, RankSelection]:
    """Return how many clusters similarities have, and how that was found.

    Where no number is clear the criterion that has one is followed, or everything is one cluster,
    with a warning.
    """
    found = select_rank(
        A,
        range(2, min(MOST, A.shape[0] - 1) + 1),
        n_init=1,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if found.recommendation is not None:
        return found.recommendation, found
    if found.status == "stopped":
        raise KeyboardInterrupt(found.reason)
    heldout = found.choices["heldout"].rank
    others = [found.choices[name].rank for name in ("stability", "eigengap")]
    chosen = next((rank for rank in others if rank is not None), heldout) if heldout else 1
    errors.warn(
        f"No clear number of clusters. {found.reason} {chosen or 1} is taken; see "
        f"rank_selection_, or set n_clusters.",
        UserWarning,
    )
    return chosen or 1, found

"""The number of clusters: what hidden pairs, stability and eigenvalues say about it."""

from symnmf.selection.choosing_rank import Choice
from symnmf.selection.found import RankSelection
from symnmf.selection.selecting import CRITERIA, select_rank

__all__ = ["CRITERIA", "Choice", "RankSelection", "select_rank"]

"""Columns of U over several runs, or several X: which are the same, and how stable they are."""

from symnmf.columns.agreeing import Consensus, consensus
from symnmf.columns.following import Following, follow

__all__ = ["Consensus", "Following", "consensus", "follow"]

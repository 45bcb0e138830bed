"""Columns of U over several runs: which are the same, and how stable they are."""

from symnmf.columns.agreeing import Consensus, consensus

__all__ = ["Consensus", "consensus"]

"""Clusters within clusters: splits by two, each judged against data without clusters."""

from symnmf.trees.splitting import hierarchy
from symnmf.trees.tree import Hierarchy, Split

__all__ = ["Hierarchy", "Split", "hierarchy"]

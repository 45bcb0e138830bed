"""How well found clusters and communities agree with known ones; every score is at most 1."""

from symnmf.metrics.covers import best_match_f1, omega_index, overlapping_f1, overlapping_nmi
from symnmf.metrics.partitions import (
    adjusted_rand,
    clustering_accuracy,
    normalized_mutual_info,
    purity,
)

__all__ = [
    "adjusted_rand",
    "best_match_f1",
    "clustering_accuracy",
    "normalized_mutual_info",
    "omega_index",
    "overlapping_f1",
    "overlapping_nmi",
    "purity",
]

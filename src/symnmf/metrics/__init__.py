"""How well found clusters and communities agree with known ones; every score is at most 1.

Scores of partitions that scikit-learn has are ``sklearn.metrics``'.
"""

from symnmf.metrics.covers import best_match_f1, omega_index, overlapping_f1, overlapping_nmi
from symnmf.metrics.partitions import clustering_accuracy

__all__ = [
    "best_match_f1",
    "clustering_accuracy",
    "omega_index",
    "overlapping_f1",
    "overlapping_nmi",
]

"""How far two labellings agree beyond chance, from counts alone.

scikit-learn's score checks labels of any kind first, which takes longer than the score, and its
import takes longer than most fits.
"""

from __future__ import annotations

import numpy as np

#: Standard deviations of the overlap of two clusters, and rows, beyond which nothing is left of
#: its probability.
TAIL, MARGIN = 15.0, 30


def adjusted_mutual_information(one: np.ndarray, other: np.ndarray, count: int) -> float:
    """Return the AMI of labels from 0 to ``count`` - 1 (Vinh, Epps and Bailey, 2010)."""
    joint = np.bincount(one * count + other, minlength=count * count).reshape(count, count)
    joint = joint[joint.any(axis=1)][:, joint.any(axis=0)]
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    if len(rows) == 1 or len(columns) == 1:  # a single cluster tells nothing about others
        return float(len(rows) == len(columns))
    both = entropy(rows) + entropy(columns)
    shared = both - entropy(joint[joint > 0])
    expected = expected_information(rows, columns)
    span = both / 2 - expected
    # zero if every sample is its own cluster: two such partitions cannot disagree
    return float((shared - expected) / span) if span > 1e-12 * both else 1.0


def expected_information(rows: np.ndarray, columns: np.ndarray) -> float:
    """Return the mutual information, in nats, that random labels of these sizes have on average.

    The overlap of two clusters of a and b among n is then hypergeometric.
    """
    n = int(rows.sum())
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    total = 0.0
    for a, times in zip(*np.unique(rows, return_counts=True), strict=True):
        for b, again in zip(*np.unique(columns, return_counts=True), strict=True):
            overlap = _likely(int(a), int(b), n)
            chance = (
                factorials[[a, b, n - a, n - b]].sum()
                - factorials[n]
                - factorials[overlap]
                - factorials[a - overlap]
                - factorials[b - overlap]
                - factorials[n - a - b + overlap]
            )
            # a / n b / n in this order: whole numbers of this size overflow when multiplied
            information = overlap / n * np.log(overlap / a * n / b)
            total += float(times * again * (information @ np.exp(chance)))
    return total


def _likely(a: int, b: int, n: int) -> np.ndarray:
    """Return the overlaps from 1 on that clusters of a and b among n may well have."""
    mean = a / n * b
    spread = TAIL * np.sqrt(mean * (n - a) / n * (n - b) / max(n - 1, 1)) + MARGIN
    least = max(1, a + b - n, int(mean - spread))
    return np.arange(least, min(a, b, int(mean + spread) + 1) + 1)


def entropy(sizes: np.ndarray) -> float:
    """Return the entropy, in nats, of a cut into parts of these sizes, none of them 0."""
    shares = sizes / sizes.sum()
    return -float(shares @ np.log(shares))

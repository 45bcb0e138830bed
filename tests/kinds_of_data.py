"""Data with known clusters and without any, for the tests of judgements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.partition import as_graph


def equal_groups(n: int, groups: int) -> list[int]:
    """Return the sizes of groups that are equal, but for what is left over."""
    return [n // groups + (group < n % groups) for group in range(groups)]


def block_model(
    sizes: Sequence[int], inner: float, outer: float, rng: np.random.Generator
) -> sp.csr_array:
    """Return a graph with edges at one rate inside groups and another between them."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(group[:, None] == group, inner, outer)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    return as_graph((upper + upper.T).astype(float))

"""What each cluster is about, from the factor of a table of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.run.result import Result


def about(
    result: Result, clusters: int, count: int = 10, names: Sequence[Any] | None = None
) -> list[list[Any]]:
    """Return the attributes that distinguish each cluster, the most distinctive first.

    An attribute tells as much as a cluster has of it, times the cluster's share in what all
    clusters have: what is common to all of them tells little of any. Listed are only attributes of
    which a typical member of the cluster has more than the mean over clusters.
    """
    W, below = result.W, result.attached
    if W is None or below is None:
        raise InputError(
            "the fit has no attributes to describe the clusters by; pass attributes to "
            "communities or Problem."
        )
    known = below.names if names is None else list(names)
    if known is not None and len(known) != len(W):
        raise InputError(
            f"names must have one entry for each of the {len(W)} attributes, got {len(known)}."
        )
    U = to_host(result.U)
    # U W^T stays the same where a column of U is made shorter and that of W longer
    sizes = W * np.linalg.norm(U, axis=0)
    totals = sizes.sum(axis=1, keepdims=True)
    telling = sizes**2 / np.where(totals > 0, totals, 1.0)
    sums = U.sum(axis=0)
    of_member = W * ((U * U).sum(axis=0) / np.where(sums > 0, sums, 1.0))
    more = of_member > of_member.mean(axis=1, keepdims=True)
    found = []
    for column in range(clusters):
        order = np.argsort(-telling[:, column], kind="stable")
        kept = order[more[order, column]][:count]
        found.append([int(j) if known is None else known[j] for j in kept])
    return found

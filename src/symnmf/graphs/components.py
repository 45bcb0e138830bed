"""Nodes that no cluster can reach: the components of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.warning import warn
from symnmf.storage.components import connected


def restrict(A: Any, components: str, clusters: int = 0) -> Any:
    """Return A, with ``components="largest"`` without the edges of all but the largest component.

    A warning counts the components where there are more of them than clusters; 0 is for a number
    that is not known yet.
    """
    count, part = connected(sp.csr_array(A))
    sizes = np.bincount(part)
    several = np.count_nonzero(sizes > 1)
    if components == "largest" and count > 1:
        inside = part == sizes.argmax()
        if not sp.issparse(A):
            return np.where(inside[:, None] & inside, A, A.dtype.type(0))
        keep = sp.diags_array(inside.astype(A.dtype))
        kept = sp.csr_array(keep @ A @ keep)
        kept.eliminate_zeros()
        kept.sort_indices()
        return kept
    if several > clusters > 0:
        warn(
            f"the graph has {several} components of two nodes or more but only {clusters} "
            f"clusters, so some cluster must contain nodes that no path connects; "
            f"components='largest' clusters only the largest component, {sizes.max()} of "
            f"{len(part)} nodes."
        )
    return A

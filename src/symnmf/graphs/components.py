"""Nodes that no cluster can reach: the components of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.warning import warn
from symnmf.storage.components import connected


def restrict(A: Any, components: str, clusters: int, advice: str) -> Any:
    """A without the nodes that are to stay outside: their rows and columns are zero.

    With ``components="largest"`` these are the nodes of every component but the largest, with
    ``"all"`` none. If there are more components than clusters a warning counts them.

    Parameters
    ----------
    A : array or csr_array
        Checked affinities.
    components : {"all", "largest"}
    clusters : int
        How many will be looked for.
    advice : str
        What the reader is to write for the largest component alone.
    """
    count, part = connected(sp.csr_array(A))
    sizes = np.bincount(part)
    real = np.count_nonzero(sizes > 1)
    if components == "largest" and count > 1:
        inside = part == sizes.argmax()
        if not sp.issparse(A):
            return np.where(inside[:, None] & inside, A, A.dtype.type(0))
        keep = sp.diags_array(inside.astype(A.dtype))
        kept = sp.csr_array(keep @ A @ keep)
        kept.eliminate_zeros()
        kept.sort_indices()
        return kept
    if real > clusters:
        warn(
            f"the graph has {real} components of two nodes or more but only {clusters} clusters, "
            f"so some cluster must contain nodes that no path connects; {advice} clusters only "
            f"the largest component, {sizes.max()} of {len(part)} nodes."
        )
    return A

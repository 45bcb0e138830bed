"""The picture of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.plots import new_axes
from symnmf.run.result import OUTSIDE

if TYPE_CHECKING:
    from symnmf.trees.tree import Hierarchy


def dendrogram(tree: Hierarchy, ax: Any = None) -> Any:
    """Draw the splits over the leaves; a leaf says how many rows it has."""
    from scipy.cluster.hierarchy import dendrogram as draw

    figure, axes = new_axes(ax)
    if len(tree.splits):
        sizes = np.bincount(tree.labels[tree.labels != OUTSIDE], minlength=tree.n_clusters)
        draw(
            tree.linkage,
            ax=axes,
            labels=[f"{label}: {size:,}" for label, size in enumerate(sizes)],
            leaf_rotation=90,
            color_threshold=0.0,
            above_threshold_color="#1f5fa8",
        )
    axes.set(ylabel="strength of the split", xlabel="leaf: rows", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    return figure

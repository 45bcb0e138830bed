"""
A few known labels
==================

Thirty of 500 points have a known class. The two rings touch, and without the labels they are cut
across. With them they are not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from symnmf import SymNMF, metrics

points, ring = make_circles(500, factor=0.55, noise=0.11, random_state=2)
known = np.full(500, -1)
told = np.random.default_rng(0).choice(500, 30, replace=False)
known[told] = ring[told]

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, labels, title in zip(axes, (None, known), ("no label", "30 labels"), strict=True):
    model = SymNMF(n_clusters=2, random_state=0).fit(points, labels=labels)
    accuracy = metrics.clustering_accuracy(ring, model.labels_)
    ax.scatter(*points.T, c=np.array(["tab:blue", "tab:orange"])[model.labels_], s=10)
    if labels is not None:
        ax.scatter(*points[told].T, s=60, facecolors="none", edgecolors="black")
    ax.set_title(f"{title}: accuracy {accuracy:.2f}", fontsize=10)
    ax.set_aspect("equal")
    ax.set_axis_off()

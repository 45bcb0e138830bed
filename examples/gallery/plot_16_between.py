"""
Points between clusters
=======================

Labels hide what memberships show: points between two groups have a share in both.
"""

import matplotlib.pyplot as plt
import numpy as np

from symnmf import SymNMF

rng = np.random.default_rng(0)
corners = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.4]])
mixture = rng.dirichlet(np.full(3, 0.25), 450)
points = mixture @ corners + rng.normal(0, 0.22, (450, 2))

model = SymNMF(n_clusters=3, n_neighbors=25, random_state=0).fit(points)

colours = np.array([[0.0, 0.35, 0.75], [0.95, 0.6, 0.0], [0.6, 0.2, 0.55]])  # one per cluster
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.scatter(*points.T, c=colours[model.labels_], s=12)
left.set_title("labels", fontsize=10)
right.scatter(*points.T, c=model.membership_ @ colours, s=12)
right.set_title("memberships, mixed as colours", fontsize=10)
for ax in (left, right):
    ax.set_aspect("equal")
    ax.set_axis_off()

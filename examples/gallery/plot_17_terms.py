"""
Sharper memberships with an l1 term
===================================

Each character of *Les Misérables* has shares in six groups. An l1 term takes the small ones away.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import symnmf

G = nx.les_miserables_graph()
A, names = symnmf.graphs.from_graph(G)
X = symnmf.graphs.normalize(A)

figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), layout="constrained", sharey=True)
order = None
for ax, l1 in zip(axes, (0.0, 0.02, 0.06), strict=True):
    result = symnmf.factorize(X, 6, l1=l1, random_state=0)
    if order is None:
        order = np.lexsort((-result.membership.max(axis=1), result.labels))
    ax.imshow(result.membership[order], aspect="auto", cmap="Blues", vmin=0, vmax=1)
    groups = np.mean(np.sum(result.U > 0, axis=1))
    ax.set_title(f"l1 = {l1}: {groups:.1f} groups a node, E = {result.error:.3f}", fontsize=10)
    ax.set_xlabel("group")
axes[0].set_ylabel("character")

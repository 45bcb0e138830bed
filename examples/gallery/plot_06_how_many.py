"""
How many clusters?
==================

Some pairs of nodes are hidden, and predicted from the others with 2, 3, 4, ... clusters. The right
number predicts them well. A larger one gains nothing.
"""

import networkx as nx

import symnmf

G = nx.planted_partition_graph(4, 40, 0.35, 0.04, seed=1)
found = symnmf.select_rank(nx.to_scipy_sparse_array(G, dtype=float), range(2, 9), random_state=0)

figure = found.plot()

# %%
# The graph was made of four groups of forty nodes.

print(found)

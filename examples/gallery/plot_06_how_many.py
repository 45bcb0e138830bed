"""
How many clusters?
==================

Edges are held out, and counted inside the groups that the others show. Where that is more than in
random graphs with the same degrees, the number of groups is the one that describes the graph in
the fewest nats.
"""

import matplotlib.pyplot as plt
import networkx as nx

import symnmf

G = nx.planted_partition_graph(4, 40, 0.35, 0.04, seed=1)
selection = symnmf.communities(G, "auto", random_state=0).rank_selection

figure, axes = plt.subplots()
axes.plot(selection.table["rank"], selection.table["description"], marker="o")
axes.set(xlabel="number of groups", ylabel="description, nats")

# %%
# The graph was made of four groups of forty nodes.

print(selection)

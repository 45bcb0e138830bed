"""
A method for CDlib
==================

CDlib compares methods of community detection: each takes a graph and returns a
``NodeClustering``. The function below makes one of what :func:`symnmf.communities` finds. Without
CDlib, a tuple with the same fields stands in for the class. The picture shows it beside networkx's
Louvain method.
"""

from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import networkx as nx

import symnmf

try:
    from cdlib import NodeClustering
except ImportError:

    class NodeClustering(NamedTuple):
        communities: list[list[Any]]
        graph: nx.Graph
        method_name: str
        method_parameters: dict[str, Any]
        overlap: bool


def symmetric_nmf(graph: nx.Graph, k: int | str = "auto", **settings: Any) -> NodeClustering:
    """Return symnmf's communities as a clustering of CDlib."""
    found = symnmf.communities(graph, k, **settings)
    sets = [sorted(nodes) for nodes in found]
    parameters = {"k": k, **settings}
    return NodeClustering(sets, graph, "symmetric_nmf", parameters, found.overlapping)


G = nx.karate_club_graph()
ours = symmetric_nmf(G, 2, random_state=0)
louvain = nx.community.louvain_communities(G, seed=0)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5))
places = nx.kamada_kawai_layout(G)
palette = plt.get_cmap("tab10")
for ax, name, sets in zip(axes, ("symnmf", "Louvain"), (ours.communities, louvain), strict=True):
    color = {node: palette(number) for number, nodes in enumerate(sets) for node in nodes}
    nx.draw_networkx_edges(G, places, ax=ax, edge_color="0.8")
    nx.draw_networkx_nodes(G, places, ax=ax, node_size=120, node_color=[color[v] for v in G])
    ax.set_title(f"{name}: modularity {nx.community.modularity(G, sets):.3f}")
    ax.set_axis_off()

# %%
# Sets that overlap are passed on in the same way.
overlapping = symmetric_nmf(G, 3, overlapping=True, random_state=0)
print(overlapping.overlap, [len(nodes) for nodes in overlapping.communities])

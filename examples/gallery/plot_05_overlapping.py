"""
A node in several communities
=============================

The characters of *Les Misérables*, joined where they meet in a chapter. A row of U holds shares.
So a character may belong to several groups. Those who do are drawn with a ring.
"""

import matplotlib.pyplot as plt
import networkx as nx

import symnmf

G = nx.les_miserables_graph()
found = symnmf.communities(G, 6, overlapping=True, random_state=0)
several = [name for name in found.names if sum(name in group for group in found) > 1]

places = nx.kamada_kawai_layout(G)
palette = plt.get_cmap("tab10")
figure, ax = plt.subplots(figsize=(9, 6.5))
nx.draw_networkx_edges(G, places, ax=ax, edge_color="0.85")
nx.draw_networkx_nodes(
    G,
    places,
    ax=ax,
    nodelist=found.names,
    node_size=110,
    node_color=[palette(label) if label >= 0 else "0.6" for label in found.labels],
    edgecolors=["black" if name in several else "white" for name in found.names],
    linewidths=1.6,
)
above = {name: (x, y + 0.035) for name, (x, y) in places.items()}
nx.draw_networkx_labels(G, above, {name: name for name in several}, ax=ax, font_size=9)
ax.set_axis_off()

# %%
print("In more than one group:", ", ".join(several))

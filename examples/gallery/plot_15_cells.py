"""
Single cells
============

Counts of genes in 400 cells of four kinds, drawn at random. The neighbour graph is clustered, and
each cluster is told by its marker genes. With real data the graph comes from
``scanpy.pp.neighbors``.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np

import symnmf

rng = np.random.default_rng(0)
kind = np.repeat(np.arange(4), 100)
rates = np.full((4, 200), 0.3)
for k in range(4):
    rates[k, 15 * k : 15 * (k + 1)] = 2.5
counts = rng.poisson(rates[kind] * rng.uniform(0.5, 2.0, (400, 1)))
adata = anndata.AnnData(counts.astype(np.float32))
adata.var_names = [f"gene {i}" for i in range(200)]

depth = counts.sum(axis=1, keepdims=True)
adata.obsp["connectivities"] = symnmf.graphs.build(np.log1p(1e2 * counts / depth), "cosine")
symnmf.scanpy.cluster(adata, 4)

labels = adata.obs["symnmf"].astype(int).to_numpy()
markers = symnmf.top_features(counts, adata.obsm["X_symnmf"], k=12)
genes = [gene for cluster in markers for gene, _ in cluster]
figure, ax = plt.subplots(figsize=(8, 4))
ax.imshow(np.log1p(counts[np.argsort(labels)][:, genes]).T, aspect="auto", cmap="Blues")
ax.set_xlabel("cells, by cluster")
ax.set_ylabel("marker genes, by cluster")

# %%
print(adata.obs["symnmf"].value_counts())
print(f"accuracy {symnmf.metrics.clustering_accuracy(kind, labels):.3f}")

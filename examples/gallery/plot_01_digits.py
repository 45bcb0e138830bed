"""
Images: handwritten digits
==========================

1797 pictures of digits are put into ten clusters. No label is used. Each line of the picture shows
the most typical members of one cluster.
"""

from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from symnmf import SymNMF, metrics, plots

digits = load_digits()
model = SymNMF(n_clusters=10, random_state=0).fit(digits.data)

figure = plots.typical_members(digits.data, model.membership_, (8, 8), per_cluster=12)

# %%
# The true classes are known here, so the clusters can be scored.

print(f"accuracy {metrics.clustering_accuracy(digits.target, model.labels_):.3f}")
print(f"mutual information {normalized_mutual_info_score(digits.target, model.labels_):.3f}")

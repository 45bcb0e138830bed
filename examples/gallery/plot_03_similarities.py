"""
Do the clusters hold together?
==============================

The similarity matrix is drawn with its rows sorted by cluster. Dark blocks on the diagonal are
clusters that hold together. Dark places elsewhere are clusters that touch.
"""

from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from symnmf import SymNMF, plots

wine = StandardScaler().fit_transform(load_wine().data)
model = SymNMF(n_clusters=3, random_state=0).fit(wine)

figure = plots.similarity(model.affinity_matrix_, model.labels_)

# %%
# The same in numbers. Conductance is the part of a cluster's weight that leaves it.

print(model.quality_)

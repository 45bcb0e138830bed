"""
The idea in one picture
=======================

X holds the similarities of all pairs of images. Symmetric NMF finds U ≥ 0 with X ≈ U Uᵀ. A row of
U says how much an image belongs to each cluster. Sorted by U, the clusters show in X.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from symnmf import SymNMF

digits = load_digits()
chosen = np.random.default_rng(0).permutation(
    np.flatnonzero(np.isin(digits.target, (0, 3, 4, 6, 7)))
)[:250]
images = digits.data[chosen]
model = SymNMF(n_clusters=5, random_state=0).fit(images)

X = model.affinity_matrix_.toarray()
U = model.membership_
order = np.lexsort((-U.max(axis=1), model.labels_))

figure, axes = plt.subplots(
    1, 4, figsize=(12, 3.6), width_ratios=(3, 1, 3, 3), layout="constrained"
)
pictures = (X, U[order], X[np.ix_(order, order)])
titles = ("X: similarities of 250 images", "U", "X, sorted by U")
for ax, picture, title in zip(axes, pictures, titles, strict=False):
    strongest = 1.0 if title == "U" else 0.3
    ax.imshow(
        np.sqrt(picture), cmap="Blues", aspect="auto", vmax=strongest, interpolation="nearest"
    )
    ax.set_title(title, fontsize=11)
sheet = np.full((5 * 9, 7 * 9), np.nan)
for cluster in range(5):
    typical = np.argsort(-np.where(model.labels_ == cluster, model.embedding_[:, cluster], 0))[:7]
    for place, row in enumerate(typical):
        sheet[9 * cluster : 9 * cluster + 8, 9 * place : 9 * place + 8] = images[row].reshape(8, 8)
axes[3].imshow(sheet, cmap="gray_r", aspect="auto")
axes[3].set_title("the five clusters", fontsize=11)
for ax in axes:
    ax.set_xticks([])
    ax.set_yticks([])

"""
Entries that were not observed
==============================

Two thirds of the pairs are hidden. The fit uses the others only, and predicts the hidden ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import symnmf

rng = np.random.default_rng(0)
U = np.kron(np.eye(4), np.ones((20, 1))) * rng.uniform(0.5, 1.0, (80, 4))
whole = U @ U.T + 0.05
hidden = np.triu(rng.random(whole.shape) < 0.67, 1)
X = whole.copy()
X[hidden | hidden.T] = np.nan

result = symnmf.factorize(X, 4, missing="nan", random_state=0)
filled = result.U @ result.U.T

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
titles = ("observed (white: hidden)", "predicted", "the truth")
for ax, picture, title in zip(axes, (X, filled, whole), titles, strict=True):
    ax.imshow(picture, cmap="Blues", vmin=0, vmax=1)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()

# %%
gap = np.abs(filled - whole)[hidden | hidden.T].mean()
print(f"mean error on hidden pairs {gap:.3f}, where entries are {whole.mean():.3f} on average")

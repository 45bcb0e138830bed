"""
Which columns are stable, and who moves
=======================================

Twenty runs on the handwritten digits from different starts, matched column by column. Some digits
are found by every run. Others share a column in one run and have one each in another.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize

import symnmf
from symnmf import datasets, graphs

digits = datasets.load("digits")
found = symnmf.consensus(graphs.build(digits.data), 10, n_runs=20, random_state=0)
print(found)

# %%
# Which digit a column holds, from the stablest to the least stable:

for column in range(10):
    held = np.bincount(digits.target[found.labels == column], minlength=10)
    print(f"stability {found.stability[column]:.2f}: digit {held.argmax()}, {held.sum()} images")

# %%
# Columns can be followed through time too: each run starts from where the last one ended, or afresh
# if that is clearly better. Three groups over four years; some people leave the first for the
# second, and then a part of the third joins the first.

rng = np.random.default_rng(0)
group = np.repeat([0, 1, 2], 40)
years = []
for leave, join in ((0, 0), (6, 0), (12, 0), (12, 15)):
    now = group.copy()
    now[:leave] = 1
    now[120 - join :] = 0
    linked = np.where(now[:, None] == now, 0.6, 0.05)
    upper = np.triu(rng.random(linked.shape) < linked, 1)
    years.append((upper | upper.T).astype(float))


def continued(X, last):
    """Return U of X, each column beside the one of the last U that it continues."""
    warm = symnmf.factorize(X, 3, init=np.maximum(last, 0.01 * last.mean()))
    fresh = symnmf.factorize(X, 3, init="spectral")
    U = (fresh if fresh.value < 0.99 * warm.value else warm).U
    cosines = normalize(last, axis=0).T @ normalize(U, axis=0)
    return U[:, linear_sum_assignment(-cosines)[1]]


factors = [symnmf.factorize(years[0], 3, init="spectral").U]
for X in years[1:]:
    factors.append(continued(X, factors[-1]))
labels = np.array([U.argmax(axis=1) for U in factors])
for year, (before, now) in enumerate(pairwise(labels), 2020):
    print(f"{year}: {np.sum(before != now)} people move")

figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
axes.imshow(labels.T, aspect="auto", interpolation="nearest", cmap="Set2")
axes.set(xlabel="year", ylabel="person", xticks=range(4), xticklabels=range(2019, 2023))
plt.show()

"""
Which columns are stable, and who moves
=======================================

Twenty runs on the handwritten digits from different starts, matched column by column. Some digits
are found by every run. Others share a column in one run and have one each in another.
"""

import matplotlib.pyplot as plt
import numpy as np

import symnmf
from symnmf import datasets, graphs

digits = datasets.load("digits")
found = symnmf.consensus(graphs.self_tuning(digits.data), 10, n_init=20, random_state=0)
print(found)

figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
found.plot(axes)

# %%
# Which digit a column holds, from the stablest to the least stable:

for column in range(10):
    held = np.bincount(digits.target[found.labels == column], minlength=10)
    print(f"stability {found.stability[column]:.2f}: digit {held.argmax()}, {held.sum()} images")

# %%
# The same matching follows columns through time. Three groups over four years; some people leave
# the first for the second, and then a part of the third joins the first.

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

through = symnmf.follow(years, 3, names=[2019, 2020, 2021, 2022], random_state=0)
print(through)

figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
through.plot(axes)
plt.show()

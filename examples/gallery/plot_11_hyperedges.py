"""
Groups of three that pairs cannot tell
======================================

Four communities. Each tie joins three nodes: all from one community, or one each from three. Every
pair of nodes is then tied equally often, whether it is of one community or of two. The matrix of
pairs is noise. The tensor of triples is not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf import tensors

rng = np.random.default_rng(0)
side, blocks = 15, 4
group = np.repeat(np.arange(blocks), side)
triples = set()
while len(triples) < 3000:
    if rng.random() < 0.27:
        members = side * rng.integers(blocks) + rng.choice(side, 3, replace=False)
    else:
        members = side * rng.choice(blocks, 3, replace=False) + rng.integers(side, size=3)
    triples.add(tuple(sorted(map(int, members))))

T, names = tensors.from_hyperedges(sorted(triples))
order = np.argsort(names)
fits = (symnmf.factorize(T, blocks, tol=5e-3, random_state=seed) for seed in range(3))
by_triples = min(fits, key=lambda result: result.error).membership[order]

pairs = np.zeros((len(group), len(group)))
for triple in triples:
    for i in triple:
        for j in triple:
            pairs[i, j] += i != j
by_pairs = symnmf.factorize(pairs, blocks, random_state=0).membership

figure, axes = plt.subplots(1, 3, figsize=(8.5, 4), width_ratios=(2, 1, 1), layout="constrained")
axes[0].imshow(pairs, cmap="Blues", aspect="auto")
axes[0].set_title("pairs", fontsize=10)
for ax, shares, title in zip(
    axes[1:], (by_pairs, by_triples), ("U from pairs", "U from triples"), strict=True
):
    ax.imshow(shares, cmap="Blues", aspect="auto", vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(title, fontsize=10)
for ax in axes:
    ax.set_axis_off()

# %%
for title, shares in (("pairs", by_pairs), ("triples", by_triples)):
    print(f"{title:8} {adjusted_rand_score(group, shares.argmax(axis=1)):.2f}")

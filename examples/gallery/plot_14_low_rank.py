"""
100 000 points without a matrix
===============================

The similarity of two points is the inner product of their features. The matrix of all pairs would
take 80 GB. It is never formed: :class:`symnmf.storage.LowRank` keeps the features.
"""

import matplotlib.pyplot as plt
import numpy as np

import symnmf

rng = np.random.default_rng(0)
n, features, topics = 100_000, 12, 4
patterns = rng.dirichlet(np.full(features, 0.3), topics)
truth = rng.integers(topics, size=n)
B = patterns[truth] * rng.uniform(0.5, 1.5, (n, 1)) + 0.02 * rng.random((n, features))

X = symnmf.storage.LowRank(B)
result = symnmf.factorize(X, topics, random_state=0)

figure, axes = plt.subplots(1, topics, figsize=(10, 2.6), sharey=True, layout="constrained")
for column, ax in enumerate(axes):
    shares = [result.membership[truth == topic, column] for topic in range(topics)]
    ax.boxplot(shares, showfliers=False, tick_labels=list("ABCD"))
    ax.set_title(f"column {column} of U", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of a point's row")
axes[0].set_xlabel("true pattern")

# %%
print(f"{result.status} after {result.n_iter} iterations, error {result.error:.4f}")
print(f"accuracy {symnmf.metrics.clustering_accuracy(truth, result.labels):.3f}")

"""
Links and words together
========================

Sixty papers on each of three topics cite each other and use words. The citations alone mix up
many papers, and so do the words alone. One U for both finds most of the topics, and W says which
words each of them is about. (The papers are drawn at random.)
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import symnmf

rng = np.random.default_rng(0)
topics = ["graphs", "proteins", "markets"]
topic = np.repeat([0, 1, 2], 60)
own = [f"{name} {i}" for name in topics for i in range(1, 13)]
of_topic = np.append(np.repeat([0, 1, 2], 12), np.full(12, -1))
words = [*own, *(f"common {i}" for i in range(1, 13))]

chance = np.where(topic[:, None] == topic, 0.09, 0.03)
upper = np.triu(rng.random(chance.shape) < chance, 1)
links = sp.csr_array((upper | upper.T).astype(float))
rate = np.where(of_topic == -1, 0.25, np.where(topic[:, None] == of_topic, 0.2, 0.06))
uses = (rng.random(rate.shape) < rate).astype(float)

found = symnmf.communities(links, 3, attributes=uses, random_state=0)
for community, telling in zip(found, found.about(4, names=words), strict=True):
    print(len(community), "papers about", ", ".join(telling))

# %%
# How much words count beside citations was chosen without labels, by how well held-out citations
# and words are predicted:

chosen = found.attribute_weight.value.weight
print(f"weight {chosen:.2f}, of {len(found.attribute_weight.tried)} that were tried")

# %%
# The weight in between is better than either end.

weights = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
agreement = []
for weight in weights:
    labels = symnmf.communities(
        links, 3, attributes=uses, attribute_weight=weight, random_state=0
    ).labels
    agreement.append(adjusted_rand_score(topic, labels))
ours = adjusted_rand_score(topic, found.labels)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
left.semilogx(weights, agreement, "o-", label="given weights")
left.plot(chosen, ours, "D", ms=9, label="chosen weight")
left.set(xlabel="weight of the words", ylabel="adjusted Rand index", ylim=(0, 1))
left.set_title("Neither links nor words alone")
left.legend()
W = found.result.W * np.linalg.norm(found.result.U, axis=0)
shown = right.imshow(W.T, aspect="auto", cmap="Blues")
right.set(xlabel="word", ylabel="community", yticks=range(3))
right.set_xticks(5.5 + 12 * np.arange(4), [*topics, "common"])
right.set_title("W: what each community is about")
figure.colorbar(shown, ax=right)
plt.show()

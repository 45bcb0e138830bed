"""
My own similarity: words that look alike
========================================

Any symmetric table of similarities will do. Here two words are as similar as the share of letter
pairs that they have in common.
"""

import numpy as np

from symnmf import SymNMF, graphs, plots

families = {
    "run": "running runner runs rerun outrun",
    "walk": "walking walker walks sidewalk",
    "sing": "singing singer sings sing resing",
    "read": "reading reader reads reread",
    "paint": "painting painter paints repaint",
}
words = " ".join(families.values()).split()
parts = [{word[i : i + 2] for i in range(len(word) - 1)} for word in words]
A = np.array([[len(p & q) / len(p | q) for q in parts] for p in parts])
np.fill_diagonal(A, 0)

model = SymNMF(n_clusters=5, affinity="precomputed", random_state=0)
model.fit(graphs.normalize(A, 5))
figure = plots.similarity(A, model.labels_)

# %%
for cluster in range(5):
    print(
        cluster,
        *(word for word, label in zip(words, model.labels_, strict=True) if label == cluster),
    )

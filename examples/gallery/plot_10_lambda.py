"""
What lambda does
================

The paper's methods work with two factors, U and V, and a coupling lambda that pulls them together.
With a lambda that is too small they stay apart. With a very large one they agree at once and
hardly move. The rule of this library begins small and rises on evidence.
"""

import matplotlib.pyplot as plt

import symnmf

X, _ = symnmf.datasets.synthetic(150, 8, 0.1, random_state=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
rules = {"lambda = 1e-6": 1e-6, "the bound of theory": "theory", "rising (the default)": "rising"}
for label, rule in rules.items():
    result = symnmf.factorize(
        X, 8, solver="symhals", coupling=rule, tol=0, max_iter=600, random_state=0
    )
    left.semilogy(result.history["consensus"], label=label)
    right.semilogy(result.history["error"], label=label)
left.set_title("‖U − V‖", fontsize=10)
right.set_title("error of U Uᵀ", fontsize=10)
for ax in (left, right):
    ax.set_xlabel("iteration")
    ax.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)

"""
Solvers side by side
====================

Six methods run from the same start. The height of a curve shows how far the method is from a
critical point. The default, ``auto``, reaches one after a few dozen iterations.
"""

import symnmf
from symnmf import plots

X, _ = symnmf.datasets.synthetic(200, 10, 0.1, random_state=0)
names = ["auto", "symanls", "symhals", "a-symhals", "pgd", "beta-snmf"]
table = symnmf.compare(X, 10, names, init="scaled-random", max_iter=400, random_state=0)

figure = plots.convergence(table, y="stationarity")

# %%
final = table.final()
for name, error in sorted(
    zip(final["solver"], final["error"], strict=True), key=lambda row: row[1]
):
    print(f"{name:10} {error:.3e}")

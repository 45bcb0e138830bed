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
table = symnmf.compare(X, 10, names, tol=0, max_iter=400, random_state=0)

figure = plots.convergence(table, y="stationarity")

# %%
for (name, _), result in sorted(table.results.items(), key=lambda row: row[1].error):
    print(f"{name:10} {result.error:.3e}")

"""
New points
==========

A fitted model places points that it has not seen. The pale colours show where each place of the
plane would go.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from symnmf import SymNMF

points, _ = make_moons(400, noise=0.06, random_state=0)
model = SymNMF(n_clusters=2, random_state=0).fit(points)

across, up = np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.2, 1.7, 90))
places = model.predict(np.column_stack([across.ravel(), up.ravel()])).reshape(across.shape)

figure, ax = plt.subplots(figsize=(7, 4.4))
shades = np.array([[0.78, 0.87, 0.96], [1.0, 0.89, 0.78]])
ax.imshow(shades[places], extent=(-1.6, 2.6, -1.2, 1.7), origin="lower", aspect="auto")
ax.scatter(*points.T, c=np.array(["tab:blue", "tab:orange"])[model.labels_], s=9)
ax.set_axis_off()

"""Labels of the default settings agree with known classes as much as they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets as made
from sklearn.metrics import normalized_mutual_info_score

from symnmf import SymNMF, communities, datasets

pytestmark = pytest.mark.filterwarnings("ignore")  # of components and weak clusters

#: NMI with the classes, the median of ten seeds (benchmarks/quality.py has more data sets).
NETWORKS = {"karate": 0.677, "dolphins": 0.889, "football": 0.924, "polbooks": 0.574}
IMAGES = {"orl": 0.902, "coil20": 0.882}
TABLES = {"iris": 0.746, "wine": 0.847, "digits": 0.861}
STOCKS = {"signed_stocks_2000": 0.414, "signed_stocks_2008": 0.521}

TOLERANCE = 0.01


def agreement(target: np.ndarray, labels: np.ndarray) -> float:
    return float(normalized_mutual_info_score(target, labels))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, real_data: Any) -> None:
    data = datasets.load(name, real_data)
    assert data.target is not None
    found = communities(data.data, len(np.unique(data.target)), random_state=0)
    assert agreement(data.target, found.labels) >= NETWORKS[name] - TOLERANCE


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, real_data: Any) -> None:
    data = datasets.load(name, real_data)
    assert data.target is not None
    model = SymNMF(len(np.unique(data.target)), random_state=0).fit(data.data)
    assert agreement(data.target, model.labels_) >= IMAGES[name] - TOLERANCE


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    X, target = getattr(made, f"load_{name}")(return_X_y=True)
    if name != "digits":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SymNMF(len(np.unique(target)), random_state=0).fit(X)
    assert agreement(target, model.labels_) >= TABLES[name] - TOLERANCE


@pytest.mark.parametrize("name", STOCKS)
def test_correlations(name: str, real_data: Any) -> None:
    with np.load(real_data / f"{name}.npz") as stored:
        X, target = stored["X"].astype(float), stored["y"]
    np.fill_diagonal(X, 0.0)
    found = communities(X, 10, allow_negative=True, random_state=0)
    assert agreement(target, found.labels) >= STOCKS[name] - TOLERANCE

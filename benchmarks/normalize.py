"""What ``SymNMF(normalize="auto")`` chooses for given similarities, beside both choices.

python benchmarks/normalize.py          NMI as they are, normalised, and chosen without labels
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import symnmf
from planted import equal_groups, points

Case = tuple[str, Any, np.ndarray]


def with_hubs(groups: int, mixing: float, seed: int, n: int = 1200) -> tuple[Any, np.ndarray]:
    """A degree-corrected block model with a few very large degrees."""
    rng = np.random.default_rng(seed)
    group, size = rng.integers(groups, size=n), np.minimum(rng.pareto(1.6, n) + 0.2, 30)
    apart = group[:, None] != group
    chance = np.outer(size, size) * np.where(apart, mixing * 2 / groups, 1.0)
    chance *= 25 * n / chance.sum()
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), group


def correlations(seed: int, n: int = 200, groups: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Positive correlations of noisy series, which follow their group more or less."""
    rng = np.random.default_rng(seed)
    group, length = rng.integers(groups, size=n), 150
    common = rng.standard_normal((groups, length))
    strength = rng.uniform(0.2, 1.0, n)
    series = strength[:, None] * common[group] + rng.standard_normal((n, length))
    series += 0.3 * rng.standard_normal(length)
    C = np.asarray(np.corrcoef(series))
    np.fill_diagonal(C, 0)
    return np.maximum(C, 0), group


def networks() -> Iterator[Case]:
    names = (
        "karate",
        "dolphins",
        "football",
        "polbooks",
        "email_eu_core",
        "planetoid_cora",
        "planetoid_citeseer",
    )
    for name in names:
        data = symnmf.datasets.load(name)
        assert data.target is not None
        yield name, sp.csr_array(data.data).astype(float), data.target
    for seed in (0, 1):
        yield ("two groups with hubs", *with_hubs(2, 0.12, seed))
        yield ("five groups with hubs", *with_hubs(5, 0.3, seed))
    yield "block model q = 3, SNR 2", equal_groups(3, 2.0, 0), np.arange(800) % 3


def matrices() -> Iterator[Case]:
    from sklearn import datasets
    from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

    for seed in (0, 1):
        C, group = correlations(seed)
        yield "correlations", C, group
        kept = np.where(np.quantile(C, 0.85) < C, C, 0.0)
        yield "correlations, the largest 15%", sp.csr_array(kept), group
    for name in ("wine", "iris"):
        X, target = points(name, 0), getattr(datasets, f"load_{name}")().target
        gaps = ((X[:, None] - X) ** 2).sum(axis=2)
        yield f"{name}, rbf by the median", np.exp(-gaps / np.median(gaps)), target
        yield f"{name}, rbf by columns", rbf_kernel(X), target
    X, target = datasets.load_digits(return_X_y=True)
    X, target = X[:800], target[:800]
    yield "digits, cosine", cosine_similarity(X), target
    yield "digits, products", X @ X.T / 100, target
    yield "digits, rbf", rbf_kernel(X, gamma=1e-3), target
    for name in ("orl", "coil20"):
        data = symnmf.datasets.load(name)
        assert data.target is not None
        rows = np.asarray(data.data, dtype=float)[:800]
        yield f"{name}, cosine", cosine_similarity(rows), data.target[:800]


def main() -> None:
    warnings.simplefilter("ignore")
    print("| similarities | clusters | as they are | normalised | chosen |")
    print("| --- | --- | --- | --- | --- |")
    scores = []
    for name, A, target in (*networks(), *matrices()):
        k = len(np.unique(target))
        row = [
            normalized_mutual_info_score(
                target,
                symnmf.SymNMF(k, affinity="precomputed", normalize=how, random_state=0)
                .fit(A)
                .labels_,
            )
            for how in (False, True, "auto")
        ]
        scores.append(row)
        print(f"| {name} | {k} | " + " | ".join(f"{one:.3f}" for one in row) + " |", flush=True)
    print("| mean | | " + " | ".join(f"{one:.3f}" for one in np.mean(scores, axis=0)) + " |")


if __name__ == "__main__":
    main()

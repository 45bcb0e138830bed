"""Signed graphs: communities of symnmf beside those of the positive part and of SPONGE.

    python benchmarks/signed.py [--seeds 5] [--data FOLDER]

Planted graphs, and two years of stock correlations with the diagonal set to 0 where the data are.
SPONGE is the symmetric version of Cucuringu, Davies, Glielmo and Tyagi (AISTATS 2019), with both
regularisation weights at 1: the generalised eigenvectors of L+_sym + tau- I and L-_sym + tau+ I to
the k smallest eigenvalues, then k-means with 20 starts.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import symnmf

#: Nodes, groups, rates of positive links and of negative ones, inside and between groups.
PLANTED = {
    "both signs, 10% wrong": (300, 5, (0.09, 0.01), (0.01, 0.09)),
    "both signs, 25% wrong": (500, 5, (0.075, 0.025), (0.025, 0.075)),
    "only negative links informative": (300, 3, (0.08, 0.08), (0.0, 0.12)),
    "mostly negative links informative": (400, 3, (0.07, 0.06), (0.005, 0.11)),
    "only positive links informative": (300, 5, (0.12, 0.03), (0.05, 0.05)),
}
YEARS = (2000, 2008)

Rates = tuple[float, float]
Graph = tuple[Any, np.ndarray]


def planted(n: int, k: int, positive: Rates, negative: Rates, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    same = y[:, None] == y
    drawn = rng.random((n, n))
    above, below = drawn < np.where(same, *positive), drawn > 1 - np.where(same, *negative)
    A = np.triu(above.astype(float) - below, 1)
    return sp.csr_array(A + A.T), y


def stocks(folder: Path, year: int) -> Graph:
    stored = np.load(folder / f"signed_stocks_{year}.npz")
    A = stored["X"].astype(float)
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.0)
    return A, stored["y"]


def sponge_sym(
    A: Any, k: int, seed: int, tau_plus: float = 1.0, tau_minus: float = 1.0
) -> np.ndarray:
    """Return the labels of SPONGE_sym."""
    from sklearn.cluster import KMeans

    full = A.toarray() if sp.issparse(A) else A

    def laplacian(part: np.ndarray) -> np.ndarray:
        ends = part.sum(axis=1)
        root = 1.0 / np.sqrt(np.where(ends > 0, ends, 1.0))
        return np.diag((ends > 0).astype(float)) - root[:, None] * part * root

    above, below = laplacian(np.maximum(full, 0)), laplacian(np.maximum(-full, 0))
    eye = np.eye(len(full))
    _, vectors = scipy.linalg.eigh(
        above + tau_minus * eye, below + tau_plus * eye, subset_by_index=[0, k - 1]
    )
    return np.asarray(KMeans(k, n_init=20, random_state=seed).fit_predict(vectors))


def scores_of(A: Any, y: np.ndarray, k: int, seed: int) -> tuple[list[float], float]:
    """Return the adjusted Rand indices of symnmf, of its positive part, and of SPONGE."""
    positive = A.maximum(0) if sp.issparse(A) else np.maximum(A, 0)
    signed = symnmf.communities(A, k, allow_negative=True, random_state=seed)
    alone = symnmf.communities(positive, k, random_state=seed)
    found = (signed.labels, alone.labels, sponge_sym(A, k, seed))
    assert signed.negative_weight is not None
    return [adjusted_rand_score(y, labels) for labels in found], signed.negative_weight.value


def main() -> None:
    parser = argparse.ArgumentParser(description="Signed graphs beside SPONGE.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=os.environ.get("SYMNMF_DATA"))
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| graph | symnmf | positive part | SPONGE | c |")
    print("| --- | --- | --- | --- | --- |")
    cases = {
        name: [(*planted(*case, seed), case[1]) for seed in range(told.seeds)]
        for name, case in PLANTED.items()
    }
    if told.data is not None:
        for year in YEARS:
            A, y = stocks(Path(told.data), year)
            cases[f"stocks of {year}"] = [(A, y, 10)] * told.seeds
    for name, graphs in cases.items():
        found = [scores_of(A, y, k, seed) for seed, (A, y, k) in enumerate(graphs)]
        mean = np.mean([scores for scores, _ in found], axis=0)
        weights = sorted({weight for _, weight in found})
        shown = ", ".join(f"{weight:g}" for weight in weights)
        print(f"| {name} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.3f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()

"""Whether the number of neighbours can be chosen without labels.

    python benchmarks/neighbours.py              all data sets
    python benchmarks/neighbours.py --only tdt2 digits

For each data set and several numbers of neighbours: the mutual information (NMI) with known
classes, and what criteria that need no classes say. Then the NMI of what each criterion chooses.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

import symnmf
from symnmf import datasets, graphs
from symnmf.graphs.partitions import Partition
from symnmf.metrics import adjusted_rand, normalized_mutual_info

FACTORS = (0.5, 1.0, 2.0, 4.0, 8.0)  # times the default
DATA: dict[str, tuple[str, dict[str, Any], str]] = {
    "newsgroups": ("newsgroups", {}, "cosine"),
    "news-counts": ("newsgroups", {"weighting": "counts"}, "cosine"),
    "tdt2": ("tdt2", {}, "cosine"),
    "digits": ("digits", {}, "self-tuning"),
    "mnist": ("mnist_train3147", {}, "self-tuning"),
    "coil20": ("coil20", {}, "self-tuning"),
    "orl": ("orl", {}, "self-tuning"),
    "wine": ("wine", {}, "self-tuning"),
}
CRITERIA = ("modularity", "above chance", "likelihood", "eigengap", "one graph", "stability")


def read(name: str) -> tuple[Any, np.ndarray]:
    if name == "wine":
        from sklearn.datasets import load_wine

        X, y = load_wine(return_X_y=True)
        return (X - X.mean(axis=0)) / X.std(axis=0), y
    loader, options, _ = DATA[name]
    data = datasets.load(loader, **options)
    assert data.target is not None
    return data.data, data.target


def eigengap(A: Any, k: int) -> float:
    """Return by what factor 1 - lambda rises after the k-th eigenvalue."""
    start = np.random.default_rng(0).random(A.shape[0])
    values = np.sort(eigsh(A, k=k + 1, which="LA", v0=start, return_eigenvectors=False))[::-1]
    rest = np.maximum(1.0 - values, 1e-3)
    return float(rest[k] / rest[k - 1])


def study(name: str) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return the numbers of neighbours, the NMI of each, and the criteria of each."""
    X, y = read(name)
    k, kind = len(np.unique(y)), DATA[name][2]
    n = X.shape[0]
    default = int(np.log2(n)) + 1
    numbers = [min(max(2, round(factor * default)), n - 1) for factor in FACTORS]
    reference: Any = graphs.build(X, kind, n_neighbors=default)
    labels, rows = [], []
    for number in numbers:
        model = symnmf.SymNMF(k, affinity=kind, n_neighbors=number, random_state=0).fit(X)
        A = sp.csr_array(model.affinity_matrix_)
        found, told = Partition.of(A, model.labels_, k), model.quality_.verdict
        chance = np.nan if told is None else told.null_modularity
        labels.append(model.labels_)
        rows.append(
            [
                found.modularity,
                found.modularity - chance,
                found.gain / max(found.entries, 1),
                eigengap(A, k),
                Partition.of(reference, model.labels_, k).modularity,
            ]
        )
    agree = np.array([[adjusted_rand(one, other) for one in labels] for other in labels])
    stable = [
        np.mean([agree[i, j] for j in (i - 1, i + 1) if 0 <= j < len(numbers)])
        for i in range(len(numbers))
    ]
    scores = np.array([normalized_mutual_info(y, one) for one in labels])
    return numbers, scores, np.column_stack([np.array(rows), stable])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(DATA), choices=list(DATA))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = " | ".join(f"x {factor:g}" for factor in FACTORS)
    print(f"| data | default | {heads} | {' | '.join(CRITERIA)} |")
    print("| --- " * (2 + len(FACTORS) + len(CRITERIA)) + "|")
    chosen = []
    for name in args.only:
        numbers, scores, criteria = study(name)
        picks = [
            scores[int(np.nanargmax(column))] if np.isfinite(column).any() else scores[1]
            for column in criteria.T
        ]
        chosen.append([*scores, *picks])
        told = " | ".join(f"{one:.3f}" for one in chosen[-1])
        print(f"| {name} | {numbers[1]} | {told} |", flush=True)
    told = " | ".join(f"{one:.3f}" for one in np.mean(chosen, axis=0))
    print(f"| mean | | {told} |")


if __name__ == "__main__":
    main()

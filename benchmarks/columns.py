"""Stability of columns: symnmf.consensus on digits and planted data, and pysrf's ensemble.

    python benchmarks/columns.py
    python benchmarks/columns.py --pysrf FOLDER    # a checkout of florianmahner/pysrf

pysrf is not on PyPI for every Python; its pure Python code runs from a checkout.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import symnmf
from symnmf import datasets, graphs, metrics
from symnmf.columns.matching import matched, unit_columns

RUNS = 20


def planted(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three groups of a dense similarity, for four columns."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(3), 30)
    linked = np.where(truth[:, None] == truth, 0.7, 0.02)
    upper = np.triu(rng.random((90, 90)) < linked, 1)
    return (upper | upper.T).astype(float), truth


def pairwise(runs: list[np.ndarray]) -> np.ndarray:
    """Mean cosine of matched columns over all pairs of runs, the stablest first."""
    aligned = [U[:, matched(runs[0], U)] for U in runs]
    units = [unit_columns(U) for U in aligned]
    total = np.sum(units, axis=0)
    own = sum(np.sum(unit**2, axis=0) for unit in units)
    count = len(runs)
    return np.asarray(np.sort((np.sum(total**2, axis=0) - own) / (count * (count - 1)))[::-1])


def with_pysrf(X: np.ndarray, rank: int) -> list[np.ndarray]:
    """pysrf's EnsembleFit and AlignedConsensus; the aligned factors."""
    from pysrf import SRF
    from pysrf.consensus import AlignedConsensus, EnsembleFit

    stacked = EnsembleFit(SRF(rank=rank), n_runs=RUNS, n_jobs=1).fit(X).transform(X)
    return list(AlignedConsensus(rank).fit(stacked).aligned_embeddings_)


def report(name: str, X: Any, truth: np.ndarray, rank: int, *, pysrf: bool) -> None:
    """Print both on one matrix."""
    began = time.process_time()
    found = symnmf.consensus(X, rank, n_init=RUNS, random_state=0)
    seconds = time.process_time() - began
    ari = metrics.adjusted_rand(truth, found.labels)
    print(f"{name}: symnmf {found.stability.round(2)} mean {found.stability.mean():.3f}, ", end="")
    print(f"ARI {ari:.3f}, errors to {found.best.error:.5f}, {seconds:.1f} s CPU")
    if not pysrf:
        return
    dense = X.toarray() if hasattr(X, "toarray") else X
    began = time.process_time()
    runs = with_pysrf(dense, rank)
    seconds = time.process_time() - began
    stable = pairwise(runs)
    errors = [np.sum((dense - U @ U.T) ** 2) / np.sum(dense**2) for U in runs]
    ari = metrics.adjusted_rand(truth, np.median(runs, axis=0).argmax(axis=1))
    print(f"{name}: pysrf  {stable.round(2)} mean {stable.mean():.3f}, ", end="")
    print(f"ARI {ari:.3f}, errors to {min(errors):.5f}, {seconds:.1f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pysrf", help="a checkout of florianmahner/pysrf")
    parser.add_argument("--rows", type=int, default=600, help="images of digits, the first ones")
    arguments = parser.parse_args()
    if arguments.pysrf:
        sys.path.insert(0, arguments.pysrf)
    for rank in (3, 4):
        X, truth = planted(0)
        report(f"planted, {rank} columns", X, truth, rank, pysrf=bool(arguments.pysrf))
    digits = datasets.load("digits")
    assert digits.target is not None
    whole = graphs.self_tuning(digits.data)
    report("digits, all", whole, digits.target, 10, pysrf=False)
    rows = slice(arguments.rows)
    X = graphs.self_tuning(digits.data[rows])
    report(f"digits, {arguments.rows}", X, digits.target[rows], 10, pysrf=bool(arguments.pysrf))


if __name__ == "__main__":
    main()

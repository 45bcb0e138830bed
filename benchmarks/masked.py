"""Hidden entries: error on what was hidden, time against dense EM, and a million nodes.

``python benchmarks/masked.py hidden`` prints a table, ``... large`` a few lines.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf


def planted(n: int, r: int, sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X = |G||G|^T + sigma |N| and its noise."""
    rng = np.random.default_rng(seed)
    factor = np.abs(rng.standard_normal((n, r)))
    noise = np.triu(np.abs(rng.standard_normal((n, n))))
    noise = sigma * (noise + np.triu(noise, 1).T)
    return factor @ factor.T + noise, noise


def mirrored(A: np.ndarray) -> np.ndarray:
    return np.triu(A) + np.triu(A, 1).T


def expectation_maximisation(
    X: np.ndarray, mask: np.ndarray, U: np.ndarray, until: float, seconds: float
) -> tuple[np.ndarray, float, int]:
    """Fill in U U^T, then one HALS sweep over both factors of the dense array; and again.

    Stops when the error on the observed entries is ``until`` or the time is up.
    """
    V, coupling = U.copy(), 0.01 * float(np.sum(U * U)) / U.shape[1]
    size = np.sum(X[mask] ** 2)
    began, steps = time.process_time(), 0
    while time.process_time() - began < seconds:
        steps += 1
        for moving, fixed in ((U, V), (V, U)):
            filled = np.where(mask, X, moving @ fixed.T)
            cross = filled @ fixed + coupling * fixed
            gram = fixed.T @ fixed + coupling * np.eye(len(fixed.T))
            for k in range(len(gram)):
                rest = cross[:, k] - moving @ gram[:, k] + moving[:, k] * gram[k, k]
                moving[:, k] = np.maximum(rest / gram[k, k], 0.0)
        if steps % 5 == 0 and np.sum((X - U @ U.T)[mask] ** 2) / size <= until:
            break
    return U, time.process_time() - began, steps


def hidden(args: argparse.Namespace) -> None:
    print("| hidden | steps | CPU s | E observed | hidden / noise | objective rose |", end="")
    print(" dense EM to 1.01 E: CPU s (steps) | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for share in (0.5, 0.9):
        X, noise = planted(args.n, args.rank, 0.1, seed=0)
        rng = np.random.default_rng(1)
        mask = mirrored(rng.random(X.shape)) >= share
        U0 = rng.random((args.n, args.rank))
        symnmf.factorize(X, args.rank, mask=mask, init=U0, max_iter=12, tol=0)  # compile
        began = time.process_time()
        ours = symnmf.factorize(X, args.rank, mask=mask, init=U0)
        seconds = time.process_time() - began
        missed = np.sqrt(np.mean((X - ours.U @ ours.U.T)[~mask] ** 2))
        ratio = missed / np.sqrt(np.mean(noise[~mask] ** 2))
        rose = np.diff(ours.history["objective"]).max() > 1e-12 * ours.history["objective"][0]
        start = U0 * np.sqrt(np.sum(X[mask]) / np.sum((U0 @ U0.T)[mask]))
        until = 1.01 * ours.error
        U, other, steps = expectation_maximisation(X, mask, start, until, args.seconds)
        reached = np.sum((X - U @ U.T)[mask] ** 2) / np.sum(X[mask] ** 2)
        more = "" if reached <= until else f", then at {reached / ours.error:.3g} E"
        print(
            f"| {share:.0%} | {ours.n_iter} | {seconds:.2f} | {ours.error:.3e} | {ratio:.3f} | "
            f"{'yes' if rose else 'never'} | {other:.1f} ({steps}{more}) | {other / seconds:.1f} |",
            flush=True,
        )


def large(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    n, r, pairs = args.n, args.rank, args.pairs
    i, j = rng.integers(n, size=(2, pairs), dtype=np.int32)
    noise = rng.standard_normal(pairs, dtype=np.float32)
    pattern = sp.coo_array((noise, (i, j)), shape=(n, n)).tocsr()
    pattern = pattern + pattern.T
    del i, j, noise
    factor = rng.random((n, r))
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(pattern.indptr))
    values = np.empty(pattern.nnz)
    for first in range(0, pattern.nnz, 1 << 20):
        part = slice(first, first + (1 << 20))
        values[part] = np.einsum("ij,ij->i", factor[rows[part]], factor[pattern.indices[part]])
    values *= np.exp(args.noise * pattern.data)
    del rows, factor
    X = sp.csr_array((values, pattern.indices, pattern.indptr), shape=(n, n))
    print(f"{X.nnz} stored entries, {X.data.nbytes + X.indices.nbytes >> 20} MB", flush=True)
    spent = {}
    problems = {
        "zeros": symnmf.Problem(X, n_jobs=1),
        "hidden": symnmf.Problem(X, missing="unstored", n_jobs=1),
    }
    for name, matrix in problems.items():
        options: dict[str, Any] = {"random_state": 0, "tol": 0, "solver": args.solver}
        counts, times = (3, 3, 3 + args.steps), []  # the first compiles
        for steps in counts:
            began = time.process_time()
            found = symnmf.factorize(matrix, r, max_iter=steps, **options)
            times.append(time.process_time() - began)
        spent[name] = (times[2] - times[1]) / args.steps
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{name}: {spent[name]:.2f} CPU s per iteration with its evaluation, error "
            f"{found.error:.4g}, peak memory so far {peak} MB",
            flush=True,
        )
    print(f"ratio {spent['hidden'] / spent['zeros']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("hidden")
    one.add_argument("-n", type=int, default=2000)
    one.add_argument("--rank", type=int, default=20)
    one.add_argument("--seconds", type=float, default=300.0, help="most for the opponent")
    one.set_defaults(run=hidden)
    two = commands.add_parser("large")
    two.add_argument("-n", type=int, default=1_000_000)
    two.add_argument("--rank", type=int, default=16)
    two.add_argument("--pairs", type=int, default=10_000_000)
    two.add_argument("--steps", type=int, default=8)
    two.add_argument("--noise", type=float, default=1.0, help="in the logarithm of an entry")
    two.add_argument("--solver", default="auto")
    two.set_defaults(run=large)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()

"""Symmetric tensors: starts that find a planted factor, hyperedges per second, tensorly, graphs.

    python benchmarks/tensors.py [planted] [exact] [tensorly] [hyperedges] [graphs]

Without arguments all parts run. ``tensorly`` needs that package; ``graphs`` reads football and
email-Eu-core from $SYMNMF_DATA or ../shared/data. Times are of this process on all cores; those of
``hyperedges`` are medians, with the processor time of the same iterations beside them.
"""

from __future__ import annotations

import itertools
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import symnmf
from symnmf import tensors
from symnmf.run.multistart import Plan
from symnmf.run.result import Snapshot
from symnmf.run.settings import Settings

DATA = Path(os.environ.get("SYMNMF_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def cp(B: np.ndarray) -> np.ndarray:
    """B's columns, each three times along itself, added up."""
    return np.einsum("ir,jr,kr->ijk", B, B, B, optimize=True)


def planted(n: int, r: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A tensor of rank r with symmetric noise of this relative size, and its factor."""
    rng = np.random.default_rng(seed)
    B = np.abs(rng.standard_normal((n, r)))
    T = cp(B)
    E = rng.standard_normal(T.shape)
    E = np.sum([E.transpose(p) for p in itertools.permutations(range(3))], axis=0)
    return np.maximum(T + noise * np.linalg.norm(T) / np.linalg.norm(E) * E, 0.0), B


def worst_match(U: np.ndarray, B: np.ndarray) -> float:
    """The smallest cosine between matched columns."""
    cosines = (U / np.linalg.norm(U, axis=0)).T @ (B / np.linalg.norm(B, axis=0))
    return float(cosines[linear_sum_assignment(-cosines)].min())


def run_planted() -> None:
    """Ten starts on n = 200, r = 10, noise 1%."""
    T, B = planted(200, 10, 0.01)
    backend = tensors.as_tensor(T)
    print("n = 200, r = 10, noise 1%: start, worst match, E, iterations, seconds")
    for seed in range(10):
        run = symnmf.factorize(backend, 10, random_state=seed)
        match, seconds = worst_match(run.U, B), run.history["seconds"][-1]
        print(f"  {seed}  {match:.7f}  {run.error:.4e}  {run.n_iter:4d}  {seconds:.2f}")


def run_exact() -> None:
    """An exact tensor of rank 3."""
    B = np.random.default_rng(0).random((40, 3))
    run = symnmf.factorize(tensors.as_tensor(cp(B)), 3, random_state=0, tol=0, max_iter=60)
    print(f"exact, n = 40, r = 3: E = {run.error:.2e} after {run.n_iter} iterations")


def run_tensorly() -> None:
    """Time to the same E as tensorly's HALS, whose factors are made symmetric afterwards."""
    import tensorly
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals

    for n, r, noise in ((100, 5, 0.01), (200, 10, 0.01)):
        T, B = planted(n, r, noise)
        backend = tensors.as_tensor(T)
        symnmf.factorize(backend, r, random_state=0, max_iter=12, tol=0)  # compile
        print(f"n = {n}, r = {r}, noise {noise:.0%}: method, seconds, E, worst match")
        for name, method in (
            ("tensorly mu", non_negative_parafac),
            ("tensorly hals", non_negative_parafac_hals),
        ):
            for count in (50, 200):
                began = time.perf_counter()
                cp_tensor = method(
                    tensorly.tensor(T), r, n_iter_max=count, init="random", tol=0, random_state=0
                )
                seconds = time.perf_counter() - began
                weights, factors = cp_tensor
                U = _symmetrized(np.asarray(weights), [np.asarray(f) for f in factors])
                assert isinstance(backend, tensors.DenseTensor)
                error = backend.residual_sqnorm([U] * 3) / backend.sqnorm
                print(f"  {name}, {count} iterations: {seconds:.2f}  {error:.3e}  ", end="")
                print(f"{worst_match(U, B):.5f}")
        run = symnmf.factorize(backend, r, random_state=0)
        history = run.history
        print(
            f"  symnmf: {history['seconds'][-1]:.2f}  {run.error:.3e}  {worst_match(run.U, B):.5f}"
        )
        for level in (1e-2, 1e-3, 1.01 * run.error):
            first = np.flatnonzero(history["error"] <= level)[0]
            print(f"    E <= {level:.3e} after {history['seconds'][first]:.2f} s")


def _symmetrized(weights: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """The mean of the three factors, each column of the length that their product has."""
    lengths = weights * np.prod([np.linalg.norm(f, axis=0) for f in factors], axis=0)
    mean = np.mean([f / np.maximum(np.linalg.norm(f, axis=0), 1e-300) for f in factors], axis=0)
    return mean / np.maximum(np.linalg.norm(mean, axis=0), 1e-300) * np.cbrt(lengths)


def hypergraph(n: int, m: int, k: int, seed: int = 0) -> np.ndarray:
    """m hyperedges of three nodes, four in five of them inside one of k communities."""
    rng = np.random.default_rng(seed)
    members = np.argsort(rng.integers(0, k, n), kind="stable").reshape(k, -1)
    group = rng.integers(0, k, 2 * m)
    edges = members[group[:, None], rng.integers(0, members.shape[1], (2 * m, 3))]
    stray = rng.random(2 * m) < 0.2
    edges[stray] = rng.integers(0, n, (stray.sum(), 3))
    edges = np.sort(edges, axis=1)
    edges = np.unique(edges[(np.diff(edges, axis=1) > 0).all(axis=1)], axis=0)
    return edges[rng.permutation(len(edges))[:m]]


def run_hyperedges() -> None:
    """Time per iteration and memory, r = 16, on 100 000 nodes."""
    print("hyperedges, MB of the tensor, s to build, s per sweep and per Gauss-Newton step (CPU s)")
    n, r = 100_000, 16
    for m in (250_000, 500_000, 1_000_000, 2_000_000):
        edges = hypergraph(n, m, r)
        began = time.perf_counter()
        T = tensors.from_tuples(edges, side=n, repeated="unobserved")
        built = time.perf_counter() - began
        size = sum(a.nbytes for a in (T.indices, T.data, T.indptr, T.others, T.weights)) / 1e6
        busy: list[float] = []

        def watch(now: Snapshot, busy: list[float] = busy) -> None:
            busy.append(time.process_time())

        run = symnmf.factorize(T, r, random_state=0, tol=0, max_iter=18, callback=watch)
        steps, cpu = np.diff(run.history["seconds"]), np.diff(busy)
        sweeps, newton = np.s_[2:10], np.s_[10:18]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(
            f"  {m:8d}  {size:6.1f}  {built:.2f}  {np.median(steps[sweeps]):.3f}  "
            f"{np.median(steps[newton]):.3f}  ({np.median(cpu[sweeps]):.2f}, "
            f"{np.median(cpu[newton]):.2f})  peak {peak:.0f} MB"
        )


def run_graphs() -> None:
    """Communities by triangles and by edges, the best of ten starts."""
    print("graph, by, normalized, ARI, NMI (all nodes), E, seconds")
    for name in ("football", "email_eu_core"):
        with np.load(DATA / f"{name}.npz") as stored:
            edges, truth = stored["edges"], stored["y"].tolist()
        n, k = len(truth), len(set(truth))
        ends = np.concatenate([edges, edges[:, ::-1]]).T
        A = sp.csr_array((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n))
        plain = {
            "edges": A,
            "triangles": tensors.triangles(A)[0],
            "triangles, repeats zero": tensors.triangles(A, repeated="observed")[0],
        }
        for kind, X in plain.items():
            for normalized in (True, False):
                if normalized:
                    X_used = symnmf.graphs.normalize(X) if kind == "edges" else tensors.normalize(X)
                else:
                    X_used = X
                settings = Settings.of("auto", tol=1e-4, max_iter=500)
                began = time.perf_counter()
                plan = Plan(k, settings, n_init=10, init="scaled-random", random_state=0)
                best = plan.search(X_used).best
                labels = np.argmax(best.U, axis=1)
                print(
                    f"  {name}, {kind}, {normalized}: "
                    f"{adjusted_rand_score(truth, labels):.3f}  "
                    f"{normalized_mutual_info_score(truth, labels):.3f}  {best.error:.4f}  "
                    f"{time.perf_counter() - began:.1f}",
                    flush=True,
                )


PARTS = {
    "planted": run_planted,
    "exact": run_exact,
    "tensorly": run_tensorly,
    "hyperedges": run_hyperedges,
    "graphs": run_graphs,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()

"""What a GPU brings: ``make test-gpu``, or ``python benchmarks/gpu.py [part ...]``.

``--peer FOLDER`` runs AdaptGrow, the torch solver of github.com/NVIDIA/SymNMF-factors, from a
checkout of it on the same matrices.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

import symnmf
from symnmf.ops import Hals
from symnmf.ops.torch_ops import TorchOps
from symnmf.solvers import SOLVERS
from symnmf.storage import on_device

RANK = 50
SIZES = (20_000, 40_000)
DEVICE = "cuda"
RATES = (0.3, 1.0, 3.0)


def synthetic(n: int, rank: int, noise: float, seed: int = 0) -> torch.Tensor:
    """The paper's X = U U^T + noise |N|, drawn on the device in float32."""
    step, draws = 2048, torch.Generator(device="cuda").manual_seed(seed)
    U = torch.randn(n, rank, device="cuda", generator=draws).abs_()
    X = U @ U.T
    for i in range(0, n, step):
        for j in range(i, n, step):
            own, mirror = X[i : i + step, j : j + step], X[j : j + step, i : i + step]
            added = noise * torch.randn(own.shape, device="cuda", generator=draws).abs_()
            own += torch.triu(added) + torch.triu(added, 1).T if i == j else added
            mirror.copy_(own.T.clone())
    return X


def milliseconds(call: Callable[[], Any], repeats: int = 20) -> float:
    """The median time of a call, after two to warm up."""
    times = []
    for _ in range(repeats + 2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times[2:]))


def kernel_milliseconds(call: Callable[[], Any], kernel: str, repeats: int = 20) -> float:
    """The mean time of a kernel on the device, whatever it takes to launch it."""
    call()
    with torch.profiler.profile() as profile:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    found = [event for event in profile.key_averages() if event.key == kernel]
    return sum(event.self_device_time_total for event in found) / repeats / 1e3


def per_iteration(
    X: Any, solver: str = "auto", iterations: int = 25, rank: int = RANK, **options: Any
) -> float:
    """The median milliseconds of an iteration, after the first three."""
    settings = {"random_state": 0, "tol": 0.0, "max_iter": iterations, **options}
    history = symnmf.factorize(X, rank, solver=solver, **settings).history
    return 1e3 * float(np.median(np.diff(history["seconds"])[3:]))


def reached(history: Any, floor: float, share: float) -> float:
    """The seconds after which E was within ``share`` of the floor."""
    return float(history["seconds"][np.argmax(history["error"] <= (1 + share) * floor)])


def peer_result(X: torch.Tensor, folder: Path) -> None:
    sys.path.insert(0, str(folder))
    from adaptgrow import AdaptGrow  # type: ignore[import-not-found]

    lines = []
    for rate in RATES:
        torch.manual_seed(0)
        torch.cuda.synchronize()
        began = time.perf_counter()
        solver = AdaptGrow(lr=rate, max_iter=2000, verbose=False)
        H = solver.optimize(X, RANK)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        error = on_device(X).residual_sqnorm(H, H) / on_device(X).sqnorm  # type: ignore[operator]
        lines.append((error, f"lr {rate}: E {error:.3g} after {seconds:.2f} s"))
    print("    AdaptGrow, best of", len(RATES), "rates:", min(lines)[1])


def solution(peer: Path | None) -> None:
    """Time to within 10% and 0.1% of the noise floor, and what an iteration costs."""
    for n in SIZES:
        X = synthetic(n, RANK, 0.1)
        matrix = on_device(X)
        for seed in (0, 1, 2, 3):  # the first run compiles and is not shown
            result = symnmf.factorize(matrix, RANK, random_state=seed, tol=0.0, max_iter=70)
            floor = float(result.history["error"].min())
            if seed:
                near, close = (reached(result.history, floor, share) for share in (0.1, 0.001))
                print(f"n {n}: floor {floor:.4g}, +10% in {near:.3f} s, +0.1% in {close:.3f} s")
        V = matrix.ops.put(np.random.default_rng(0).random((n, RANK), dtype=np.float32))
        library = milliseconds(partial(torch.mm, X, V))
        product = milliseconds(partial(matrix.matmul, V))
        image, gram, out = matrix.matmul(V), matrix.ops.gram(V), matrix.ops.empty(V)
        call = partial(matrix.ops.sweep, Hals(1), V, image, gram, 0.1, out)
        sweep, kernel = milliseconds(call), kernel_milliseconds(call, "hals_kernel")
        split, auto = per_iteration(matrix, "a-symhals"), per_iteration(matrix)
        print(
            f"    product {product:.2f} ms (torch's {library:.2f}), sweep {sweep:.3f} (its "
            f"kernel {kernel:.3f}), a-symhals "
            f"{split:.2f} = {split / 2 / product:.2f} x two products ({split / 2 / library:.2f} x "
            f"torch's), auto {auto:.2f} = {auto / product:.2f} x one ({auto / library:.2f} x)"
        )
        if peer is not None:
            peer_result(X, peer)
        del X, matrix


def call(_: Path | None) -> None:
    """Seconds from the call to its return, at the default tolerance, every iteration recorded."""
    for n in SIZES:
        X = synthetic(n, RANK, 0.1)
        matrix: Any = on_device(X)
        U = torch.rand(n, RANK, device="cuda")
        kinds: tuple[Any, ...] = (matrix.ops, TorchOps("cuda"))
        fused, plain = (partial(ops.misfit, X, U) for ops in kinds)
        exact = partial(matrix._misfit, U, U, torch.float64)
        off = [abs(form() / exact() - 1) for form in (fused, plain)]
        print(
            f"n {n}: misfit by one kernel {milliseconds(fused):.2f} ms (off by {off[0]:.1e}), by "
            f"tiles {milliseconds(plain):.2f} ({off[1]:.1e}), in float64 "
            f"{milliseconds(exact, 3):.0f}; product {milliseconds(partial(matrix.matmul, U)):.2f}"
        )
        for init in ("scaled-random", "spectral", "sketch", "auto"):
            waited = []
            for seed in range(4):  # the first run compiles
                torch.cuda.synchronize()
                began = time.perf_counter()
                result = symnmf.factorize(X, RANK, init=init, random_state=seed)
                waited.append(time.perf_counter() - began)
            parts = {name: round(part, 3) for name, part in vars(result.seconds).items()}
            print(
                f"    {init}: {min(waited[1:]):.3f} to {max(waited[1:]):.3f} s, {result.n_iter} "
                f"iterations, {result.passes} readings, E {result.error:.4g}, {parts}",
                flush=True,
            )
        del X, matrix


def graphs(_: Path | None) -> None:
    """com-DBLP against two cores, and MNIST from images to labels."""
    from symnmf import SymNMF, datasets
    from symnmf.graphs import normalize

    A = normalize(datasets.load("com_dblp").data)
    for dtype in (np.float64, np.float32):
        X = A.astype(dtype)
        there = per_iteration(on_device(X), iterations=20)
        here = per_iteration(X, iterations=12, n_jobs=2)
        gain = here / there
        print(f"com-DBLP {X.dtype}: {here:.1f} ms on two cores, {there:.2f} there: {gain:.0f} x")
    mnist = datasets.load("mnist_full")
    SymNMF(10, device="cuda", random_state=0).fit(mnist.data[:3000])  # compiles
    began = time.perf_counter()
    A = symnmf.graphs.build(mnist.data, device="cuda")
    built = time.perf_counter() - began
    model = SymNMF(10, device="cuda", random_state=0).fit(mnist.data)
    total = time.perf_counter() - began - built
    assert mnist.target is not None
    accuracy = symnmf.metrics.clustering_accuracy(mnist.target, model.labels_)
    print(f"MNIST 70 000: {total:.1f} s (graph {built:.1f}), accuracy {accuracy:.3f}")


def agreement(_: Path | None) -> None:
    """Every solver from the same start here and there, float64: E after 30 iterations, labels."""
    X = symnmf.datasets.synthetic(2000, 20, 0.1, random_state=0)[0]
    graph = sp.csr_array(np.where(np.quantile(X, 0.98) < X, X, 0.0))
    start = np.random.default_rng(0).random((len(X), 20))
    for kind, A in (("dense", X), ("sparse", graph)):
        for solver in SOLVERS:
            run = partial(
                symnmf.factorize, rank=20, solver=solver, init=start, tol=0.0, max_iter=30
            )
            try:
                there = run(on_device(A, DEVICE))
            except symnmf.InputError:
                print(f"{kind} {solver}: on the processor only")
                continue
            here = run(A)
            apart = abs(there.error / here.error - 1)
            same = np.mean(here.labels == there.labels)
            print(f"{kind} {solver}: E {here.error:.6g}, off by {apart:.1e}, {same:.2%} of labels")


def masked(_: Path | None) -> None:
    """An iteration with half of the entries hidden, against one with all of them."""
    n = 20_000
    X = synthetic(n, RANK, 0.1)
    mask = np.random.default_rng(0).random((n, n)) < 0.5
    mask = np.triu(mask) | np.triu(mask, 1).T
    start = np.random.default_rng(0).random((n, RANK))
    for solver in ("auto", "a-symhals"):
        plain = per_iteration(symnmf.Problem(X), solver, init=start)
        hidden = per_iteration(symnmf.Problem(X, mask=mask), solver, init=start)
        print(
            f"n {n}, {solver}: {plain:.2f} ms an iteration, half hidden {hidden:.2f} ms: "
            f"{hidden / plain:.2f} times",
            flush=True,
        )


def crossover(_: Path | None) -> None:
    """Milliseconds of an iteration of the default on two cores and there, float32."""
    from symnmf.graphs import normalize

    for n in (500, 1000, 2000, 5000, 10_000, 20_000):
        for rank in (10, 50):
            X = synthetic(n, rank, 0.1)
            there = per_iteration(on_device(X), rank=rank)
            here = per_iteration(X.cpu().numpy(), rank=rank, iterations=12, n_jobs=2)
            print(f"| dense | {n} | {rank} | {here:.2f} | {there:.2f} | {here / there:.1f} |")
    draws = np.random.default_rng(0)
    for n in (10_000, 100_000, 1_000_000):
        ends = draws.integers(n, size=(2, 5 * n))
        A = sp.coo_array((np.ones(5 * n, np.float32), ends), shape=(n, n)).tocsr()
        A = normalize(A + A.T).astype(np.float32)
        for rank in (10, 50):
            there = per_iteration(on_device(A, "cuda"), rank=rank)
            here = per_iteration(A, rank=rank, iterations=12, n_jobs=2)
            print(f"| sparse | {n} | {rank} | {here:.2f} | {there:.2f} | {here / there:.1f} |")


def memory(_: Path | None) -> None:
    """The peak beside X, and the rate at which an X streams that does not fit."""
    from symnmf.storage.streamed_rows import StreamedRows
    from symnmf.storage.torch_matrix import TorchDense

    n = 40_000
    device = torch.device("cuda", 0)
    X = synthetic(n, RANK, 0.1)
    matrix = on_device(X)
    for solver in ("a-symhals", "auto"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        symnmf.factorize(matrix, RANK, solver=solver, random_state=0, tol=0.0, max_iter=20)
        extra = (torch.cuda.max_memory_allocated() - before) / (4 * n * RANK)
        print(f"{solver}: peak is X and {extra:.1f} factors")
    host = X.cpu().pin_memory()
    V = torch.rand(n, RANK, device=device)
    expected = matrix.matmul(V)
    del matrix
    torch.cuda.synchronize()
    began = time.perf_counter()
    X.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    link = host.nbytes / (time.perf_counter() - began) / 1e9
    del X
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(2 / 3 * host.nbytes / total, device)
    streamed = on_device(host.numpy(), "cuda")
    assert isinstance(streamed, TorchDense)
    assert isinstance(streamed.rows, StreamedRows)
    kept = len(streamed.rows.kept) / n
    seconds = milliseconds(lambda: streamed.matmul(V), 5) / 1e3
    rate = (1 - kept) * host.nbytes / seconds / 1e9
    off = float((streamed.matmul(V) - expected).norm() / expected.norm())
    print(
        f"streamed: {kept:.0%} of the rows stay, the others come at {rate:.1f} GB/s of the link's "
        f"{link:.1f} = {rate / link:.0%}; product off by {off:.1e}"
    )
    torch.cuda.set_per_process_memory_fraction(1.0, device)


def around(_: Path | None) -> None:
    """What stands around a fit: its certificate, the bound, and a mask, from call to return."""
    for n in SIZES:
        X = synthetic(n, RANK, 0.1)
        mask = torch.triu(torch.rand(n, n, device="cuda") < 0.5)
        mask = mask | mask.T
        run = partial(symnmf.factorize, X, RANK, random_state=0)
        for _round in range(2):  # the first compiles
            fit, result = timed(run)
            certificate, _ = timed(result.certificate)
            bound, _ = timed(result.bound)
            hidden, partly = timed(partial(run, mask=mask))
        in_fits = [seconds / fit for seconds in (certificate, bound, hidden)]
        print(
            f"n {n}: fit {fit:.2f} s, certificate {certificate:.2f} s ({in_fits[0]:.1f} fits), "
            f"bound {bound:.2f} s ({in_fits[1]:.1f}), half hidden {hidden:.2f} s "
            f"({in_fits[2]:.1f})"
        )
        for name, one in (("all", result), ("half", partly)):
            parts = {name: round(part, 3) for name, part in vars(one.seconds).items()}
            print(
                f"    {name}: {one.n_iter} iterations, {one.passes} readings, {parts}", flush=True
            )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returned."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    answer = call()
    torch.cuda.synchronize()
    return time.perf_counter() - began, answer


PARTS: dict[str, Callable[[Path | None], None]] = {
    "call": call,
    "solution": solution,
    "graphs": graphs,
    "agreement": agreement,
    "crossover": crossover,
    "masked": masked,
    "around": around,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--peer", type=Path)
    arguments = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for part in arguments.parts:
        print(f"--- {part}", flush=True)
        PARTS[part](arguments.peer)


if __name__ == "__main__":
    main()

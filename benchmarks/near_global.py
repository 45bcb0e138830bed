"""Seconds until the error is within 1e-4 of the least one known: restarts against "breathing".

    python benchmarks/near_global.py best --seconds 60       look for the least errors, all ways
    python benchmarks/near_global.py run --only orl          seconds of each way, five seeds
    python benchmarks/near_global.py table                   what docs/clustering-quality.md shows

Breathing removes the columns of U whose loss costs least, puts columns from the residual in their
place and continues from there; if the error does not fall, it tries with fewer columns. Runs use
one thread. What was found is kept under --work, so the pieces can run one at a time.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import symnmf
from quality import DATA, ROOT, problem
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.objectives import Frobenius
from symnmf.parallel import Threads
from symnmf.run.spectral import SpectralStarts
from symnmf.state import Point
from symnmf.steps.revival import column_from_residual
from symnmf.storage import SymmetricMatrix, as_symmetric

NAMES = ("orl", "coil20", "mnist", "email", "cora")
CLOSE = 1e-4
BREATH = 5  # columns exchanged at first, as in breathing k-means

#: Endless starts or breaths of one seed, an error each.
Way = Callable[[SymmetricMatrix, int, np.random.Generator], Iterator[float]]


def fit(X: SymmetricMatrix, k: int, init: object, generator: np.random.Generator) -> symnmf.Result:
    return symnmf.factorize(X, k, init=init, random_state=generator, tol=1e-4)


def random_starts(X: SymmetricMatrix, k: int, generator: np.random.Generator) -> Iterator[float]:
    while True:
        yield fit(X, k, "scaled-random", generator).error


def spectral_starts(X: SymmetricMatrix, k: int, generator: np.random.Generator) -> Iterator[float]:
    starts, number = SpectralStarts(), 0
    while True:
        yield fit(X, k, starts(number), generator).error
        number += 1


def drawn_starts(X: SymmetricMatrix, k: int, generator: np.random.Generator) -> Iterator[float]:
    starts = SpectralStarts()
    while True:
        yield fit(X, k, starts(1), generator).error


def breathing(init: str) -> Way:
    def way(X: SymmetricMatrix, k: int, generator: np.random.Generator) -> Iterator[float]:
        while True:
            best = fit(X, k, init, generator)
            yield best.error
            width = min(BREATH, k - 1)
            while width:
                other = fit(X, k, exchanged(X, best.U, width), generator)
                yield other.error
                if other.error < best.error * (1 - 1e-7):
                    best = other
                else:
                    width -= 1
            if init != "scaled-random":  # this start is always the same
                init_of_next = exchanged(X, best.U, 1 + int(generator.integers(k - 1)))
                best = fit(X, k, init_of_next, generator)
                yield best.error

    return way


def exchanged(X: SymmetricMatrix, U: np.ndarray, count: int) -> np.ndarray:
    """Return U with the ``count`` columns of least use replaced by ones from the residual."""
    U = U.copy()
    gram = U.T @ U
    use = np.einsum("ij,ij->j", U, X.matmul(U)) - (gram**2).sum(axis=0) + gram.diagonal() ** 2 / 2
    gone = np.argsort(use)[:count]
    U[:, gone] = 0.0
    for column in gone:
        found = column_from_residual(Frobenius(X), Point(X.ops, X.ops.put(U)))
        if found is not None:
            U[:, column] = found
    return U


WAYS: dict[str, Way] = {
    "random starts": random_starts,
    "random, breathing": breathing("scaled-random"),
    "spectral, breathing": breathing("spectral"),
    "spectral starts, drawn": drawn_starts,
    "spectral starts (default)": spectral_starts,
}


def matrix(name: str) -> tuple[SymmetricMatrix, int]:
    given = problem(name, ROOT / "out" / "quality")
    A = with_degree_offset(given.A, given.k).graph if given.given else given.A
    return as_symmetric(A).with_threads(Threads(1)), given.k


def look(name: str, seconds: float) -> float:
    """Return the least error that any way finds in its share of the seconds."""
    X, k = matrix(name)
    least = np.inf
    for number, way in enumerate(WAYS.values()):
        begun = time.perf_counter()
        for error in way(X, k, np.random.default_rng(1000 + number)):
            least = min(least, error)
            if time.perf_counter() - begun > seconds / len(WAYS):
                break
    return float(least)


def seconds_until(way: Way, name: str, aim: float, seed: int, limit: float) -> tuple[float, int]:
    """Return the seconds until an error is at most ``aim``, infinite past the limit, and tries."""
    X, k = matrix(name)
    begun = time.perf_counter()
    for tries, error in enumerate(way(X, k, np.random.default_rng(seed)), 1):
        passed = time.perf_counter() - begun
        if error <= aim:
            return passed, tries
        if passed > limit:
            return float("inf"), tries
    raise AssertionError("a way never ends by itself")


def table(kept: dict[str, dict[str, list[list[float]]]]) -> str:
    """Return medians over the seeds, and how many of them arrived."""
    lines = [["", *(DATA[name][0] for name in kept)], ["---"] * (1 + len(kept))]
    for way in WAYS:
        cells = [way]
        for found in kept.values():
            times = [seconds for seconds, _ in found[way]]
            arrived = sum(np.isfinite(times))
            middle = f"{np.median(times):.2g} s" if arrived > len(times) / 2 else "-"
            cells.append(middle if arrived == len(times) else f"{middle} ({arrived}/{len(times)})")
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["best", "run", "table"])
    parser.add_argument("--only", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0, help="for best, per data set")
    parser.add_argument("--limit", type=float, default=4.0, help="seconds of a seed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "near-global")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen.work.mkdir(parents=True, exist_ok=True)
    stored = {name: chosen.work / f"{name}.json" for name in NAMES}
    for name in chosen.only if chosen.what != "table" else ():
        kept = json.loads(stored[name].read_text()) if stored[name].is_file() else {}
        if chosen.what == "best":
            kept["best"] = min(kept.get("best", np.inf), look(name, chosen.seconds))
        else:
            seconds_until(spectral_starts, name, np.inf, 0, 1.0)  # loads compiled code
            for title, way in WAYS.items():
                kept[title] = [
                    seconds_until(way, name, kept["best"] * (1 + CLOSE), seed, chosen.limit)
                    for seed in range(chosen.seeds)
                ]
                print(name, title, kept[title], flush=True)
        stored[name].write_text(json.dumps(kept, indent=1))
        print(name, kept["best"], flush=True)
    if chosen.what == "table":
        print(table({name: json.loads(path.read_text()) for name, path in stored.items()}))


if __name__ == "__main__":
    main()

"""Where solvers end from many starts: error and clustering accuracy on the graphs of real data.

python benchmarks/minima.py                                # 20 starts, about five minutes
python benchmarks/minima.py --only tdt2 --first 400 --starts 80
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import symnmf
from clustering import GRAPHS, IMAGES_AND_TEXT, problem
from symnmf.metrics import clustering_accuracy

DATA = (*IMAGES_AND_TEXT, *GRAPHS)
METHODS: dict[str, dict[str, Any]] = {
    "a-symhals (paper)": {"solver": "a-symhals", "coupling": "adaptive", "init": "random"},
    "a-symhals (rising)": {"solver": "a-symhals"},
    "auto": {"solver": "auto"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--first", type=int, default=300, help="seed of the first start")
    parser.add_argument("--tol", type=float, default=1e-5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | method | median E | standard error | median accuracy | least | iterations |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.only:
        given = problem(name)
        for method, how in METHODS.items():
            ends = []
            for seed in range(options.first, options.first + options.starts):
                found = symnmf.factorize(
                    given.A, given.k, tol=options.tol, random_state=seed, **how
                )
                accuracy = clustering_accuracy(given.target, found.labels)
                ends.append((found.error, accuracy, found.n_iter))
            errors, accuracies, iterations = np.array(ends).T
            spread = errors.std(ddof=1) / np.sqrt(len(errors))
            print(
                f"| {name} | {method} | {np.median(errors):.5f} | {spread:.5f} | "
                f"{np.median(accuracies):.3f} | {accuracies.min():.3f} | "
                f"{np.median(iterations):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

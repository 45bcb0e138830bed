"""lambda and iterations of A-SymHALS to tol under each rule for lambda, from the same starts.

python benchmarks/couplings.py                     # three starts, some ten minutes
python benchmarks/couplings.py --only orl email_eu_core --starts 1
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import symnmf
from clustering import GRAPHS, IMAGES_AND_TEXT, matrix_and_rank

RULES = ("theory-paper", "theory", "shrinking", "rising", "adaptive")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    names = ("synthetic", *IMAGES_AND_TEXT, *GRAPHS)
    parser.add_argument("--only", nargs="+", choices=names, default=list(names))
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--max-iter", type=int, default=5000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | " + " | ".join(options.rules) + " |")
    print("| --- |" + " --- |" * len(options.rules))
    for name in options.only:
        X, k = matrix_and_rank(name)
        cells = []
        for rule in options.rules:
            runs = [
                symnmf.factorize(
                    X,
                    k,
                    solver="a-symhals",
                    coupling=rule,
                    tol=options.tol,
                    max_iter=options.max_iter,
                    random_state=seed,
                )
                for seed in range(options.starts)
            ]
            first, last = (
                np.median([run.history["coupling"][end] for run in runs]) for end in (0, -1)
            )
            steps = np.median([run.n_iter for run in runs])
            least = "\\>" if steps >= options.max_iter else ""
            proved = sum(run.certificate(X).theorem1 for run in runs)
            moved = f"{first:.3g}" if first == last else f"{first:.3g} to {last:.3g}"
            cells.append(
                f"{moved}; {least}{steps:.0f}; E {np.median([run.error for run in runs]):.4g}; "
                f"{proved}/{len(runs)}"
            )
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

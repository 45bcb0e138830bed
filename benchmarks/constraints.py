"""Must-link and cannot-link pairs: what they bring, and how many are broken.

python benchmarks/constraints.py             digits and COIL-20, medians of ten draws
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import adjusted_rand_score

import symnmf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["digits", "coil20"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.0003, 0.001, 0.003, 0.01, 0.02]
    )
    parser.add_argument("--starts", type=int, default=5)
    args = parser.parse_args()
    print("| data | pairs told | ARI, median (least) | broken, median |")
    print("| --- | --- | --- | --- |")
    for name in args.names:
        data = symnmf.datasets.load(name)
        assert data.target is not None
        classes = np.asarray(data.target)
        n, k = len(classes), len(np.unique(classes))
        A = symnmf.graphs.build(data.data, "self-tuning")
        for share in (0.0, *args.shares):
            scores, broken = [], []
            for seed in range(args.draws):
                rng = np.random.default_rng(seed)
                pairs = rng.integers(n, size=(int(share * n * (n - 1) / 2), 2))
                pairs = pairs[pairs[:, 0] != pairs[:, 1]]
                same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
                told = symnmf.graphs.constrained(A, pairs[same], pairs[~same]) if share else A
                options = {"affinity": "precomputed", "allow_negative": True, "n_init": args.starts}
                model = symnmf.SymNMF(k, random_state=seed, **options).fit(told)
                labels = model.labels_
                scores.append(adjusted_rand_score(classes, labels))
                kept = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) == same
                broken.append(1.0 - kept.mean() if share else 0.0)
            print(
                f"| {name} | {share:.2%} | {np.median(scores):.3f} ({min(scores):.3f}) | "
                f"{np.median(broken):.2%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

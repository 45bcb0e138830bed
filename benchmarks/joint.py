"""Links and words together: cora, and any other attributed graph in the same format.

    SYMNMF_DATA=FOLDER python benchmarks/joint.py [--starts 10] [--file attributed_cora.npz]

The weight of the words is chosen once by held-out entries, without labels. Then there are as many
random starts, one run each, with links and words, with links alone and with words alone.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.metrics import clustering_accuracy, normalized_mutual_info

#: A weight with which links have hardly any say.
WORDS_ALONE = 100.0


def attributed(path: Path) -> tuple[sp.csr_array, sp.csr_array, np.ndarray]:
    """Return the graph, the words and the classes of a file."""
    stored = np.load(path)
    n, edges = int(stored["n"]), stored["edges"]
    upper = sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    parts = (stored["words_indices"], stored["words_indptr"])
    words = sp.csr_array((np.ones(len(parts[0])), *parts), shape=tuple(stored["words_shape"]))
    return sp.csr_array(upper + upper.T), words, stored["y"]


def scores(y: np.ndarray, found: list[Any]) -> str:
    """Return the medians of NMI and accuracy."""
    nmi = np.median([normalized_mutual_info(y, one.labels) for one in found])
    accuracy = np.median([clustering_accuracy(y, one.labels) for one in found])
    return f"NMI {nmi:.3f}, accuracy {accuracy:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Links and words together.")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--file", default="attributed_cora.npz")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    A, F, y = attributed(Path(os.environ["SYMNMF_DATA"]) / told.file)
    k = len(np.unique(y))
    began = time.process_time()
    chosen = symnmf.communities(A, k, attributes=F, random_state=0)
    assert chosen.attribute_weight is not None
    weight, tau = chosen.attribute_weight.weight, chosen.attribute_weight.degree_offset
    seconds = time.process_time() - began
    print(f"by default: {scores(y, [chosen])}; weight {weight:.3g}, tau {tau}, {seconds:.1f} s CPU")
    one: dict[str, Any] = {"init": "scaled-random", "n_init": 1}
    cases: dict[str, dict[str, Any]] = {
        "links and words": {
            "attributes": F,
            "attribute_weight": weight,
            "degree_offset": tau,
        },
        "links alone": {},
        "words alone": {"attributes": F, "attribute_weight": WORDS_ALONE, "degree_offset": tau},
    }
    for name, case in cases.items():
        found = [
            symnmf.communities(A, k, random_state=s, **one, **case) for s in range(told.starts)
        ]
        print(f"{name}, {told.starts} random starts: {scores(y, found)}", flush=True)


if __name__ == "__main__":
    main()

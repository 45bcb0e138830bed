"""Cluster handwritten digits and a karate club; pages and a plot go to out/. Run: make demo."""

from __future__ import annotations

import time
from pathlib import Path

from symnmf import SymNMF, compare, datasets, plots
from symnmf.metrics import clustering_accuracy
from symnmf.report import write_report

OUT = Path("out")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    begun = time.perf_counter()

    digits = datasets.load("digits")
    pictures = SymNMF(10, random_state=0).fit(digits.data)
    show("digits", digits, pictures)
    write_report(
        OUT / "digits.html",
        pictures,
        title="Handwritten digits",
        truth=digits.target,
        images=digits.data,
        image_shape=digits.image_shape,
        settings=pictures.get_params(),
    )

    karate = datasets.load("karate")
    members = SymNMF(2, affinity="precomputed", random_state=0).fit(karate.data)
    show("karate", karate, members)
    write_report(
        OUT / "karate.html",
        members,
        title="Zachary's karate club",
        names=[f"member {name + 1}" for name in karate.node_names or ()],
        truth=karate.target,
        settings=members.get_params(),
    )

    solvers = ["auto", "symanls", "symhals", "a-symhals", "beta-snmf", "pgd"]
    table = compare(
        pictures.affinity_matrix_,
        10,
        solvers,
        init="scaled-random",
        max_iter=200,
        random_state=0,
    )
    figure = plots.convergence(table, x="time", y="stationarity")
    figure.savefig(OUT / "convergence.png", dpi=150)

    print(
        f"Open {OUT}/digits.html and {OUT}/karate.html; six solvers are in {OUT}/convergence.png."
    )
    print(f"{time.perf_counter() - begun:.1f} seconds in all.")


def show(name: str, data: datasets.Dataset, model: SymNMF) -> None:
    """Print how many rows have the right label, and the certificate."""
    assert data.target is not None
    accuracy = clustering_accuracy(data.target, model.labels_)
    print(
        f"{name}: {len(model.labels_)} rows, {model.n_clusters} clusters, accuracy {accuracy:.3f}"
    )
    print(f"  {model.certificate_.verdict}")


if __name__ == "__main__":
    main()

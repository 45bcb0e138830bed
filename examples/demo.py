"""Cluster handwritten digits and a karate club; pages and a plot go to out/. Run: make demo."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

OUT = Path("out")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    begun = time.perf_counter()
    columns = (BarColumn(bar_width=24), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading the library", total=7)

        def step(description: str) -> None:
            bar.update(task, advance=1, description=description)

        from symnmf import datasets, plots
        from symnmf.comparison import compare
        from symnmf.estimator import SymNMF
        from symnmf.metrics import clustering_accuracy
        from symnmf.report import write_report

        step("clustering 1797 handwritten digits")
        digits = datasets.load("digits")
        pictures = SymNMF(10, random_state=0).fit(digits.data)

        step("writing out/digits.html")
        write_report(
            OUT / "digits.html",
            pictures,
            title="Handwritten digits",
            truth=digits.target,
            images=digits.data,
            image_shape=digits.image_shape,
            settings=pictures.get_params(),
        )

        step("clustering the karate club")
        karate = datasets.load("karate")
        members = SymNMF(2, affinity="precomputed", random_state=0)
        members.fit(karate.data)

        step("writing out/karate.html")
        write_report(
            OUT / "karate.html",
            members,
            title="Zachary's karate club",
            names=[f"member {name + 1}" for name in karate.node_names or ()],
            truth=karate.target,
            settings=members.get_params(),
        )

        step("comparing six solvers")
        solvers = ["auto", "symanls", "symhals", "a-symhals", "beta-snmf", "pgd"]
        table = compare(
            pictures.affinity_matrix_,
            10,
            solvers,
            init="scaled-random",
            max_iter=200,
            random_state=0,
        )

        step("drawing out/convergence.png")
        plots.convergence(table, x="time", y="stationarity").savefig(
            OUT / "convergence.png", dpi=150
        )

    for name, data, model in (("digits", digits, pictures), ("karate", karate, members)):
        assert data.target is not None
        accuracy = clustering_accuracy(data.target, model.labels_)
        print(
            f"{name:7} {len(data.target):5} rows, {model.n_clusters:2} clusters: accuracy "
            f"{accuracy:.3f}, {model.status_} after {model.n_iter_} iterations"
        )
        print(f"        {model.certificate_.verdict}")
    print(f"\nOpen {OUT}/digits.html and {OUT}/karate.html; the race is in {OUT}/convergence.png.")
    print(f"{time.perf_counter() - begun:.1f} seconds in all.")


if __name__ == "__main__":
    main()

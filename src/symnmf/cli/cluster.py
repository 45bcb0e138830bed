"""``symnmf cluster``: a table, a matrix or a graph in, a cluster per row out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symnmf.cli import inputs, options
from symnmf.cli.output import (
    PICTURES,
    check_distinct,
    check_writable,
    counted,
    exit_code,
    how_it_ended,
    need_matplotlib,
    note,
    print_json,
    save_picture,
    say,
    say_going_on,
    summary,
    write_columns,
)
from symnmf.cli.progress import Forecast, step, watching
from symnmf.cli.signals import Signals, noticing

if TYPE_CHECKING:
    import numpy as np

    from symnmf.quality import Quality
    from symnmf.run.certificate import Certificate
    from symnmf.run.multistart import Plan, Search
    from symnmf.run.problem import Problem
    from symnmf.run.result import Result
    from symnmf.tensors import SparseTensor

TABLES = (".csv", ".csv.gz")


def cluster(
    given: inputs.Input,
    k: Annotated[int, typer.Option("-k", "--clusters", help="How many clusters.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table of labels, .csv or .csv.gz; else to stdout."),
    ] = None,
    affinity: inputs.Affinity = None,
    neighbors: inputs.Neighbors = None,
    normalize: inputs.Normalize = None,
    degree_offset: inputs.DegreeOffset = None,
    components: inputs.Components = "all",
    truth: inputs.Truth = None,
    overlapping: Annotated[
        bool, typer.Option("--overlapping", help="Also list every cluster a row has a part in.")
    ] = False,
    threshold: Annotated[
        float, typer.Option(help="With --overlapping: the share of a row that counts, below 1.")
    ] = 0.25,
    triangles: Annotated[
        bool,
        typer.Option("--triangles", help="Cluster a graph by its triangles, not by its edges."),
    ] = False,
    plot: options.Plot = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Page with pictures and tables, .html.", rich_help_panel=options.FILES),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(help="Random starts; the best is kept.", rich_help_panel=options.RUN),
    ] = 5,
    seed: options.Seed = None,
    solver: options.Solver = "auto",
    coupling: options.Coupling = None,
    max_iter: options.MaxIter = 1000,
    max_time: options.MaxTime = None,
    tol: options.Tol = 1e-4,
    jobs: options.Jobs = None,
    device: options.Device = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep the run in this .npz file (and one beside it per start), and go on from it "
            "where it is there.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
    checkpoint_every: options.CheckpointEvery = 60.0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Cluster the rows of a table, the rows of a similarity matrix or the nodes of a graph.

    \b
    Examples:
      symnmf cluster points.csv -k 10 -o labels.csv
      symnmf cluster friends.edges -k 4 -o labels.csv --report page.html
      symnmf cluster friends.edges -k 4 --triangles
      symnmf cluster digits -k 10 --seed 0 --json
      symnmf cluster big.npz -k 20 -o labels.csv --checkpoint run.npz
    """
    from symnmf.errors import InputError
    from symnmf.graphs.adjacency import check_degree_offset
    from symnmf.graphs.components import CHOICES
    from symnmf.naming import lookup
    from symnmf.run.multistart import Plan
    from symnmf.run.settings import Settings
    from symnmf.tensors.factorizing import tensor_settings

    check_distinct(
        {"INPUT": given, "--truth": truth},
        {"-o": output, "--checkpoint": checkpoint, "--plot": plot, "--report": report},
    )
    say_going_on(checkpoint)
    options.check_numbers(
        jobs=jobs,
        seed=seed,
        starts=starts,
        neighbors=neighbors,
        max_iter=max_iter,
        max_time=max_time,
        tol=tol,
        checkpoint_every=checkpoint_every,
    )
    check_degree_offset(degree_offset)
    lookup(components, CHOICES, "--components")
    if not 0 <= threshold < 1:
        raise InputError(f"--threshold must be at least 0 and below 1, got {threshold}.")
    if triangles and report:
        raise InputError(
            "--triangles goes with -o, --json and --plot but not with --report, whose page is of a "
            "matrix; leave one of them out."
        )
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
    check_writable(
        (output, TABLES),
        (plot, PICTURES),
        (report, (".html", ".htm")),
        (checkpoint, (".npz",)),
    )
    need_matplotlib(plot, report)
    schedule = options.as_coupling(coupling)
    plan = Plan(
        k,
        Settings.of(solver, schedule, tol=tol, max_iter=max_iter, max_time=max_time),
        n_init=starts,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    with step("reading and building the graph", quiet=quiet):
        loaded = inputs.load(given)
        classes = inputs.with_truth(loaded, truth)
        _check_count(k, loaded)
        matrix = inputs.similarities(
            loaded,
            affinity,
            neighbors,
            False if triangles else normalize,
            jobs,
            k,
            degree_offset,
            components,
            device,
        )
        tensor = _triangles(loaded, matrix, jobs) if triangles else None
    plan = replace(plan, basis=matrix.basis)
    with noticing() as signals:
        if tensor is not None:
            settings = tensor_settings(tensor, solver, schedule, plan.settings.limits)
            plan = replace(plan, settings=settings)
        problem = plan.problem(matrix.A if tensor is None else tensor)
        search = _run(plan, problem, signals, quiet)
        result = search.best
        overlap = threshold if overlapping else None
        found = Found(loaded, matrix, problem, search, classes, overlap, tensor)
        code = exit_code(result.status, signals.first, tol)
        if output or not json:
            write_columns(found.table(), output)
        if plot:
            found.save_plot(plot)
        if report:
            told = {
                "command": f"symnmf cluster {Path(given).name} -k {k}",
                "clusters": k,
                "starts": plan.starts,
                "seed": search.seed,
                "solver": result.solver,
                "tol": tol,
            }
            found.save_report(report, told)
        _tell(found, tol, json=json, with_labels=output is None, code=code)
    raise typer.Exit(code)


def _check_count(k: int, loaded: inputs.Loaded) -> None:
    from symnmf.errors import InputError

    n = loaded.data.shape[0]
    if not 1 <= k <= n:
        raise InputError(f"-k must be from 1 to the {n} rows of the input, got {k}.")


def _triangles(
    loaded: inputs.Loaded, matrix: inputs.Similarities, jobs: int | None
) -> SparseTensor:
    from symnmf import tensors
    from symnmf.errors import InputError

    if matrix.affinity != "precomputed":
        raise InputError(
            f"--triangles needs a graph, but {loaded.title} is a table of points; leave it out, or "
            f"give an edge list."
        )
    T, _ = tensors.triangles(matrix.A, repeated="observed", n_jobs=jobs)
    return T


def _run(plan: Plan, problem: Problem, signals: Signals, quiet: bool) -> Search:
    limits = plan.settings.limits
    forecast = Forecast(plan.starts, limits.tol, limits.max_iter, plan.seconds_each(problem))
    with watching(forecast, quiet=quiet) as watcher:

        def progress(start: int, now: Any) -> bool:
            if watcher:
                watcher(start, now)
            return bool(signals)

        return replace(plan, progress=progress).search(problem)


@dataclass(frozen=True)
class Found:
    """A clustering, and what is written of it."""

    loaded: inputs.Loaded
    matrix: inputs.Similarities
    problem: Problem
    search: Search
    truth: Any
    threshold: float | None
    tensor: SparseTensor | None = None

    @property
    def result(self) -> Result:
        """The start that was kept."""
        return self.search.best

    @cached_property
    def quality(self) -> Quality:
        """How the clusters look."""
        from symnmf.quality import assess

        graph = self.matrix.A if self.matrix.graph is None else self.matrix.graph
        return assess(graph, self.labels, self.search)

    @cached_property
    def certificate(self) -> Certificate:
        """What the theorems say of the run."""
        return self.result.certificate(self.problem)

    @cached_property
    def labels(self) -> np.ndarray:
        """The cluster of each row; -1 where a row has no similarity to any other."""
        import numpy as np

        labels = self.result.labels
        return labels if self.tensor is None else np.where(self.tensor.rows_in_use, labels, -1)

    def table(self) -> dict[str, Any]:
        """Return the columns of the table of labels."""
        import numpy as np

        from symnmf.run.result import OUTSIDE

        labels, shares = self.labels, self.result.membership
        n = len(labels)
        columns: dict[str, Any] = {
            "row" if self.loaded.names is None else "name": self.loaded.names or list(range(n)),
            "cluster": labels,
            "membership": shares.max(axis=1).round(6),
        }
        if self.threshold is not None:
            belongs = shares > self.threshold
            inside = np.flatnonzero(labels != OUTSIDE)
            belongs[inside, labels[inside]] = True
            columns["all_clusters"] = [
                " ".join(map(str, row.nonzero()[0].tolist())) for row in belongs
            ]
        return columns

    def scores(self) -> dict[str, float]:
        """Return how well the labels agree with known classes, where there are any."""
        if self.truth is None:
            return {}
        from symnmf import metrics

        truth, labels = self.truth.tolist(), self.labels
        return {
            "accuracy": metrics.clustering_accuracy(truth, labels),
            "normalized_mutual_info": metrics.normalized_mutual_info(truth, labels),
            "adjusted_rand": metrics.adjusted_rand(truth, labels),
        }

    def save_plot(self, path: Path) -> None:
        """Draw the similarities by cluster."""
        from symnmf import plots

        save_picture(plots.similarity(self.matrix.A, self.labels), path)

    def save_report(self, path: Path, settings: dict[str, Any]) -> None:
        """Write the page."""
        from symnmf.report import write_report

        images = self.loaded.data if self.loaded.image_shape else None
        write_report(
            path,
            self.result,
            self.matrix.A,
            title=f"Clusters of {self.loaded.title}",
            labels=self.labels,
            names=self.loaded.names,
            truth=self.truth,
            images=images,
            image_shape=self.loaded.image_shape,
            certificate=self.certificate,
            quality=self.quality,
            features=self.loaded.features,
            data=self.loaded.data if self.loaded.features is not None else None,
            overlapping=self.table().get("all_clusters"),
            settings={
                **settings,
                "affinity": self.matrix.affinity,
                "normalized": self.matrix.normalized,
                **(
                    {}
                    if self.matrix.degree_offset is None
                    else {"degree_offset": self.matrix.degree_offset}
                ),
            },
        )


def _tell(found: Found, tol: float, *, json: bool, with_labels: bool, code: int) -> None:
    import numpy as np

    from symnmf.run.result import OUTSIDE

    labels, result, quality = found.labels, found.result, found.quality
    alone = int((labels == OUTSIDE).sum())
    clusters, sizes = np.unique(labels[labels != OUTSIDE], return_counts=True)
    scores = found.scores()
    if json:
        print_json(
            {
                "input": found.loaded.title,
                "rows": len(labels),
                "affinity": found.matrix.affinity,
                "normalized": found.matrix.normalized,
                "sizes": dict(zip(clusters.tolist(), sizes.tolist(), strict=True)),
                **({"without_cluster": alone} if alone else {}),
                **scores,
                "seed": found.search.seed,
                "degree_offset": found.matrix.degree_offset,
                "quality": {**asdict(quality), "warning": quality.warning},
                **summary(result, found.certificate),
                "exit_code": code,
                **({"table": found.table()} if with_labels else {}),
            }
        )
        return
    if not len(clusters):
        say(f"No row has a similarity to any other, so all {len(labels)} are without a cluster.")
        return
    say(
        f"{counted(len(labels), 'row')} in {counted(len(clusters), 'cluster')} of {_range(sizes)}; "
        f"{how_it_ended(result, tol)}."
    )
    if alone:
        have = "has" if alone == 1 else "have"
        say(f"{counted(alone, 'row')} that belong nowhere {have} the cluster -1.")
    say(f"The clusters: {quality}.")
    if quality.warning:
        note(
            f"{quality.warning}; these are hardly clusters, so raise --degree_offset, set "
            f"--components largest, or ask for another number.",
            "warning",
        )
    if scores:
        agreement = (f"{name.replace('_', ' ')} {value:.3f}" for name, value in scores.items())
        say(f"Against the known classes: {', '.join(agreement)}.")
    say(f"The optimiser: {found.certificate.verdict}")


def _range(sizes: np.ndarray) -> str:
    """Return how large the clusters are, in words."""
    least, most = int(sizes.min()), int(sizes.max())
    if least < most:
        return f"{least} to {most}"
    return f"{least} each" if len(sizes) > 1 else str(least)

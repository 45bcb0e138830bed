"""``symnmf cluster``: a table, a matrix or a graph in, a cluster per row out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symnmf.cli import attributes as tables_beside
from symnmf.cli import inputs, options, tables
from symnmf.cli.found import Found, tell
from symnmf.cli.many import check_pages, cluster_many
from symnmf.cli.output import (
    PICTURES,
    check_distinct,
    check_writable,
    exit_code,
    need_matplotlib,
    say_going_on,
    write_columns,
)
from symnmf.cli.progress import Forecast, step, watched
from symnmf.cli.signals import Signals, noticing

if TYPE_CHECKING:
    from symnmf.cluster import Fitted, Prepared

TABLES = (".csv", ".csv.gz")


def cluster(
    context: typer.Context,
    given: inputs.Input,
    k: Annotated[
        str, typer.Option("-k", "--clusters", help="Number of clusters; auto chooses it.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table of labels, .csv or .csv.gz; else to stdout."),
    ] = None,
    header: tables.Header = None,
    decimal: tables.Decimal = ".",
    columns: tables.Columns = None,
    scale: tables.Scale = None,
    affinity: inputs.Affinity = None,
    neighbors: inputs.Neighbors = None,
    normalize: inputs.Normalize = None,
    degree_offset: inputs.DegreeOffset = None,
    components: inputs.Components = "all",
    truth: inputs.Truth = None,
    attributes: tables_beside.Attributes = None,
    attribute_weight: tables_beside.Weight = None,
    overlapping: Annotated[
        bool, typer.Option("--overlapping", help="Also list every cluster that a row belongs to.")
    ] = False,
    threshold: Annotated[
        str,
        typer.Option(
            help="With --overlapping: 'background', or the share of a row that counts, below 1."
        ),
    ] = "background",
    row_sparse: Annotated[
        bool | None,
        typer.Option(
            "--row-sparse/--no-row-sparse",
            help="With --overlapping: rows of U hold a few entries, for thousands of clusters of a "
            "graph. Chosen by the sizes unless given.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="frobenius, or poisson or bernoulli to refine by a likelihood.")
    ] = "frobenius",
    assign_labels: Annotated[
        str,
        typer.Option(
            help="likelihood: the cluster that a row's similarities make most likely. largest: "
            "that of the largest entry in its row of U."
        ),
    ] = "likelihood",
    triangles: Annotated[
        bool,
        typer.Option("--triangles", help="Cluster a graph by its triangles, not by its edges."),
    ] = False,
    missing: inputs.Missing = None,
    ignore_diagonal: Annotated[
        bool, typer.Option("--ignore-diagonal", help="Leave the diagonal out of the fit.")
    ] = False,
    allow_negative: Annotated[
        bool,
        typer.Option("--allow-negative", help="Accept negative weights, which keep rows apart."),
    ] = False,
    l1: options.L1 = 0.0,
    ridge: options.Ridge = 0.0,
    plot: options.Plot = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Page with pictures and tables, .html.", rich_help_panel=options.FILES),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(help="Number of starts; the best is kept.", rich_help_panel=options.RUN),
    ] = 1,
    init: options.Init = "auto",
    seed: options.Seed = None,
    solver: options.Solver = "auto",
    coupling: options.Coupling = None,
    max_iter: options.MaxIter = 1000,
    max_time: options.MaxTime = None,
    tol: options.Tol = 1e-4,
    jobs: options.Jobs = None,
    device: options.Device = None,
    memory: inputs.Memory = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Save the run to this .npz file (and one more per start), and resume from it if "
            "it exists.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Cluster the rows of a table, the rows of a similarity matrix or the nodes of a graph.

    \b
    Examples:
      symnmf cluster points.csv -k 10 -o labels.csv
      symnmf cluster points.csv -k 10 --columns height,weight --scale standard
      symnmf cluster friends.edges -k 4 -o labels.csv --report page.html
      symnmf cluster friends.edges -k auto -o labels.csv
      symnmf cluster friends.edges -k 4 --triangles
      symnmf cluster citations.edges -k 7 --attributes words.csv
      symnmf cluster digits -k 10 --seed 0 --json
      symnmf cluster big.npz -k 20 -o labels.csv --checkpoint run.npz
    """
    from symnmf import calls
    from symnmf.arguments import check_options
    from symnmf.cluster import Pipeline, in_shell
    from symnmf.cluster.sparse import SparsePipeline
    from symnmf.errors import InputError

    check_distinct(
        {"INPUT": given, "--truth": truth, "--attributes": attributes},
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
    )
    reading = options.number_or_word(threshold)
    check_options({"threshold": reading})
    streamed = memory is not None or inputs.is_stored(given)
    table = tables.Table(header, decimal, columns)
    table.check(given, streamed)
    tables_beside.check(attributes, attribute_weight, given, streamed)
    if triangles and report:
        raise InputError(
            "--triangles goes with -o, --json and --plot but not with --report, whose page is of a "
            "matrix; leave one of them out."
        )
    if streamed and (plot or report):
        raise InputError(
            f"--plot and --report need X in memory, and {given} is read in blocks; leave them out."
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
    pipeline = Pipeline(
        n_clusters=int(k) if k.isdecimal() else k,
        order=3 if triangles else 2,
        threshold=reading if overlapping else None,
        loss=loss,
        assign_labels=assign_labels,
        attribute_weight=options.number_or_word(attribute_weight or "auto"),
        degree_offset=degree_offset,
        components=components,
        objective={
            "missing": missing,
            "ignore_diagonal": ignore_diagonal,
            "allow_negative": allow_negative,
            "l1": l1,
            "ridge": ridge,
        },
        solver=solver,
        coupling=options.as_coupling(coupling),
        init=init,
        n_init=starts,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        checkpoint=checkpoint,
        argument=inputs.title_of(given),
        rows="rows",
        spell=in_shell,
    )
    with step("reading and building the graph", quiet=quiet):
        if streamed:
            loaded = inputs.stored(given, memory, pipeline.plan.rank, jobs, bool(normalize))
            how: dict[str, Any] = {}
        else:
            loaded = inputs.load(
                given, missing, signed=allow_negative, table=table, hypergraphs=True
            )
            how = inputs.chosen(loaded, affinity, neighbors, False if triangles else normalize)
            loaded, how = tables.scaled(loaded, scale, how)
            if attributes is not None:
                how |= tables_beside.beside(loaded, attributes, how["affinity"])
        context.with_resource(calls.opened(max_time))
        classes = inputs.with_truth(loaded, truth)
        possible = overlapping and loaded.is_graph
        if row_sparse and not possible:
            raise InputError("--row-sparse needs a graph and --overlapping; leave it out.")
        wanted = row_sparse if possible else False
        sparse = SparsePipeline.beside(replace(pipeline, **how), wanted)
        many = not streamed and sparse.applies(loaded.data)
        if many:
            check_pages(plot=plot, report=report, truth=truth)
    if many:
        raise typer.Exit(cluster_many(sparse, loaded, output, json=json, quiet=quiet))
    with step("preparing the search", quiet=quiet):
        prepared = replace(pipeline, **how).prepare(loaded.data)
    with noticing() as signals:
        found = Found(loaded, prepared.pipeline, _run(prepared, signals, quiet), classes)
        code = exit_code(found.fitted.result.status, signals.first, tol)
        if output or not json:
            write_columns(found.table(), output)
        if plot:
            found.save_plot(plot)
        if report:
            found.save_report(report, f"symnmf cluster {Path(given).name} -k {k}")
        tell(found, tol, json=json, with_labels=output is None, code=code)
    raise typer.Exit(code)


def _run(prepared: Prepared, signals: Signals, quiet: bool) -> Fitted:
    plan = prepared.plan
    limits = plan.settings.limits
    seconds = plan.seconds_each(prepared.problem)
    forecast = Forecast(plan.starts, limits.tol, limits.max_iter, seconds)
    return watched(prepared.search, forecast, signals, quiet).clusters()

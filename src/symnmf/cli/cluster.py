"""``symnmf cluster``: a table, a matrix or a graph in, a cluster per row out."""

from __future__ import annotations

import inspect
import sys
from dataclasses import asdict
from typing import Any

import numpy as np

from symnmf.cli import inputs
from symnmf.cli.inputs import Input
from symnmf.cli.output import (
    PICTURES,
    STDOUT,
    TABLES,
    check_files,
    exit_code,
    how_it_ended,
    print_json,
    printable,
    save_picture,
    watching,
    write_columns,
)
from symnmf.errors import InputError
from symnmf.options import OPTIONS

#: Columns of the attributes that are named for each cluster, and clusters for which they are.
COLUMNS_SHOWN, CLUSTERS_SHOWN = 8, 30


def cluster(
    input: str, output: str | None, plot: str | None, report: str | None, json: bool, quiet: bool,
    scale: str | None, truth: str | None, **options: Any,
) -> int:  # fmt: skip
    """Cluster INPUT, write the labels, tell what was found and return the exit code."""
    from symnmf.metrics.partitions import agreement

    tol, names = options.get("tol"), None
    check_files(
        {"INPUT": input, "--truth": truth, "--attributes": options.get("attributes")},
        {
            "-o": (output, TABLES),
            "--checkpoint": (options.get("checkpoint"), (".npz",)),
            "--plot": (plot, PICTURES),
            "--report": (report, (".html", ".htm")),
        },
    )
    loaded = inputs.load(input, options)
    data = inputs.scaled(loaded, scale).data
    classes = inputs.truth_of(loaded, truth)
    described = "attributes" in options
    if described:
        options["attributes"], names = inputs.attributes_of(loaded, options["attributes"])
    fit = _fit(loaded, data, {**options, **watching(quiet)})
    found = fit._fitted
    table = _table(found, loaded)
    if output:
        write_columns(table, output)
    if plot:
        from symnmf import plots

        drawn = getattr(fit, "affinity_matrix_", loaded.data)
        save_picture(plots.similarity(drawn, found.labels), plot)
    if report:
        _report(report, fit, loaded, classes, options)
    code = exit_code(found.result.status, tol)
    scores = {} if classes is None else agreement(np.array(list(classes)), found.labels)
    about = fit.about(COLUMNS_SHOWN, names) if described else []
    if json:
        content = _as_json(found, loaded, scores, about)
        print_json(content | {"exit_code": code} | ({} if output else {"table": table}))
    else:
        lines = _lines(found, scores, about)
        lines += [] if output else ["Give -o labels.csv for the labels, or -o - to print them."]
        for line in lines:
            print(printable(line), file=sys.stderr if output == STDOUT else sys.stdout)
    return code


def _fit(loaded: Input, data: Any, options: dict[str, Any]) -> Any:
    """Cluster points by SymNMF, and graphs and similarities by communities."""
    from symnmf import SymNMF, communities

    if loaded.kind != "points":
        options.pop("affinity", None)
        return communities(data, options.pop("n_clusters"), **options)
    for name in options.keys() - inspect.signature(SymNMF).parameters.keys():
        raise InputError(
            f"{OPTIONS[name].shell} is for graphs and similarities, and the rows of "
            f"{loaded.title} are points; leave it out."
        )
    return SymNMF(**options).fit(_named(data, loaded.columns))


def _named(data: Any, columns: Any) -> Any:
    """The points as a frame, whose columns warnings call by their names, where pandas is there."""
    if columns is None or hasattr(data, "tocsr"):
        return data
    try:
        import pandas as pd
    except ImportError:
        return data
    return pd.DataFrame(data, columns=list(map(str, columns)), copy=False)


def _table(found: Any, loaded: Input) -> dict[str, Any]:
    """The columns of the table of labels."""
    membership = found.membership
    largest = membership.max(axis=1)
    return {
        "row" if loaded.names is None else "name": loaded.row_names,
        "cluster": found.labels,
        "membership": np.asarray(getattr(largest, "toarray", lambda: largest)()).ravel().round(6),
        **found.listed,
    }


def _report(path: str, fit: Any, loaded: Input, truth: Any, options: dict[str, Any]) -> None:
    from symnmf.report import write_report

    columns = loaded.columns if loaded.kind == "points" else None
    write_report(
        path,
        fit,
        title=f"Clusters of {loaded.title}",
        names=loaded.names,
        truth=truth,
        images=loaded.data if loaded.image_shape else None,
        image_shape=loaded.image_shape,
        features=columns,
        data=None if columns is None else loaded.data,
        settings={name: value for name, value in options.items() if name != "attributes"},
    )


def _lines(found: Any, scores: dict[str, float], about: list[list[Any]]) -> list[str]:
    """What a person is told, the verdict first."""
    quality, labels = found.quality, found.labels
    selection = getattr(found, "selection", None)
    outside = int((labels < 0).sum())
    if outside == len(labels):
        return [f"No row has a similarity to any other: all {outside} are without a cluster."]
    lines = [f"Are they clusters? {quality.word}: {quality.verdict.reason}."]
    if selection is not None:
        lines.append(f"How many: {selection.recommendation}. {selection.reason}")
    lines.append(f"{len(labels)} rows: {quality}.")
    if outside:
        lines.append(f"{outside} of the rows are in no cluster (-1).")
    for number, columns in enumerate(about[:CLUSTERS_SHOWN]):
        lines.append(
            f"  cluster {number}: {', '.join(map(str, columns)) or 'no column of its own'}"
        )
    if scores:
        agreement = (f"{name.replace('_', ' ')} {value:.3f}" for name, value in scores.items())
        lines.append(f"Against the known classes: {', '.join(agreement)}.")
    return [*lines, f"The run {how_it_ended(found.result)}."]


def _as_json(
    found: Any, loaded: Input, scores: dict[str, float], about: list[list[Any]]
) -> dict[str, Any]:
    quality, result, selection = found.quality, found.result, getattr(found, "selection", None)
    labels, sizes = np.unique(found.labels[found.labels >= 0], return_counts=True)
    return {
        "verdict": asdict(quality.verdict) | {"word": quality.word},
        "input": loaded.title,
        "kind": loaded.kind,
        "rows": len(found.labels),
        "sizes": dict(zip(labels.tolist(), sizes.tolist(), strict=True)),
        "without_cluster": int((found.labels < 0).sum()),
        "modularity": quality.modularity,
        "conductance": quality.conductance,
        "how_many": None if selection is None else selection.reason,
        **scores,
        **({"about": dict(enumerate(about))} if about else {}),
        "seed": found.seed,
        "status": result.status,
        "iterations": result.n_iter,
        "error": result.error,
        "certificate": asdict(found.certificate),
    }

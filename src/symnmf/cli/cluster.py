"""``symnmf cluster``: a table, a matrix or a graph in, a cluster per row out."""

from __future__ import annotations

import inspect
import sys
import warnings
from dataclasses import asdict, dataclass
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
    progress,
    save_picture,
    say_notes,
    warn,
    write_columns,
)
from symnmf.errors import InputError
from symnmf.options import OPTIONS

#: Columns of the attributes that are named for each cluster, and clusters for which they are.
COLUMNS_SHOWN, CLUSTERS_SHOWN = 8, 30


@dataclass(frozen=True)
class Clusters:
    """What was found, by the same names for points and for graphs; ``fit`` is the whole of it."""

    fit: Any
    labels: np.ndarray
    membership: Any
    strength: Any
    quality: Any
    seed: Any
    selection: Any
    status: str
    n_iter: int
    error: float


def cluster(
    input: str, output: str | None, plot: str | None, report: str | None, json: bool, quiet: bool,
    scale: str | None, truth: str | None, **options: Any,
) -> int:  # fmt: skip
    """Cluster INPUT, write the labels, tell what was found and return the exit code."""
    attributes, tol = options.get("attributes"), options.get("tol")
    check_files(
        {"INPUT": input, "--truth": truth, "--attributes": attributes},
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
    described = inputs.attributes_of(loaded, options)
    with warnings.catch_warnings(record=True) as caught, progress(quiet) as watching:
        warnings.simplefilter("always")
        clusters = _clusters(loaded, data, {**options, **watching})
    table = _table(clusters, loaded, bool(options.get("overlapping")))
    if output:
        write_columns(table, output)
    if plot:
        from symnmf import plots

        drawn = getattr(clusters.fit, "affinity_matrix_", loaded.data)
        save_picture(plots.similarity(drawn, clusters.labels), plot)
    if report:
        _report(report, clusters, loaded, classes, options)
    code = exit_code(clusters.status, tol)
    scores = _scores(clusters.labels, classes)
    about = clusters.fit.about(COLUMNS_SHOWN, **described) if attributes else []
    if json:
        told = _as_json(clusters, loaded, scores, about)
        print_json(told | {"exit_code": code} | ({} if output else {"table": table}))
    else:
        lines = _lines(clusters, scores, about)
        lines += [] if output else ["Give -o labels.csv for the labels, or -o - to print them."]
        for line in lines:
            print(printable(line), file=sys.stderr if output == STDOUT else sys.stdout)
    _warn(caught, clusters.quality)
    say_notes()
    return code


def _clusters(loaded: Input, data: Any, options: dict[str, Any]) -> Clusters:
    """Cluster points by SymNMF, and graphs and similarities by communities."""
    from symnmf import SymNMF, communities

    same: Any = ("labels", "membership", "strength", "quality", "seed")
    if loaded.kind != "points":
        options.pop("affinity", None)
        fit: Any = communities(data, options.pop("n_clusters"), **options)
        run = fit.result
        rest: Any = (fit.rank_selection, run.status, run.n_iter, run.error)
        return Clusters(fit, *(getattr(fit, name) for name in same), *rest)
    options.pop("overlapping", None)  # memberships of points say that by themselves
    for name in options.keys() - inspect.signature(SymNMF).parameters.keys():
        raise InputError(
            f"{OPTIONS[name].shell} is for graphs and similarities, and the rows of "
            f"{loaded.title} are points; leave it out."
        )
    fit = SymNMF(**options).fit(_named(data, loaded.columns))
    selection = getattr(fit, "rank_selection_", None)
    rest = (selection, fit.status_, fit.n_iter_, fit.reconstruction_err_)
    return Clusters(fit, *(getattr(fit, f"{name}_") for name in same), *rest)


def _named(data: Any, columns: Any) -> Any:
    """The points as a frame, whose columns warnings call by their names, where pandas is there."""
    if columns is None or hasattr(data, "tocsr"):
        return data
    try:
        import pandas as pd
    except ImportError:
        return data
    return pd.DataFrame(data, columns=list(map(str, columns)), copy=False)


def _table(clusters: Clusters, loaded: Input, overlapping: bool) -> dict[str, Any]:
    """The columns of the table of labels."""
    membership, strength = (
        part.toarray() if hasattr(part, "toarray") else part
        for part in (clusters.membership, clusters.strength)
    )
    columns: dict[str, Any] = {
        "row" if loaded.names is None else "name": loaded.row_names,
        "cluster": clusters.labels,
        "membership": membership.max(axis=1, initial=0.0).round(6),
    }
    if overlapping:
        inside = [np.flatnonzero(row) for row in membership]
        columns["all_clusters"] = [" ".join(map(str, row.tolist())) for row in inside]
        if strength is not None:
            pairs = zip(strength, inside, strict=True)
            columns["strengths"] = [" ".join(f"{x:.4g}" for x in row[own]) for row, own in pairs]
    return columns


def _scores(labels: np.ndarray, truth: Any) -> dict[str, float]:
    """How well the labels agree with known classes, if there are any."""
    if truth is None:
        return {}
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    from symnmf.metrics import clustering_accuracy

    known = list(truth)
    return {
        "accuracy": float(clustering_accuracy(known, labels)),
        "normalized_mutual_info": float(normalized_mutual_info_score(known, labels)),
        "adjusted_rand": float(adjusted_rand_score(known, labels)),
    }


def _report(
    path: str, clusters: Clusters, loaded: Input, truth: Any, options: dict[str, Any]
) -> None:
    from symnmf.report import write_report

    columns = loaded.columns if loaded.kind == "points" else None
    write_report(
        path,
        clusters.fit,
        title=f"Clusters of {loaded.title}",
        names=loaded.names,
        truth=truth,
        images=loaded.data if loaded.image_shape else None,
        image_shape=loaded.image_shape,
        features=columns,
        data=None if columns is None else loaded.data,
        settings={name: value for name, value in options.items() if name != "attributes"},
    )


def _lines(clusters: Clusters, scores: dict[str, float], about: list[list[Any]]) -> list[str]:
    """What a person is told, the verdict first."""
    quality, labels = clusters.quality, clusters.labels
    outside = int((labels < 0).sum())
    if outside == len(labels):
        return [f"No row has a similarity to any other: all {outside} are without a cluster."]
    lines = [f"Are they clusters? {quality.word}: {quality.verdict.reason}."]
    if clusters.selection is not None:
        lines.append(f"How many: {clusters.selection.recommendation}. {clusters.selection.reason}")
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
    return [*lines, f"The run {how_it_ended(clusters)}."]


def _as_json(
    clusters: Clusters, loaded: Input, scores: dict[str, float], about: list[list[Any]]
) -> dict[str, Any]:
    fit, quality, selection = clusters.fit, clusters.quality, clusters.selection
    labels, sizes = np.unique(clusters.labels[clusters.labels >= 0], return_counts=True)
    return {
        "verdict": asdict(quality.verdict) | {"word": quality.word},
        "input": loaded.title,
        "kind": loaded.kind,
        "rows": len(clusters.labels),
        "sizes": dict(zip(labels.tolist(), sizes.tolist(), strict=True)),
        "without_cluster": int((clusters.labels < 0).sum()),
        "modularity": quality.modularity,
        "conductance": quality.conductance,
        "how_many": None if selection is None else selection.reason,
        **scores,
        **({"about": dict(enumerate(about))} if about else {}),
        "seed": clusters.seed,
        "status": clusters.status,
        "iterations": clusters.n_iter,
        "error": clusters.error,
        "certificate": asdict(getattr(fit, "certificate_", None) or fit.certificate),
    }


def _warn(caught: list[warnings.WarningMessage], quality: Any) -> None:
    """Pass on the warnings of the fit, without the verdict, which was told."""
    told = f"the clusters are {quality.verdict.word}: {quality.verdict.reason}; "
    for warning in caught:
        warn(str(warning.message).removeprefix(told), warning.category)

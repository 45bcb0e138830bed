"""``symnmf cluster --overlapping`` with thousands of clusters, where U is row-sparse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symnmf.cli.inputs import Loaded
from symnmf.cli.output import (
    counted,
    exit_code,
    how_it_ended,
    print_json,
    say,
    summary,
    write_columns,
)
from symnmf.cli.progress import Forecast, watched
from symnmf.cli.signals import noticing

if TYPE_CHECKING:
    from symnmf.cluster.sparse import SparseFitted, SparsePipeline


def check_pages(**given: Any) -> None:
    """Refuse what is only there for a dense U."""
    from symnmf.errors import InputError

    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"--{name} needs a dense U, and that of so many clusters would be mostly zeros; "
                f"leave it out, or pass --no-row-sparse."
            )


def cluster_many(
    sparse: SparsePipeline, loaded: Loaded, output: Path | None, *, json: bool, quiet: bool
) -> int:
    """Cluster, write the table, say what was found, and return the exit code."""
    limits = sparse.limits
    forecast = Forecast(1, 0.0, limits.max_iter, limits.max_time)
    with noticing() as signals:
        fitted = watched(
            lambda told: replace(sparse, callback=lambda now: told(0, now)).fit(loaded.data),
            forecast,
            signals,
            quiet,
        )
        code = exit_code(fitted.result.status, signals.first, limits.tol)
        if output or not json:
            write_columns(_table(fitted, loaded.names), output)
        _tell(fitted, loaded, limits.tol, json=json, with_labels=output is None, code=code)
    return code


def _table(fitted: SparseFitted, names: list[Any] | None) -> dict[str, Any]:
    shares = fitted.membership.max(axis=1).toarray().ravel().round(6)
    return {
        "row" if names is None else "name": names or list(range(len(shares))),
        "cluster": fitted.labels,
        "membership": shares,
        **fitted.listed,
    }


def _tell(
    fitted: SparseFitted, loaded: Loaded, tol: float, *, json: bool, with_labels: bool, code: int
) -> None:
    sizes = [len(members) for members in fitted.sets]
    rows, alone = len(fitted.labels), int((fitted.labels < 0).sum())
    if json:
        print_json(
            {
                "input": loaded.title,
                "rows": rows,
                "clusters": len(sizes),
                "row_sparse": True,
                "sizes": dict(enumerate(sizes)),
                **({"without_cluster": alone} if alone else {}),
                **summary(fitted.result, fitted.certificate),
                "exit_code": code,
                **({"table": _table(fitted, loaded.names)} if with_labels else {}),
            }
        )
        return
    say(
        f"{counted(rows, 'row')} in {counted(len(sizes), 'cluster')} of {min(sizes, default=0)} to "
        f"{max(sizes, default=0)}, {sum(sizes)} memberships; {how_it_ended(fitted.result, tol)}."
    )
    if alone:
        say(f"{counted(alone, 'row')} in no cluster: -1.")
    say(f"The optimiser: {fitted.certificate.verdict}")

"""``symnmf factorize``: a symmetric matrix in, its factor and a certificate out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from symnmf.cli import inputs
from symnmf.cli.output import (
    TABLES,
    check_files,
    exit_code,
    how_it_ended,
    print_json,
    watching,
    write_columns,
)
from symnmf.errors import InputError
from symnmf.options import ProblemOptions, names_in


def factorize(
    input: str, output: str, rank: int, json: bool, quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Factorize INPUT, write U, print the certificate and return the exit code."""
    from symnmf import Problem, graphs
    from symnmf import factorize as factorized

    checkpoint = options.get("checkpoint"), (".npz",)
    check_files({"INPUT": input}, {"-o": (output, (".npz", *TABLES)), "--checkpoint": checkpoint})
    title, X, names = _matrix(input, options)
    if options.pop("normalize", False):
        X = graphs.normalize(X)
    told = {name: options.pop(name) for name in names_in(ProblemOptions) if name in options}
    place = {name: options[name] for name in ("n_jobs", "device") if name in options}
    problem = Problem(X, **told, **place)
    result = factorized(problem, rank, **options, **watching(quiet))
    _save(result, names, output)
    certificate = result.certificate(problem)
    code = exit_code(result.status, options.get("tol"))
    if json:
        told = {name: getattr(result, name) for name in ("solver", "status", "n_iter", "error")}
        print_json({"input": title, **told, "certificate": asdict(certificate), "exit_code": code})
    else:
        print(
            f"{title}, {len(result.U)} x {len(result.U)}, rank {rank}: it {how_it_ended(result)}."
        )
        print(certificate)
    return code


def _matrix(given: str, options: dict[str, Any]) -> tuple[str, Any, list[Any] | None]:
    """The matrix of INPUT; one that can be read in blocks stays where it is."""
    from symnmf.storage.opening import is_stored

    path = Path(given)
    if is_stored(path) and "missing" not in options:
        if not path.exists():
            raise InputError(f"file {given!r} does not exist.")
        return path.name, path, None
    options["affinity"] = inputs.PRECOMPUTED
    loaded = inputs.load(given, options)
    del options["affinity"]
    rows, columns = loaded.data.shape
    if loaded.kind == "hypergraph":
        return loaded.title, loaded.data.clique_graph(), loaded.names
    if rows != columns:
        raise InputError(
            f"{loaded.title} is {rows} x {columns}, and a symmetric matrix or a graph is needed; "
            f"symnmf cluster takes tables of points."
        )
    return loaded.title, loaded.data, loaded.names


def _save(result: Any, names: list[Any] | None, output: str) -> None:
    """Write a result as an archive that also holds the names, or U as a table."""
    if output.endswith(".npz"):
        result.save(output, names=names)
        return
    rows = {"row": list(range(len(result.U)))} if names is None else {"name": names}
    write_columns(rows | {f"u{k}": column for k, column in enumerate(result.U.T)}, output)

"""INPUT of a command: a file, or the name of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from symnmf.cli.output import note

Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="A file (.npz .npy .csv .tsv .mtx, or an edge list .edges .txt; each also .gz) or a "
        "data set's name, such as [bold]digits[/] or [bold]karate[/].",
        show_default=False,
    ),
]
AFFINITIES = ("self-tuning", "nearest_neighbors", "rbf", "cosine", "precomputed")
Affinity = Annotated[
    str | None,
    typer.Option(
        help="How rows become a graph: self-tuning, nearest_neighbors, rbf, cosine; or "
        "precomputed, where INPUT already holds similarities. Chosen from INPUT unless given.",
        show_default=False,
    ),
]
Neighbors = Annotated[
    int | None,
    typer.Option("--neighbors", help="Neighbours per row of the graph.", show_default=False),
]
Normalize = Annotated[
    bool | None,
    typer.Option(
        "--normalize/--no-normalize",
        help="Divide given similarities by the roots of their row sums, so that hubs do not "
        "outweigh the rest. On for graphs, off for matrices.",
        show_default=False,
    ),
]
Truth = Annotated[
    Path | None,
    typer.Option(help="A file with the known class of each row, to compare with."),
]


@dataclass(frozen=True)
class Loaded:
    """What INPUT holds."""

    title: str
    data: Any
    is_graph: bool
    names: list[Any] | None = None
    truth: Any = None
    image_shape: tuple[int, int] | None = None


def load(given: str) -> Loaded:
    """Read a file, or a data set by its name."""
    path = Path(given)
    if path.exists() or path.suffix or len(path.parts) > 1:
        from symnmf.readers import read_matrix

        file = read_matrix(path)
        names = None if file.names is None else file.names.tolist()
        return Loaded(path.name, file.data, file.kind == "graph", names, file.labels)
    return _built_in(given)


def _built_in(name: str) -> Loaded:
    from symnmf import datasets
    from symnmf.errors import InputError

    known = [entry.name for entry in datasets.available()]
    if name.lower().replace("-", "_") not in (*known, "mnist"):
        raise InputError(
            f"{name!r} is neither a file nor a data set; the data sets are {', '.join(known)}."
        )
    found = datasets.load(name)
    return Loaded(
        found.name,
        found.data,
        found.kind == "graph",
        None if found.node_names is None else list(found.node_names),
        found.target,
        found.image_shape,
    )


def with_truth(loaded: Loaded, path: Path | None) -> Any:
    """Return the known classes: those of ``path``, else those that came with the data."""
    if path is None:
        return loaded.truth
    from symnmf.errors import InputError
    from symnmf.readers import read_labels

    truth = read_labels(path)
    n = loaded.data.shape[0]
    if len(truth) != n:
        raise InputError(f"{path} holds {len(truth)} labels, but the input has {n} rows.")
    return truth


@dataclass(frozen=True)
class Similarities:
    """The matrix to factorize, and how it came about."""

    A: Any
    affinity: str
    normalized: bool


def similarities(
    loaded: Loaded,
    affinity: str | None,
    neighbors: int | None,
    normalize: bool | None,
    jobs: int | None,
) -> Similarities:
    """Return similarities: given ones of a graph or a square symmetric matrix, else built."""
    from symnmf import graphs
    from symnmf.errors import InputError
    from symnmf.naming import lookup

    if affinity is not None:
        affinity = lookup(affinity, {kind: kind for kind in AFFINITIES}, "affinity")
        if loaded.is_graph and affinity != "precomputed":
            raise InputError(
                f"--affinity {affinity} needs a table of points, but {loaded.title} is a graph; "
                f"leave it out."
            )
    chosen = affinity or ("precomputed" if loaded.is_graph else _kind_of(loaded))
    if chosen != "precomputed":
        if normalize is not None:
            raise InputError(
                "--normalize is for given similarities; graphs of points are always normalized."
            )
        A = graphs.build(loaded.data, chosen, n_neighbors=neighbors, n_jobs=jobs)
        return Similarities(A, chosen, True)
    if neighbors is not None:
        raise InputError("--neighbors is for tables of points, not for given similarities.")
    scaled = loaded.is_graph if normalize is None else normalize
    A = graphs.build(loaded.data, "precomputed")
    return Similarities(graphs.normalize(A) if scaled else A, chosen, scaled)


def _kind_of(loaded: Loaded) -> str:
    if not _looks_like_similarities(loaded.data):
        return "self-tuning"
    n = loaded.data.shape[0]
    note(
        f"{loaded.title} is {n} x {n} and symmetric, so it was taken as similarities "
        f"(--affinity precomputed); for points give --affinity self-tuning."
    )
    return "precomputed"


def _looks_like_similarities(data: Any) -> bool:
    import numpy as np
    import scipy.sparse as sp

    if data.shape[0] != data.shape[1] or data.min() < 0:
        return False
    difference = abs(data - data.T).max()
    largest = data.max() if sp.issparse(data) else np.max(data)
    return bool(difference <= 1e-10 * largest)

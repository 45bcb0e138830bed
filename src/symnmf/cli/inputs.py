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
        help="A file (.npz .npy .csv .tsv .mtx, or a graph .edges .txt .gml .graphml; each also "
        ".gz), or a "
        "data set's name, such as [bold]digits[/] or [bold]karate[/].",
        show_default=False,
    ),
]
PROGRAM = 300_000_000  # bytes of the interpreter with its compiled code
FACTORS = 10  # tall arrays at a time, those that the default solver remembers among them
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
DegreeOffset = Annotated[
    float | None,
    typer.Option(
        help="Added to the degrees of a graph before it is normalized, in mean degrees; keeps "
        "small pieces from being the clusters.",
        show_default="chosen from the graph",
    ),
]
Components = Annotated[
    str,
    typer.Option(help="all, or largest: only the largest connected component is clustered."),
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
    features: Any = None


def load(given: str, missing: str | None = None) -> Loaded:
    """Read a file, which may hold NaN where ``missing`` says so, or a data set by its name."""
    path = Path(given)
    if path.exists() or path.suffix or len(path.parts) > 1:
        from symnmf.readers import read_matrix

        file = read_matrix(path, missing=missing)
        names = None if file.names is None else file.names.tolist()
        if file.kind == "graph":
            _check_weights(path, file.data, names)
        return Loaded(path.name, file.data, file.kind == "graph", names, file.labels)
    return _built_in(given)


def is_stored(given: str) -> bool:
    """Whether INPUT is one that is always read in blocks."""
    path = Path(given)
    return path.is_dir() or path.suffix in (".h5", ".hdf5", ".zarr")


def stored(given: str, memory: str | None, rank: int, jobs: int | None, normalize: bool) -> Loaded:
    """Open a matrix on disk, to be read in blocks within the memory that is allowed."""
    from symnmf.errors import InputError
    from symnmf.readers.converting import read_names
    from symnmf.storage.blocks import MEMORY, Blocks, as_bytes
    from symnmf.storage.opening import open_store

    if normalize:
        raise InputError(f"--normalize needs X in memory, and {given} is read in blocks.")
    path = Path(given)
    allowed = MEMORY if memory is None else as_bytes(memory, "--memory")
    store = open_store(path)
    if memory is not None:
        besides = PROGRAM + FACTORS * store.n * max(rank, 1) * store.dtype.itemsize
        if allowed <= besides:
            raise InputError(
                f"--memory {memory} leaves no room for X: the program and the factors take about "
                f"{besides / 1e6:.0f} MB; allow more."
            )
        allowed -= besides
    names = read_names(path) if path.is_dir() else None
    X = Blocks(store, memory=allowed, n_jobs=jobs, name=path.name)
    return Loaded(path.name, X, False, names)


def _check_weights(path: Path, A: Any, names: list[Any] | None) -> None:
    """Name the first edge with a negative weight."""
    from symnmf.errors import InputError

    if not A.nnz or A.data.min() >= 0:
        return
    i, j = (int(end) for end in divmod(int(A.argmin()), A.shape[0]))
    ends = (i, j) if names is None else (names[i], names[j])
    raise InputError(
        f"file {str(path)!r}: the edge between {ends[0]!r} and {ends[1]!r} has the negative weight "
        f"{A[i, j]:g}; drop it, since similarities must be at least 0."
    )


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
        found.feature_names,
    )


def with_truth(loaded: Loaded, path: Path | None) -> Any:
    """Return the known classes: those of ``path``, else those that came with the data."""
    if path is None:
        return loaded.truth
    from symnmf.errors import InputError
    from symnmf.readers import read_labels
    from symnmf.readers.labels import read_named_labels

    if loaded.names is not None:
        ids, truth = read_named_labels(path)
        if ids is not None:
            return truth[_places(loaded, path, ids.tolist())]
    truth = read_labels(path)
    n = loaded.data.shape[0]
    if len(truth) != n:
        raise InputError(f"{path} holds {len(truth)} labels, but the input has {n} rows.")
    if loaded.names is not None:
        order = "of their numbers" if isinstance(loaded.names[0], int) else "of first appearance"
        start = ", ".join(map(str, loaded.names[:3]))
        note(
            f"{path} holds no names, so its labels were matched with the rows of {loaded.title} "
            f"in the order {order} ({start}, ...)."
        )
    return truth


def _places(loaded: Loaded, path: Path, ids: list[str]) -> list[int]:
    """Return where in ``ids`` each name of the input stands."""
    from symnmf.errors import InputError
    from symnmf.readers.writing import without_apostrophe

    names = [str(name) for name in loaded.names or ()]
    advice = "leave out the column of names to match rows by their order"
    known = set(names)
    # a table written by this program has an apostrophe before what a spreadsheet would run
    written = [without_apostrophe(name) for name in ids]
    if set(ids) != known and known.issuperset(written):
        ids = written
    if ids == names:  # also where names repeat
        return list(range(len(ids)))
    places = {name: place for place, name in enumerate(ids)}
    if len(places) < len(ids):
        twice = next(name for place, name in enumerate(ids) if places[name] != place)
        raise InputError(f"{path} holds the name {twice!r} more than once; {advice}.")
    missing = [name for name in names if name not in places]
    if missing:
        raise InputError(
            f"{path} has no label for {len(missing)} of the {len(names)} names in {loaded.title}, "
            f"such as {missing[0]!r}; add them, or {advice}."
        )
    unknown = [name for name in ids if name not in known]
    if unknown:
        note(
            f"{path} has labels for {len(unknown)} names that {loaded.title} does not have, such "
            f"as {unknown[0]!r}; they were left out."
        )
    return [places[name] for name in names]


@dataclass(frozen=True)
class Similarities:
    """The matrix to factorize, and how it came about."""

    A: Any
    affinity: str
    normalized: bool
    graph: Any = None  # the weights as given, where A is their normalised form
    degree_offset: float | None = None
    basis: Any = None  # the leading eigenvectors of A, where they were looked at


def similarities(
    loaded: Loaded,
    affinity: str | None,
    neighbors: int | None,
    normalize: bool | None,
    jobs: int | None,
    clusters: int = 1,
    degree_offset: float | None = None,
    components: str = "all",
    device: str | None = None,
) -> Similarities:
    """Return similarities: given ones of a graph or a square symmetric matrix, else built."""
    from symnmf import graphs
    from symnmf.errors import InputError
    from symnmf.graphs.components import restrict
    from symnmf.graphs.degree_offsets import with_degree_offset
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
        if degree_offset is not None:
            raise InputError("--degree_offset is for given graphs, not for graphs of points.")
        A = graphs.build(
            loaded.data,
            chosen,
            n_neighbors=neighbors,
            n_jobs=jobs,
            n_clusters=clusters,
            device=device,
        )
        A = A if components == "all" else restrict(A, components, clusters, "")
        return Similarities(A, chosen, True)
    if neighbors is not None:
        raise InputError("--neighbors is for tables of points, not for given similarities.")
    scaled = loaded.is_graph if normalize is None else normalize
    A = restrict(
        graphs.build(loaded.data, "precomputed"), components, clusters, "--components largest"
    )
    if not scaled:
        return Similarities(A, chosen, scaled)
    if degree_offset is None:
        tau, normal, basis = with_degree_offset(A, clusters)
    else:
        tau, normal, basis = (
            degree_offset,
            graphs.normalize(A, degree_offset=degree_offset),
            None,
        )
    return Similarities(normal, chosen, scaled, A, tau, basis)


def _kind_of(loaded: Loaded) -> str:
    n, columns = loaded.data.shape
    if not _looks_like_similarities(loaded.data):
        if n == columns:
            fault = "has negative entries" if loaded.data.min() < 0 else "is not symmetric"
            note(
                f"{loaded.title} is {n} x {n} but {fault}, so its rows were taken as points "
                f"(--affinity self-tuning) and not as similarities."
            )
        elif _looks_like_edges(loaded):
            note(
                f"{loaded.title} has {columns} columns that could be the edges of a graph, but "
                f"its rows were taken as points; for a graph give the file the ending .edges."
            )
        return "self-tuning"
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


def _looks_like_edges(loaded: Loaded) -> bool:
    """Tell whether a table's first columns could be the two ends of edges: ids that recur."""
    import numpy as np

    data = loaded.data
    if loaded.names is not None or data.shape[1] not in (2, 3) or not isinstance(data, np.ndarray):
        return False
    ends = data[:, :2]
    whole = bool((ends >= 0).all() and (ends == np.floor(ends)).all())
    return whole and len(np.unique(ends)) < ends.size

"""INPUT of a command: a file, or the name of a data set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from symnmf.cli.output import note
from symnmf.cli.tables import Table, scaled

#: Where the context of a command keeps what INPUT is called.
TITLE = "symnmf.input"


def title_of(given: str) -> str:
    """Return what messages call INPUT: its file, or the data set."""
    return Path(given.partition("::")[0]).name


def _noted(context: typer.Context, given: str) -> str:
    context.meta[TITLE] = title_of(given)
    return given


Input = Annotated[
    str,
    typer.Argument(
        callback=_noted,
        metavar="INPUT",
        help="A file (.csv .tsv .parquet .npz .npy .mtx .h5ad .cool .mcool, or a graph .edges .txt "
        ".ncol .gml .graphml .net .json .hyperedges; each also .gz), or the name of a data set, "
        "such as [bold]digits[/] or [bold]karate[/].",
        show_default=False,
    ),
]
PROGRAM = 300_000_000  # bytes of the interpreter with its compiled code
FACTORS = 10  # tall arrays at a time, those that the default solver remembers among them
NEARLY = 0.01  # asymmetry, relative to the largest entry, that is a fault rather than a guess
AFFINITIES = ("self-tuning", "nearest_neighbors", "rbf", "cosine", "precomputed")
Affinity = Annotated[
    str | None,
    typer.Option(
        help="How rows become a graph: self-tuning, nearest_neighbors, rbf, cosine; or "
        "precomputed, if INPUT already holds similarities. By default chosen from INPUT.",
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
        help="Divide similarities by the square roots of their row sums, so that hubs do not "
        "dominate. On for graphs; for matrices the better of the two is chosen, without labels.",
        show_default=False,
    ),
]
DegreeOffset = Annotated[
    float | None,
    typer.Option(
        help="A constant added to the degrees of a graph before normalization, in mean degrees; "
        "prevents small pieces from becoming the clusters.",
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


Memory = Annotated[
    str | None,
    typer.Option(
        help="Read X in blocks and use at most this much memory, such as 4GB; for a .npy, "
        ".zarr or .h5 array.",
        show_default=False,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        help="nan: NaN entries were not observed. unstored: entries that a sparse INPUT does not "
        "store were not observed.",
        show_default=False,
    ),
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
    unscaled: Any = None

    @property
    def original(self) -> Any:
        """The data as INPUT has them."""
        return self.data if self.unscaled is None else self.unscaled


def load(
    given: str,
    missing: str | None = None,
    signed: bool = False,
    table: Table | None = None,
    hypergraphs: bool = False,
) -> Loaded:
    """Read a file, or a data set by its name.

    A file may hold NaN where ``missing`` says so, and a graph negative weights where it may be
    ``signed``; ``table`` is what the user says of a table. A hypergraph becomes its clique
    graph unless ``hypergraphs`` are taken.
    """
    table = Table() if table is None else table
    path = Path(given)
    if path.exists() or path.suffix or len(path.parts) > 1:
        from symnmf.readers import read_matrix

        file = read_matrix(given, missing=missing, **asdict(table))
        names = None if file.names is None else file.names.tolist()
        if file.kind == "graph" and not signed:
            _check_weights(path, file.data, names)
        if file.part is not None:
            note(f"{path.name}: {file.part} was read.")
        graph = file.kind != "matrix"
        columns = None if graph else file.columns
        title = title_of(given)
        data = file.data
        if file.kind == "hypergraph" and not hypergraphs:
            data = data.clique_graph()
        return Loaded(title, data, graph, names, file.labels, features=columns)
    table.check(given, True)
    return _built_in(given)


def is_stored(given: str) -> bool:
    """Whether INPUT is one that is always read in blocks."""
    return Path(given).suffix in (".h5", ".hdf5", ".zarr")


def stored(given: str, memory: str | None, rank: int, jobs: int | None, normalize: bool) -> Loaded:
    """Open a matrix on disk, to be read in blocks within the memory that is allowed."""
    from symnmf.errors import InputError
    from symnmf.storage.blocks import MEMORY, Blocks, as_bytes
    from symnmf.storage.opening import open_stored

    if normalize:
        raise InputError(f"--normalize needs X in memory, and {given} is read in blocks.")
    path = Path(given)
    allowed = MEMORY if memory is None else as_bytes(memory, "--memory")
    source = open_stored(path)
    if memory is not None:
        besides = PROGRAM + FACTORS * len(source) * max(rank, 1) * source.dtype.itemsize
        if allowed <= besides:
            raise InputError(
                f"--memory {memory} is too little for X: the program and the factors take about "
                f"{besides / 1e6:.0f} MB; allow more."
            )
        allowed -= besides
    X = Blocks(source, memory=allowed, n_jobs=jobs, name=path.name)
    return Loaded(path.name, X, False)


def _check_weights(path: Path, A: Any, names: list[Any] | None) -> None:
    """Name the first edge with a negative weight."""
    from symnmf.errors import InputError

    if not A.nnz or A.data.min() >= 0:
        return
    i, j = (int(end) for end in divmod(int(A.argmin()), A.shape[0]))
    ends = (i, j) if names is None else (names[i], names[j])
    raise InputError(
        f"file {str(path)!r}: the edge between {ends[0]!r} and {ends[1]!r} has the negative weight "
        f"{A[i, j]:g}; drop it, or use symnmf cluster with --allow-negative."
    )


def _built_in(name: str) -> Loaded:
    from symnmf import datasets
    from symnmf.errors import InputError
    from symnmf.naming import nearest

    known = [entry.name for entry in datasets.available()]
    if name.lower().replace("-", "_") not in (*known, "mnist"):
        raise InputError(
            f"{name!r} is neither a file nor a data set; {nearest(name, known)}"
            f"the data sets are {', '.join(known)}."
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
            return truth[places(loaded, path, ids.tolist(), "label")]
    truth = read_labels(path)
    n = loaded.data.shape[0]
    if len(truth) != n:
        raise InputError(f"{path} holds {len(truth)} labels, but the input has {n} rows.")
    say_order(loaded, path, "label")
    return truth


def say_order(loaded: Loaded, path: Path, what: str) -> None:
    """Say in which order the content of a file without names was matched with names of INPUT."""
    if loaded.names is None:
        return
    order = "of their numbers" if isinstance(loaded.names[0], int) else "of first appearance"
    start = ", ".join(map(str, loaded.names[:3]))
    note(
        f"{path} holds no names, so its {what}s were matched with the rows of {loaded.title} "
        f"in the order {order} ({start}, ...)."
    )


def places(loaded: Loaded, path: Path, ids: list[str], what: str) -> list[int]:
    """Return where in ``ids`` each name of the input stands; ``what`` they are names of."""
    from symnmf.errors import InputError
    from symnmf.readers.writing import without_apostrophe

    known_by = range(loaded.data.shape[0]) if loaded.names is None else loaded.names
    names = [str(name) for name in known_by]
    advice = "leave out the column of names to match rows by their order"
    known = set(names)
    # a table written by this program has an apostrophe before what a spreadsheet would run
    written = [without_apostrophe(name) for name in ids]
    if set(ids) != known and known.issuperset(written):
        ids = written
    if ids == names:  # also where names repeat
        return list(range(len(ids)))
    found = {name: place for place, name in enumerate(ids)}
    if len(found) < len(ids):
        twice = next(name for place, name in enumerate(ids) if found[name] != place)
        raise InputError(f"{path} holds the name {twice!r} more than once; {advice}.")
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(
            f"{path} has no {what} for {len(missing)} of the {len(names)} names in {loaded.title}, "
            f"such as {missing[0]!r}; add them, or {advice}."
        )
    unknown = [name for name in ids if name not in known]
    if unknown:
        note(
            f"{path} has {what}s for {len(unknown)} names that {loaded.title} does not have, such "
            f"as {unknown[0]!r}; they were left out."
        )
    return [found[name] for name in names]


def chosen(
    loaded: Loaded, affinity: str | None, neighbors: int | None, normalize: bool | None
) -> dict[str, Any]:
    """Return how INPUT becomes similarities: as it was asked for, else as INPUT suggests."""
    from symnmf.errors import InputError
    from symnmf.naming import lookup

    if affinity is not None:
        affinity = lookup(affinity, {kind: kind for kind in AFFINITIES}, "affinity")
        if loaded.is_graph and affinity != "precomputed":
            raise InputError(
                f"--affinity {affinity} needs a table of points, but {loaded.title} is a graph; "
                f"leave it out."
            )
    kind = affinity or ("precomputed" if loaded.is_graph else _kind_of(loaded))
    how: bool | str | None = normalize
    if normalize is None and kind == "precomputed":
        how = True if loaded.is_graph else "auto"
    return {"affinity": kind, "n_neighbors": neighbors, "normalize": how}


def similarities(
    loaded: Loaded,
    affinity: str | None,
    neighbors: int | None,
    normalize: bool | None,
    jobs: int | None,
    scale: str | None = None,
) -> Any:
    """Return the similarities of INPUT for commands that do not cluster by them."""
    from symnmf.cluster import Building, in_shell

    how = chosen(loaded, affinity, neighbors, normalize)
    loaded, how = scaled(loaded, scale, how)
    return (
        Building(**how, n_jobs=jobs, argument=loaded.title, spell=in_shell)
        .similarities(loaded.data, 1)
        .A
    )


def _kind_of(loaded: Loaded) -> str:
    n, columns = loaded.data.shape
    if not _looks_like_similarities(loaded):
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


def _looks_like_similarities(loaded: Loaded) -> bool:
    """Whether the data are square and symmetric, as everything that takes similarities checks it.

    Data that are nearly symmetric are refused: they are similarities with a fault.
    """
    from symnmf.errors import InputError
    from symnmf.storage.border import ASYMMETRY_ALLOWED
    from symnmf.storage.dtypes import float_dtype

    data = loaded.data
    if data.shape[0] != data.shape[1] or data.min() < 0:
        return False
    gap = abs(data - data.T)
    difference, largest = float(gap.max()), float(data.max())
    if difference <= ASYMMETRY_ALLOWED[float_dtype(data.dtype, "INPUT")] * largest:
        return True
    if difference <= NEARLY * largest:
        raise InputError(
            f"{loaded.title} is square and nearly symmetric, but entries differ from their mirror "
            f"image by up to {difference:.6g} (the largest entry is {largest:.6g}); make each "
            f"entry equal to its mirror image, or give --affinity self-tuning if its rows are "
            f"points."
        )
    return False


def _looks_like_edges(loaded: Loaded) -> bool:
    """Tell whether a table's first columns could be the two ends of edges: ids that recur."""
    from symnmf.graphs.edge_lists import looks_like_edges

    return loaded.names is None and looks_like_edges(loaded.data)

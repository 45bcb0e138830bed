"""INPUT of a command, a file or a data set, and the files that are read beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from symnmf.cli.output import note
from symnmf.errors import InputError

#: What io.read takes, and how points become a graph.
READ = ("columns", "name_column", "header", "decimal", "missing")
SCALERS = {"standard": "StandardScaler", "robust": "RobustScaler"}
PRECOMPUTED = "precomputed"
#: Asymmetry, relative to the largest entry, that is a fault rather than a table of points.
NEARLY_SYMMETRIC = 0.01


@dataclass(frozen=True)
class Input:
    """What INPUT holds: ``kind`` is "points", "similarities", "graph" or "hypergraph"."""

    title: str
    data: Any
    kind: str
    names: list[Any] | None = None
    truth: Any = None
    columns: Any = None
    image_shape: tuple[int, int] | None = None

    @property
    def row_names(self) -> list[Any]:
        """The names of the rows, else their numbers."""
        return list(range(self.data.shape[0])) if self.names is None else self.names


def load(given: str, options: dict[str, Any]) -> Input:
    """Read a file, or a data set by its name; what the file needs is taken out of ``options``."""
    settings = {name: options.pop(name) for name in READ if name in options}
    if settings.get("missing") is not None:
        options["missing"] = settings["missing"]
    path = Path(given)
    if path.exists() or path.suffix or len(path.parts) > 1:
        from symnmf import io

        it = io.read(path, **settings)
        if it.part is not None:
            note(f"{path.name}: {it.part} was read.")
        loaded = Input(path.name, it.data, it.kind, it.names, it.labels, it.columns)
    else:
        loaded = _data_set(given)
    return replace(loaded, kind=_kind(loaded, options.get("affinity")))


def _data_set(name: str) -> Input:
    from symnmf import datasets
    from symnmf.naming import nearest

    known = [entry.name for entry in datasets.available()]
    if name.lower().replace("-", "_") not in (*known, "mnist"):
        raise InputError(
            f"{name!r} is neither a file nor a data set; {nearest(name, known)}"
            f"the data sets are {', '.join(known)}."
        )
    found = datasets.load(name)
    names = None if found.node_names is None else list(found.node_names)
    kind = "graph" if found.kind == "graph" else "matrix"
    columns, shape = found.feature_names, found.image_shape
    return Input(found.name, found.data, kind, names, found.target, columns, shape)


def _kind(loaded: Input, affinity: str | None) -> str:
    """What the content is taken for: as was asked for, else as it looks."""
    if loaded.kind != "matrix":
        if affinity not in (None, PRECOMPUTED):
            raise InputError(
                f"--affinity {affinity} needs a table of points, and {loaded.title} is a graph; "
                f"leave it out."
            )
        return loaded.kind
    if affinity is not None:
        return "similarities" if affinity == PRECOMPUTED else "points"
    n, columns = loaded.data.shape
    if _is_symmetric(loaded):
        note(
            f"{loaded.title} is {n} x {n} and symmetric, so it was taken as similarities; for "
            f"points give --affinity self-tuning."
        )
        return "similarities"
    if n == columns:
        note(
            f"{loaded.title} is {n} x {n} and not symmetric, or has negative entries, so its rows "
            f"were taken as points and not as similarities."
        )
    else:
        from symnmf.graphs.edges import looks_like_edges

        if loaded.names is None and looks_like_edges(loaded.data):
            note(
                f"{loaded.title} has {columns} columns that could be the edges of a graph, but its "
                f"rows were taken as points; for a graph give the file the ending .edges."
            )
    return "points"


def _is_symmetric(loaded: Input) -> bool:
    """Whether the data are similarities; data that are nearly symmetric are refused."""
    import numpy as np

    from symnmf.storage.border import ASYMMETRY_ALLOWED

    data = loaded.data
    if data.shape[0] != data.shape[1] or data.min() < 0:
        return False
    gap, largest = float(abs(data - data.T).max()), float(data.max())
    if ASYMMETRY_ALLOWED[np.dtype(np.float64)] * largest < gap <= NEARLY_SYMMETRIC * largest:
        raise InputError(
            f"{loaded.title} is square and nearly symmetric, but entries differ from their mirror "
            f"image by up to {gap:.6g} (the largest entry is {largest:.6g}); make each entry equal "
            f"to its mirror image, or give --affinity self-tuning if its rows are points."
        )
    return gap <= NEARLY_SYMMETRIC * largest


def scaled(loaded: Input, scale: str | None) -> Input:
    """INPUT with its columns on one scale."""
    if scale is None:
        return loaded
    if loaded.kind != "points":
        raise InputError(
            f"--scale is for tables of points, and {loaded.title} is none; leave it out."
        )
    from sklearn import preprocessing

    centering = "with_mean" if scale == "standard" else "with_centering"
    dense = not hasattr(loaded.data, "tocsr")  # centering would fill a sparse table
    scaler = getattr(preprocessing, SCALERS[str(scale)])(**{centering: dense})
    return replace(loaded, data=scaler.fit_transform(loaded.data))


def similarities(loaded: Input) -> Any:
    """The similarities of INPUT for ``compare``, which does not cluster by them."""
    from symnmf import graphs

    if loaded.kind == "points":
        return graphs.build(loaded.data)
    data = loaded.data.clique_graph() if loaded.kind == "hypergraph" else loaded.data
    return data if loaded.kind == "similarities" else graphs.normalize(data)


def truth_of(loaded: Input, path: str | None) -> Any:
    """The known classes: those of ``path``, else those that came with the data."""
    if path is None:
        return loaded.truth
    from symnmf import io

    return io.read_labels(path, loaded.row_names)


def attributes_of(loaded: Input, path: str) -> tuple[Any, list[str] | None]:
    """The table of attributes, its rows in the order of INPUT, and the names of its columns."""
    if loaded.kind == "points":
        raise InputError(
            f"--attributes goes with a graph or similarities, and the rows of {loaded.title} are "
            f"points; add the columns to that table instead."
        )
    from symnmf import io

    content = io.read(path)
    if content.kind != "matrix":
        raise InputError(f"--attributes must be a table, and {path} holds a {content.kind}.")
    data = content.data
    if content.names is not None:
        data = data[io.match_names(content.names, loaded.row_names, path)]
    elif len(loaded.row_names) == data.shape[0]:
        if loaded.names is not None:
            note(
                f"{path} names no rows, so they were matched with those of {loaded.title} by order."
            )
    else:
        raise InputError(
            f"--attributes must have one row for each of the {len(loaded.row_names)} rows of "
            f"{loaded.title}, and {path} has {data.shape[0]} without names; add the missing ones, "
            f"or a first column of names without a name in the header."
        )
    return data, content.columns

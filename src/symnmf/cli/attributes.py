"""``--attributes``: a table of attributes of the nodes, fitted together with their links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symnmf.cli.inputs import Loaded, places, say_order
from symnmf.cli.output import note, say

if TYPE_CHECKING:
    from symnmf.cluster import Fitted
    from symnmf.readers import MatrixFile

#: Columns that are told of each cluster.
TOLD = 8
#: Clusters that a person is told of; --json and --report have all of them.
SHOWN = 30

Attributes = Annotated[
    Path | None,
    typer.Option(
        help="A table with one row of attributes per node (.csv .tsv .parquet .npz .npy .mtx), "
        "matched by name if its first column holds names, else by order.",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--attribute-weight",
        metavar="auto|NUMBER",
        help="With --attributes: how much they count; with 1 as much as the links. auto chooses "
        "the weight that best predicts held-out links and attributes.",
        show_default="auto",
    ),
]


def check(path: Path | None, weight: str | None, given: str, streamed: bool) -> None:
    """Refuse options that have no meaning together, before anything is read."""
    from symnmf.errors import InputError

    if path is None:
        if weight is not None:
            raise InputError("--attribute-weight needs --attributes; leave it out.")
    elif streamed:
        raise InputError(
            f"--attributes needs X in memory, and {given} is read in blocks; leave it out."
        )


def beside(loaded: Loaded, path: Path, affinity: str) -> dict[str, Any]:
    """Read the table; return what the pipeline is told of it, its rows in the order of INPUT."""
    from symnmf.cluster import PRECOMPUTED
    from symnmf.errors import InputError
    from symnmf.readers import read_matrix

    if affinity != PRECOMPUTED:
        raise InputError(
            f"--attributes goes with a graph or similarities, and the rows of {loaded.title} are "
            f"points; add the columns to that table instead."
        )
    file = read_matrix(path, missing="nan")  # to be refused in words that fit a table
    if file.kind != "matrix":
        raise InputError(f"--attributes must be a table, and {path} holds a {file.kind}.")
    _check_filled(path, file)
    n = loaded.data.shape[0]
    data, columns, ids = _named(loaded, path, file, n)
    if ids is not None:
        data = data[places(loaded, path, ids, "row")]
    elif data.shape[0] != n:
        raise InputError(
            f"--attributes must have one row for each of the {n} rows of {loaded.title}, and "
            f"{path} has {data.shape[0]} without names; add the missing ones, or a first column "
            f"of names."
        )
    else:
        say_order(loaded, path, "row")
    return {"attributes": data, "attribute_names": columns}


def _check_filled(path: Path, file: MatrixFile) -> None:
    import numpy as np

    from symnmf.errors import InputError

    if not isinstance(file.data, np.ndarray):
        return
    empty = np.isnan(file.data)
    if empty.any():
        row, column = (int(place) for place in np.argwhere(empty)[0])
        at = f"row {row + 1}" if file.names is None else f"the row of {file.names[row]!r}"
        called = column + 1 if file.columns is None else repr(file.columns[column])
        raise InputError(
            f"--attributes must have no missing values, and {path} has {int(empty.sum())}, the "
            f"first in {at}, column {called}; fill them in, or leave out the column."
        )


def _named(
    loaded: Loaded, path: Path, file: MatrixFile, n: int
) -> tuple[Any, list[str] | None, list[str] | None]:
    """Return the numbers of a table, what its columns are called, and its rows where that helps."""
    data, columns = file.data, file.columns
    if file.names is not None:
        ids = [str(name) for name in file.names.tolist()]
        if loaded.names is None and not set(ids) & {str(i) for i in range(n)}:
            note(f"{loaded.title} has no names, so the rows of {path} were matched by their order.")
            return data, columns, None
        return data, columns, ids
    numbers = _first_column_of_names(loaded, file, n)
    if numbers is None:
        return data, columns, None
    note(f"the first column of {path} was taken as the names of its rows.")
    return data[:, 1:], None if columns is None else columns[1:], numbers


def _first_column_of_names(loaded: Loaded, file: MatrixFile, n: int) -> list[str] | None:
    """Return a first column of numbers that are names: it is called so, or has every node's.

    A reader takes numbers for data, since a table of points has no names to compare them with.
    """
    import numpy as np

    from symnmf.readers.tables import NAME_WORDS

    if not isinstance(file.data, np.ndarray) or file.data.shape[1] < 2:
        return None
    first = file.data[:, 0]
    if (first != np.floor(first)).any():
        return None
    ids = [str(int(value)) for value in first]
    called = file.columns is not None and file.columns[0].lower().encode() in NAME_WORDS
    names = range(n) if loaded.names is None else loaded.names
    whole = len(set(ids)) == len(ids) and {str(name) for name in names} <= set(ids)
    return ids if called or whole else None


def settings(fitted: Fitted) -> dict[str, Any]:
    """Return how much the table counted, if there is one."""
    choice = fitted.attribute_weight
    return {} if choice is None else {"attribute_weight": choice.weight}


def described(fitted: Fitted) -> dict[str, Any]:
    """Return how the weight was chosen and what each cluster is about, for --json."""
    choice = fitted.attribute_weight
    if choice is None:
        return {}
    return {
        "attribute_weights_tried": [each._asdict() for each in choice.tried],
        "about": dict(enumerate(_about(fitted))),
    }


def tell(fitted: Fitted) -> None:
    """Say how much the table counted and what each cluster is about."""
    choice = fitted.attribute_weight
    if choice is None:
        return
    how = "chosen by held-out links and attributes" if choice.tried else "as given"
    say(f"Attributes count {choice.weight:.3g} times as much as links ({how}).")
    lists = _about(fitted)
    for number, columns in enumerate(lists[:SHOWN]):
        say(f"  cluster {number}: {', '.join(map(str, columns)) or 'no column tells it apart'}")
    if len(lists) > SHOWN:
        say(f"  and {len(lists) - SHOWN} more clusters, which --json and --report list.")


def _about(fitted: Fitted) -> list[list[Any]]:
    from symnmf.cluster.about import about

    return about(fitted.result, len(fitted.sets), TOLD)

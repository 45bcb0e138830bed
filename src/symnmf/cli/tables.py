"""What a user may say of an INPUT that is a table."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from symnmf.cli.inputs import Loaded

SCALES = {"standard": "StandardScaler", "robust": "RobustScaler", "none": None}

Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a .csv or .tsv INPUT is a header.",
        show_default="words are a header, numbers a row",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(help="The decimal separator of a .csv or .tsv INPUT, . or ,"),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="The columns of a .csv, .tsv or .parquet INPUT to read, as in a,b,c: names of the "
        "header, or numbers from 1. For edges: source,target or source,target,weight.",
        show_default="all",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="Bring the columns of points to one scale: standard (mean 0, standard deviation 1), "
        "robust (median and quartiles) or none.",
        show_default="none",
    ),
]


@dataclass(frozen=True)
class Table:
    """What the user says of an INPUT that is a table."""

    header: bool | None = None
    decimal: str = "."
    columns: str | None = None

    def check(self, given: str, elsewhere: bool) -> None:
        """Refuse it where INPUT is not a table: a data set, or a matrix read in blocks."""
        from symnmf.errors import InputError

        for each in fields(self):
            if elsewhere and getattr(self, each.name) != each.default:
                raise InputError(
                    f"--{each.name} is for .csv and .tsv tables, and {given} is none; leave it out."
                )


def scaled(loaded: Loaded, scale: str | None, how: dict[str, Any]) -> tuple[Loaded, dict[str, Any]]:
    """Return INPUT with its columns on one scale, and how it becomes similarities."""
    from symnmf.errors import InputError
    from symnmf.naming import lookup

    if scale is None or how.get("affinity") == "precomputed":
        if scale is not None and lookup(scale, SCALES, "--scale") is not None:
            raise InputError(
                f"--scale is for tables of points, and {loaded.title} holds similarities; leave it "
                f"out."
            )
        return loaded, {**how, "column_names": loaded.features}
    scaler = lookup(scale, SCALES, "--scale")
    told = {**how, "scales_meant": True}
    if scaler is None:
        return loaded, told
    from sklearn import preprocessing

    centering = "with_mean" if scaler == "StandardScaler" else "with_centering"
    centered = {centering: not hasattr(loaded.data, "tocsr")}  # which would fill a sparse table
    data = getattr(preprocessing, scaler)(**centered).fit_transform(loaded.data)
    return replace(loaded, data=data, unscaled=loaded.data), told

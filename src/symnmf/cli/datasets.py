"""``symnmf datasets``: what there is, and downloads from the public sources."""

from __future__ import annotations

from symnmf.cli import DONE, MISUSED
from symnmf.cli.output import note
from symnmf.errors import InputError


def datasets(action: str, names: list[str], mirror: str | None) -> int:
    """List the data sets, or download those that are named and keep them in a cache."""
    from symnmf import datasets
    from symnmf.datasets.recipes import RECIPES

    if action == "fetch" and not names:
        raise InputError("symnmf datasets fetch needs the names of data sets, or all.")
    if action == "list":
        for entry in datasets.available():
            state = "here" if entry.present else f"symnmf datasets fetch {entry.name}"
            print(f"{entry.name:22} {entry.kind:7} {entry.n:>8,} rows  {state}")
        return DONE
    code = DONE
    for name in RECIPES if names == ["all"] else names:
        try:
            print(f"{name}: {datasets.fetch(name, mirror=mirror)}")
        except InputError as error:
            note(str(error), "error")
            code = MISUSED
    return code

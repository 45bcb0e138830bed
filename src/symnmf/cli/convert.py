"""``symnmf convert``: a matrix or a graph in, a folder of blocks out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symnmf.cli import options, tables
from symnmf.cli.output import print_json, say
from symnmf.cli.progress import step


def convert(
    given: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="An edge list, a .mtx, .npy, .zarr or .h5 file, which are streamed, or any other "
            "file that fits in memory.",
            show_default=False,
        ),
    ],
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder for the blocks: new, or empty."),
    ],
    memory: Annotated[str, typer.Option(help="Memory to use, such as 512MB.")] = "1GB",
    dtype: Annotated[str, typer.Option(help="float64, or float32 at half the size.")] = "float64",
    assume_symmetric: Annotated[
        bool,
        typer.Option(
            "--assume-symmetric", help="Do not check that an array is symmetric; read half of it."
        ),
    ] = False,
    header: tables.Header = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a matrix or an edge list as blocks on disk, for factorize --memory.

    \b
    Examples:
      symnmf convert friends.edges blocks/ --memory 2GB --dtype float32
      symnmf factorize blocks/ -r 50 -o U.npz --memory 4GB
    """
    from symnmf.errors import InputError
    from symnmf.readers.converting import convert as write

    if dtype not in ("float32", "float64"):
        raise InputError(f"--dtype must be float32 or float64, got {dtype!r}.")
    with step("converting", quiet=quiet):
        made = write(
            given,
            folder,
            memory=memory,
            dtype=dtype,
            assume_symmetric=assume_symmetric,
            header=header,
        )
    if json:
        print_json(
            {
                "input": given.name,
                "folder": str(folder),
                "n": made.n,
                "blocks": made.blocks,
                "largest_block": made.largest_block,
            }
        )
    else:
        say(
            f"{given.name}, {made.n} x {made.n}: {made.blocks} blocks of up to "
            f"{made.largest_block / 1e6:.3g} MB in {folder}."
        )

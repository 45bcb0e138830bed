"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RUN = "The run"
FILES = "Files"

Seed = Annotated[
    int | None, typer.Option(help="For the random starts; the same seed gives the same result.")
]
Solver = Annotated[str, typer.Option(help="See [bold]symnmf info[/].", rich_help_panel=RUN)]
Init = Annotated[
    str,
    typer.Option(
        help="auto, spectral, sketch, levels, scaled-random, random, nndsvd or neighborhoods.",
        rich_help_panel=RUN,
    ),
]
Coupling = Annotated[
    str | None,
    typer.Option(
        help="lambda of methods that split U: rising, shrinking, adaptive, geometric, theory, "
        "theory-paper, kuang-fixed or a number.",
        rich_help_panel=RUN,
        show_default="that of the solver",
    ),
]
Loss = Annotated[str, typer.Option(help="frobenius, or the likelihood poisson or bernoulli.")]
L1 = Annotated[
    float,
    typer.Option(help="Weight of the sum of U; makes U sparser.", rich_help_panel=RUN),
]
Ridge = Annotated[
    float, typer.Option(help="Weight of half the sum of squares of U.", rich_help_panel=RUN)
]
MaxIter = Annotated[int, typer.Option(help="Maximum number of iterations.", rich_help_panel=RUN)]
MaxTime = Annotated[
    float | None,
    typer.Option(
        help="Maximum number of seconds for the whole command, once INPUT is read.",
        rich_help_panel=RUN,
    ),
]
MaxTimeEach = Annotated[
    float | None,
    typer.Option(
        help="Maximum number of seconds for each run: of one solver, from one start.",
        rich_help_panel=RUN,
    ),
]
Tol = Annotated[
    float,
    typer.Option(
        help="The run has converged when the residual is at most this times ‖X‖‖U‖ / 10; 0 runs "
        "to the limits.",
        rich_help_panel=RUN,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(help="Number of threads.", rich_help_panel=RUN, show_default="all cores"),
]
Device = Annotated[
    str | None,
    typer.Option(help="cuda for a GPU; needs torch.", rich_help_panel=RUN, show_default="the CPU"),
]
Plot = Annotated[
    Path | None, typer.Option(help="Picture: .png, .svg or .pdf.", rich_help_panel=FILES)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]


#: The least each numeric option may be.
LEAST = {
    "seed": 0,
    "starts": 1,
    "runs": 1,
    "neighbors": 1,
    "max_iter": 0,
    "max_time": 0,
    "tol": 0,
}


def check_numbers(jobs: int | None = None, **given: float | None) -> None:
    """Refuse numbers out of range, each under the name of its option."""
    from symnmf.errors import InputError

    if jobs == 0:
        raise InputError(
            "--jobs must be a number of threads from 1, or -1 for all cores, -2 for all but one "
            "and so on, got 0."
        )
    for name, value in given.items():
        if value is not None and not value >= LEAST[name]:
            option = name.replace("_", "-")
            raise InputError(f"--{option} must be at least {LEAST[name]}, got {value}.")


def as_coupling(given: str | None) -> str | float | None:
    """Return a number where one was typed."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def number_or_word(text: str) -> float | str:
    """Return a number where the text is one."""
    try:
        return float(text)
    except ValueError:
        return text

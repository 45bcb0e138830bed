"""``symnmf compare``: several solvers from the same starts, on your own data."""

from __future__ import annotations

from typing import Any

from symnmf.cli import DONE, INTERRUPTED, inputs
from symnmf.cli.output import (
    PICTURES,
    TABLES,
    check_files,
    note,
    print_json,
    save_picture,
    write_columns,
)

FORMATS = {"seconds": "{:.3f}", "error": "{:.6g}"}


def compare(
    input: str, rank: int, solvers: list[str] | None, output: str | None,
    plot: str | None, json: bool, **options: Any,
) -> int:  # fmt: skip
    """Run the solvers, print a line for each run and return the exit code."""
    from symnmf.comparison import DEFAULT_SOLVERS
    from symnmf.comparison import compare as compared

    check_files({"INPUT": input}, {"-o": (output, TABLES), "--plot": (plot, PICTURES)})
    loaded = inputs.load(input, options)
    A = inputs.similarities(loaded)
    comparison = compared(A, rank, list(dict.fromkeys(solvers or DEFAULT_SOLVERS)), **options)
    if not comparison.results:
        raise KeyboardInterrupt
    rows: list[dict[str, Any]] = [
        {
            "solver": name,
            "run": run,
            "status": result.status,
            "iterations": result.n_iter,
            "seconds": float(result.history["seconds"][-1]),
            "error": result.error,
        }
        for (name, run), result in comparison.results.items()
    ]
    rows.sort(key=lambda row: row["error"])
    if output:
        write_columns({name: [row[name] for row in rows] for name in rows[0]}, output)
    if plot:
        from symnmf import plots

        save_picture(plots.convergence(comparison), plot)
    code = INTERRUPTED if comparison.interrupted else DONE
    if json:
        print_json({"input": loaded.title, "rank": rank, "runs": rows, "exit_code": code})
    else:
        _show(rows)
    if comparison.interrupted:
        note("interrupted; the runs that had begun are in the table.", "warning")
    return code


def _show(rows: list[dict[str, Any]]) -> None:
    """Print the final table."""
    cells = [list(rows[0])]
    for row in rows:
        cells.append([FORMATS.get(name, "{}").format(value) for name, value in row.items()])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())

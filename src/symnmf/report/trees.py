"""A page about clusters within clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.outputs import check_output, write_atomically
from symnmf.report.markup import Cell, cluster_cell, facts, name_cell, section, table, whole_page
from symnmf.report.pictures import as_figure
from symnmf.run.result import OUTSIDE
from symnmf.trees import Hierarchy

#: Rows that the table of leaves is given of.
MOST_ROWS = 20_000


@checked()
def write_tree_report(path: str | Path, tree: Hierarchy, *, title: str = "X") -> Path:
    """Write a self-contained HTML page about a tree of splits (needs the extra ``plots``).

    The page shows the dendrogram, the splits with their reasons (the strongest first), and the leaf
    of each row.

    Parameters
    ----------
    path : path
        The file to write.
    tree : Hierarchy
        What :func:`symnmf.hierarchy` found.
    title : str
        The title of the page.

    Returns
    -------
    Path
    """
    if not isinstance(tree, Hierarchy):
        raise InputError(
            f"tree must be what symnmf.hierarchy returns, got {type(tree).__name__}; call "
            f"symnmf.hierarchy first."
        )
    check_output(path)
    outside = int(np.sum(tree.labels == OUTSIDE))
    told = [
        (f"{len(tree.labels):,}", "rows"),
        (f"{tree.n_clusters:,}", "leaves"),
        (f"{len(tree.splits):,}", "splits"),
    ]
    if outside:
        told.append((f"{outside:,}", "rows in no cluster"))
    body = [section("The tree", facts(told) + as_figure("Splits over the leaves", tree.plot()))]
    if tree.splits:
        head = ["split", "rows", "into", "strength", "reason"]
        body.append(section("Splits, the strongest first", table("splits", head, _splits(tree))))
    head = ["row", "leaf"]
    rows: list[list[Cell]] = [
        [name_cell(name), cluster_cell(int(label))]
        for name, label in zip(_names(tree), tree.labels[:MOST_ROWS], strict=True)
    ]
    shown = "Leaves" if len(tree.labels) <= MOST_ROWS else f"Leaves of the first {MOST_ROWS:,} rows"
    body.append(section(shown, table("leaves", head, rows, search=True)))
    content = whole_page(f"Clusters within clusters: {title}", "".join(body)).encode()
    target = Path(path)
    write_atomically(target, lambda stream: stream.write(content))
    return target


def _splits(tree: Hierarchy) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for place, node in enumerate(tree.strongest):
        split = tree.splits[node]
        into = f"{tree.size(split.left):,} and {tree.size(split.right):,}"
        size = tree.size(node)
        rows.append(
            [
                (place + 1, str(place + 1)),
                (size, f"{size:,}"),
                into,
                (split.strength, f"{split.strength:.3f}"),
                split.reason,
            ]
        )
    return rows


def _names(tree: Hierarchy) -> list[object]:
    names = range(len(tree.labels)) if tree.names is None else tree.names
    return list(names[:MOST_ROWS])

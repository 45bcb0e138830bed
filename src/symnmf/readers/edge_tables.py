"""Tables of edges with a header: any delimiter, any number of columns, in any order."""

from __future__ import annotations

from itertools import chain

import numpy as np

from symnmf.naming import named_ends, named_weight
from symnmf.readers.cells import chosen_columns, delimiter_of, margin_of, split_cells, with_points
from symnmf.readers.edges import Nodes, check_named, graph_of
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source, shown
from symnmf.readers.text import Lines, lines_of, number_column


def read_edge_table(source: Source) -> MatrixFile:
    """The graph of a table whose header calls two columns as the ends of edges are called.

    A column called weight, or the third of three, holds the weights; others are left out. Where
    columns were asked for, these are the two ends and maybe the weights, in this order.
    """
    parts = lines_of(source, b"#", margin_of(source))
    lines = next(parts)  # the header was seen when the reader was chosen
    following = lines.texts[1] if len(lines) > 1 else None
    delimiter = delimiter_of(source, lines.texts[0], following)
    header = [cell.decode("utf-8") for cell in split_cells(source, lines[0], delimiter)]
    places = _places(source, header, lines[0][0])
    nodes = Nodes()
    weights: list[np.ndarray] = []
    numbers: list[np.ndarray] = []
    for part in chain([lines.rest()], parts):
        if not len(part):
            continue
        columns = _columns(source, part, delimiter, len(header), places)
        check_named(source, part, columns)
        nodes.add(columns[:2])
        if len(places) == 3:
            weights.append(number_column(source, part, columns[2], "weight"))
            numbers.append(part.numbers)
    if not (nodes.integer or nodes.text):
        raise source.error("it holds no edges")
    return graph_of(source, nodes, weights, numbers)


def _places(source: Source, header: list[str], line: int) -> list[int]:
    """Where the two ends and the weight are in a row."""
    chosen = chosen_columns(source, header, len(header), line)
    if chosen is not None:
        if len(chosen) not in (2, 3):
            raise source.error(
                f"{len(chosen)} columns were asked for, and an edge has two ends and maybe a weight"
            )
        return chosen
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise source.error(f"two of its columns are called {shown(twice)}; rename one", line)
    ends = named_ends(header)
    assert ends is not None
    weight = named_weight(header, ends)
    return [header.index(name) for name in (*ends, *([] if weight is None else [weight]))]


def _columns(
    source: Source, lines: Lines, delimiter: bytes, width: int, places: list[int]
) -> list[list[bytes]]:
    columns: list[list[bytes]] = [[] for _ in places]
    for line in lines:
        cells = split_cells(source, line, delimiter)
        if len(cells) != width:
            raise source.error(
                f"it has {len(cells)} cells where the first line has {width}", line[0]
            )
        for column, place in zip(columns, places, strict=True):
            column.append(cells[place])
        if len(places) == 3:
            columns[2][-1] = with_points(source, columns[2][-1:], line[0])[0]
    return columns

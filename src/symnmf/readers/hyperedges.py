"""Hyperedge lists: one hyperedge per line, its nodes separated by spaces, tabs or commas."""

from __future__ import annotations

from itertools import chain

import numpy as np

from symnmf.graphs.hypergraph import Hypergraph
from symnmf.readers.edges import compact
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source
from symnmf.readers.text import integers, lines_of


def read_hyperedges(source: Source) -> MatrixFile:
    """The hypergraph of a file.

    Nodes are separated by commas when the first hyperedge has one, by white space otherwise. Ids
    that are all whole numbers are nodes in increasing order; any other id makes all of them text
    names, in order of appearance. A node that comes twice on a line counts once.
    """
    groups: list[list[bytes]] = []
    comma: bool | None = None
    for lines in lines_of(source, b"#%"):
        if comma is None:
            comma = b"," in lines.texts[0]
        for line, text in lines:
            fields = [field.strip() for field in text.split(b",")] if comma else text.split()
            if not all(fields):
                raise source.error("one node of the hyperedge has no name", line)
            groups.append(list(dict.fromkeys(fields)))
    if not groups:
        raise source.error("it holds no hyperedges")
    fields = list(chain.from_iterable(groups))
    ids = integers(fields)
    names: np.ndarray | None
    if ids is not None and not any(len(field) > 1 and field[:1] == b"0" for field in fields):
        n, members, names = compact(ids)
    else:
        places: dict[bytes, int] = {}
        members = np.array([places.setdefault(field, len(places)) for field in fields], np.int64)
        n = len(places)
        names = np.empty(n, dtype=object)
        names[:] = [name.decode("utf-8") for name in places]
    indptr = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    listed = list(range(n)) if names is None else names.tolist()
    data = Hypergraph.from_arrays(members, indptr, names=listed)
    return MatrixFile(data, "hypergraph", names)

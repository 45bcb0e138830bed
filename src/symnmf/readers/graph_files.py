"""GraphML and GML files, parsed by networkx from content that is bounded and checked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source, shown

#: Most bytes of such a file: both parsers hold all of it, many times over.
MOST = 256 * 2**20


def read_graphml(source: Source) -> MatrixFile:
    """A graph in GraphML; a file that declares entities is refused."""
    content = _content(source)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise source.error("it declares entities, which a graph has no use for; remove them")
    return _graph(source, lambda nx: nx.parse_graphml(content.decode("utf-8")))


def read_gml(source: Source) -> MatrixFile:
    """A graph in GML; nodes go by their labels."""
    lines = _content(source).decode("utf-8", "replace").splitlines()
    return _graph(source, lambda nx: nx.parse_gml(lines))


def _content(source: Source) -> bytes:
    parts, total = [], 0
    while chunk := source.read(2**20):
        total += len(chunk)
        if total > MOST:
            raise source.error(f"it holds more than {MOST} bytes; convert it to an edge list")
        parts.append(chunk)
    return b"".join(parts)


def _graph(source: Source, parse: Callable[[Any], Any]) -> MatrixFile:
    try:
        import networkx as nx
    except ImportError:
        raise InputError("GraphML and GML need networkx: pip install 'symnmf[graphs]'.") from None
    try:
        graph = parse(nx)
    except Exception as error:  # the parsers raise whatever they stumble over
        raise source.error(f"it cannot be read as {source.ending} ({shown(error)})") from error
    if graph.is_multigraph():
        graph = nx.Graph(graph)
    from symnmf.graphs import from_graph  # loads scikit-learn, which other files have no need of

    try:
        A, names = from_graph(graph)
    except InputError as error:
        raise source.error(str(error).rstrip(".").replace("G is", "it is")) from error
    named = np.empty(len(names), dtype=object)
    named[:] = [str(name) for name in names]
    return MatrixFile(A, "graph", named)

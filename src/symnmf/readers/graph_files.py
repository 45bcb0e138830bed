"""GraphML and GML files, parsed by networkx from content that is bounded and checked first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.parsers import expat

import numpy as np

from symnmf.errors import InputError, warn
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source, shown

#: Most bytes of such a file: both parsers hold all of it, many times over.
MOST = 256 * 2**20
_LABEL = re.compile(r"\s*(?:node\b.*\[.*)?\blabel\s")
ADVICE = "convert it to an edge list"


def read_graphml(source: Source) -> MatrixFile:
    """A graph in GraphML; a file that declares entities is refused."""
    content = source.content(MOST, ADVICE)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise source.error("it declares XML entities, which are not supported; remove them")
    return _graph(source, lambda nx: _first_graph(nx, content))


def _first_graph(nx: Any, content: bytes) -> Any:
    """The graph of the file, if it is the only one: networkx reads the first and says nothing."""
    count = 0

    def begin(name: str, _: object) -> None:
        nonlocal count
        count += name.rpartition(":")[2] == "graph"

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.Parse(content, True)
    if count > 1:
        raise ValueError(f"it holds {count} graphs, side by side or nested; keep one")
    return nx.parse_graphml(content.decode("utf-8"))


def read_gml(source: Source) -> MatrixFile:
    """A graph in GML; nodes go by their labels, else by their names, else by their ids.

    igraph writes no labels.
    """
    lines = source.content(MOST, ADVICE).decode("utf-8", "replace").splitlines()
    return _graph(source, lambda nx: _labelled(nx, lines))


def _labelled(nx: Any, lines: list[str]) -> Any:
    if any(_LABEL.match(line) for line in lines):
        return nx.parse_gml(lines)
    graph = nx.parse_gml(lines, label="id")
    names = [data.get("name") for _, data in graph.nodes(data=True)]
    if None in names or len(set(map(str, names))) < len(names):
        return graph
    return nx.relabel_nodes(graph, dict(zip(graph, map(str, names), strict=True)))


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
        graph = _summed(nx, graph, source)
    from symnmf.graphs import from_graph  # loads scikit-learn, which other files have no need of

    try:
        A, names = from_graph(graph)
    except InputError as error:
        raise source.error(str(error).rstrip(".").replace("G is", "it is")) from error
    named = np.empty(len(names), dtype=object)
    named[:] = [str(name) for name in names]
    return MatrixFile(A, "graph", named)


def _summed(nx: Any, graph: Any, source: Source) -> Any:
    """The graph whose edges have the sums of the weights of parallel ones."""
    simple = (nx.DiGraph if graph.is_directed() else nx.Graph)()
    simple.add_nodes_from(graph.nodes)
    parallel = 0
    for u, v, attributes in graph.edges(data=True):
        weight = attributes.get("weight", 1.0)
        try:
            weight = float(weight)
        except (TypeError, ValueError, OverflowError):
            said = f"the edge between {shown(u)} and {shown(v)} has the weight {shown(weight)}"
            raise source.error(f"{said}, which is no number that fits") from None
        if simple.has_edge(u, v):
            parallel += 1
            weight += simple[u][v]["weight"]
        simple.add_edge(u, v, weight=weight)
    if parallel:
        warn(
            f"file {shown(source.path, 300)} has {parallel} parallel edges; the weights of such "
            f"edges were summed.",
            UserWarning,
        )
    return simple

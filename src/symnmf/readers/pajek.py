"""Graphs of Pajek (.net) and VOSviewer (.json)."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source, shown
from symnmf.readers.sparse_parts import adjacency, check_dimensions
from symnmf.readers.text import Line, integers, lines_of, number, number_problem

#: A vertex: its number, and its label in quotes or without.
_VERTEX = re.compile(r'(\d{1,18})(?:\s+(?:"([^"]*)"|(\S+)))?')
PAIRS = ("*edges", "*arcs")
LISTS = ("*edgeslist", "*arcslist")


class _Network:
    """What the lines of a .net file have said so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.section = ""
        self.n = 0
        self.labels: dict[int, str] = {}
        self.ends: list[tuple[int, int]] = []
        self.weights: list[float] = []
        self.lines: list[int] = []

    def take(self, line: Line) -> None:
        """One line of the file, which is no comment."""
        text = line[1]
        if text.startswith(b"*"):
            self._begin(line)
        elif self.section == "*vertices":
            self._vertex(line)
        elif self.section in PAIRS:
            self._pair(line)
        elif self.section in LISTS:
            fields = text.split()
            for other in fields[1:]:
                self._add(line[0], [fields[0], other], 1.0)
        elif not self.section:
            raise self.source.error("a Pajek file begins with *Vertices and their number", line[0])

    def _begin(self, line: Line) -> None:
        words = line[1].split()
        self.section = words[0].decode("utf-8").lower().partition(":")[0]
        if self.section == "*vertices":
            count = integers(words[1:2])
            if self.n or count is None or not count.size:
                raise self.source.error("it must say once how many *Vertices there are", line[0])
            self.n = int(count[0])
        elif self.section not in (*PAIRS, *LISTS):
            raise self.source.error(
                f"the part {shown(words[0])} is not read; keep *Vertices, *Edges and *Arcs", line[0]
            )

    def _vertex(self, line: Line) -> None:
        found = _VERTEX.match(line[1].decode("utf-8"))
        if found is None or not 1 <= int(found[1]) <= self.n:
            raise self.source.error(f"a vertex begins with its number, 1 to {self.n}", line[0])
        label = found[2] if found[2] is not None else found[3]
        if label:
            self.labels[int(found[1])] = label

    def _pair(self, line: Line) -> None:
        fields = line[1].split()
        if len(fields) < 2:
            raise self.source.error("an edge needs two ends", line[0])
        # what follows is a weight where it begins as a number, else how the edge is drawn
        third = fields[2] if len(fields) > 2 else b"1"
        numeric = number(third) is not None or third[:1] in b"+-.0123456789"
        if numeric and (problem := number_problem(third)):
            raise self.source.error(f"the weight {problem}", line[0])
        self._add(line[0], fields[:2], float(third) if numeric else 1.0)

    def _add(self, line: int, fields: list[bytes], weight: float) -> None:
        ends = integers(fields)
        if ends is None or ends.min() < 1 or ends.max() > self.n:
            said = " and ".join(shown(field) for field in fields)
            raise self.source.error(
                f"the ends of an edge are numbers from 1 to {self.n}, got {said}", line
            )
        self.ends.append((int(ends[0]) - 1, int(ends[1]) - 1))
        self.weights.append(weight)
        self.lines.append(line)


def read_pajek(source: Source) -> MatrixFile:
    """A graph in Pajek's .net format; an arc is read as an edge.

    Vertices go by their labels where all have different ones, else by their numbers.
    """
    network = _Network(source)
    for lines in lines_of(source, b"%"):
        for line in lines:
            network.take(line)
    if not network.n:
        raise source.error("it says nowhere how many *Vertices there are")
    check_dimensions(source, (network.n, network.n), len(network.ends))
    pairs = np.array(network.ends, dtype=np.int64).reshape(-1, 2)
    names = np.arange(1, network.n + 1)  # a file of a few bytes may name a million vertices
    if len(network.labels) == network.n:
        names = _names([network.labels[place] for place in names.tolist()], names)
    A = adjacency(
        source,
        network.n,
        (pairs[:, 0], pairs[:, 1]),
        np.array(network.weights),
        names,
        np.array(network.lines),
    )
    return MatrixFile(A, "graph", names)


def _names(labels: list[str], ids: Any) -> np.ndarray:
    """The labels where each node has one of its own, else the ids."""
    if all(labels) and len(set(labels)) == len(labels):
        names = np.empty(len(labels), dtype=object)
        names[:] = labels
        return names
    return np.array(list(ids), dtype=np.int64)


#: Most bytes of a .json file, which is parsed as a whole.
MOST = 256 * 2**20


def read_vosviewer(source: Source) -> MatrixFile:
    """A network that VOSviewer wrote as .json."""
    content = source.content(MOST, "export the network as a Pajek file")
    try:
        network = json.loads(content)["network"]
        items = [(int(item["id"]), str(item.get("label", ""))) for item in network["items"]]
        links = [
            (int(link["source_id"]), int(link["target_id"]), float(link.get("strength", 1.0)))
            for link in network["links"]
        ]
    except (
        ArithmeticError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise source.error(
            f"it is no network of VOSviewer, which has items and links ({shown(error)})"
        ) from error
    place = {number: row for row, (number, _) in enumerate(items)}
    if len(place) < len(items) or not items:
        raise source.error("its items need ids that differ")
    unknown = [end for u, v, _ in links for end in (u, v) if end not in place]
    if unknown:
        raise source.error(f"a link leads to {unknown[0]}, which is the id of no item")
    ends = np.array([(place[u], place[v]) for u, v, _ in links], dtype=np.int64).reshape(-1, 2)
    try:
        names = _names([label for _, label in items], list(place))
    except OverflowError:
        raise source.error("an item has an id that is too large") from None
    weights = np.array([weight for *_, weight in links])
    A = adjacency(source, len(items), (ends[:, 0], ends[:, 1]), weights, names)
    return MatrixFile(A, "graph", names)

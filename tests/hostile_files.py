"""Files to attack the readers with: sound ones, damaged ones, and ones that a grammar gives."""

from __future__ import annotations

import gzip
import io
import random
import re
import warnings
import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from hostile_formats import (
    HYPEREDGES,
    PAJEK,
    VOSVIEWER,
    binary_seeds,
    grown_json,
    grown_pajek,
)

NUMBERS = [
    *(b"0 1 -1 2 7 255 256 65536 1048577 2147483647 2147483648 4294967296".split()),
    *(b"9223372036854775807 9223372036854775808 99999999999999999999 1e999 -1e308 nan inf".split()),
    *(b"1_0 0x10 007 +3 1e-400 - . e5 1e18 9999999999999999".split()),
]
FRAGMENTS = [
    *(b"\n", b"\r\n", b"\r", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b",", b",,", b"\t", b" "),
    *(b"#", b"%", b";", b"'", b"(", b")", b"L", b"|O", b"<U9999", b">f2", b"PK\x03\x04"),
    *(b"symmetric", b"complex", b"pattern", b"array", b"\xc3", "é".encode(), b"\x1f\x8b"),
]


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _sparse() -> bytes:
    buffer = io.BytesIO()
    sp.save_npz(buffer, sp.random_array((9, 7), density=0.3, rng=0, format="csr"))
    return buffer.getvalue()


EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])
TABLE = b"a,b,c\n" + b"".join(b"%d,%d.5,-%de-3\n" % (i, i, i) for i in range(12))
LIST = b"# u v w\n" + b"".join(b"%d %d %d.25\n" % (i, 30 + i % 4, i + 1) for i in range(20))
WORDS = "source,target\nAnn Lee,Bob\nBob,Zoë\n10,Ann Lee\n=x,Bob\n".encode()
COORDINATE = (
    b"%%MatrixMarket matrix coordinate real symmetric\n% note\n5 5 6\n"
    + b"".join(
        b"%d %d %d.5\n" % entry for entry in [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 4, 2), (5, 1, 3)]
    )
    + b"5 4 1e-3\n"
)
ARRAY = b"%%MatrixMarket matrix array integer general\n3 2\n1\n2\n3\n4\n5\n6\n"
GML = b"""graph [
  comment "a note"
  node [ id 0 label "Ann Lee" ]
  node [ id 1 label "Bob" graphics [ x 1.5 y -2 ] ]
  node [ id 2 label "Zo&#235;" ]
  edge [ source 0 target 1 weight 2.5 ]
  edge [ source 1 target 2 weight 1 ]
]
"""
GRAPHML = b"""<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="weight" attr.type="double"><default>1.0</default></key>
<graph id="G" edgedefault="undirected">
<node id="Ann Lee"/><node id="Bob"/><node id="Zo&#235;"/>
<edge id="e0" source="Ann Lee" target="Bob"><data key="d0">2.5</data></edge>
<edge source="Bob" target="Zo&#235;"/>
</graph></graphml>
"""
LABELS = b"id,label\n1,red\n2,blue\n3,red\n"

SEEDS: dict[str, bytes] = {
    "dense.npy": _npy(np.arange(12.0).reshape(4, 3)),
    "dense.npy.gz": gzip.compress(_npy(np.arange(12.0).reshape(4, 3)), mtime=0),
    "dense.npz": _npz(X=np.arange(12, dtype=np.uint8).reshape(4, 3), y=np.array([0, 1, 1, 0])),
    "sparse.npz": _sparse(),
    "graph.npz": _npz(edges=EDGES, y=np.array([0, 1, 0, 1]), node_names=np.array(list("abcd"))),
    "graph.npz.gz": gzip.compress(_npz(edges=EDGES), mtime=0),
    "table.csv": TABLE,
    "table.csv.gz": gzip.compress(TABLE, mtime=0),
    "table.tsv": TABLE.replace(b",", b"\t"),
    "coordinate.mtx": COORDINATE,
    "array.mtx": ARRAY,
    "weighted.edges": LIST,
    "weighted.edges.gz": gzip.compress(LIST, mtime=0),
    "words.txt": WORDS,
    "edges.csv": WORDS,
    "graph.gml": GML,
    "graph.graphml": GRAPHML,
    "graph.net": PAJEK,
    "map.json": VOSVIEWER,
    "groups.hyperedges": HYPEREDGES,
    **binary_seeds(),
    "labels.csv": LABELS,
    "labels.txt": b"0\n1\n1\n-1\n2\n",
    "labels.npy": _npy(np.array(["red", "blue", "red"])),
    "labels.npz": _npz(y=np.array([0.0, 1.0, 2.0])),
}


def _mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to three random edits."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(data) + 1)
        edit = rng.randrange(7)
        if edit == 0 and data:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif edit == 1:
            data = data[:at]
        elif edit == 2:
            data = data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]
        elif edit == 3:
            data = data[:at] + data[at + rng.randint(1, 16) :]
        elif edit == 4:
            other = rng.choice([data, rng.choice(list(SEEDS.values()))])
            start = rng.randrange(len(other) + 1)
            data = data[:at] + other[start : start + rng.randint(1, 200)] + data[at:]
        elif edit == 5:
            data = data[:at] + rng.choice(FRAGMENTS) + data[at:]
        else:
            data = _change_number(rng, data)
    return data


def _change_number(rng: random.Random, data: bytes) -> bytes:
    places = list(re.finditer(rb"\d+", data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start()] + rng.choice(NUMBERS) + data[place.end() :]


def _mutate_archive(rng: random.Random, data: bytes) -> bytes:
    """Damage, drop, double or rename one member and pack the archive again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        action = rng.randrange(8)
        for name in names:
            content = old.read(name)
            if name == chosen and action == 0:
                continue
            if name == chosen and action == 1:
                name = rng.choice(["X.npy", "y.npy", "edges.npy", "../../X.npy", "format.npy"])
            elif name == chosen:
                content = _mutate_bytes(rng, content)
            kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # two members of one name are meant here
                new.writestr(name, content, kind if rng.random() < 0.1 else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def mutate(rng: random.Random, name: str, data: bytes) -> bytes:
    """A damaged version of a seed file, in its outer bytes or inside its packing."""
    if name.endswith(".gz") and rng.random() < 0.6:
        inner = mutate(rng, name.removesuffix(".gz"), gzip.decompress(data))
        return gzip.compress(inner, compresslevel=1, mtime=0)
    if name.endswith(".npz") and rng.random() < 0.7:
        return _mutate_archive(rng, data)
    return _mutate_bytes(rng, data)


def _field(rng: random.Random) -> bytes:
    """A number, a name, or something that is almost one of these."""
    kind = rng.randrange(12)
    if kind < 6:
        return b"%d" % rng.choice((rng.randrange(10), rng.randrange(300), rng.randrange(2**34)))
    if kind == 6:
        return repr(rng.uniform(-9, 9) * 10.0 ** rng.randint(-30, 30)).encode()
    if kind == 7:
        return b"%d.%de%d" % (rng.randrange(99), rng.randrange(10**9), rng.randint(-25, 25))
    if kind == 8:
        return rng.choice(NUMBERS)
    if kind == 9:
        return rng.choice([b"", b"=x", "Zoë".encode(), b'"a b"', b"NA", b"label", b"id", b"name"])
    return bytes(rng.choice(b"abcXYZ'_") for _ in range(rng.randint(1, 6)))


def _lines(rng: random.Random, separator: bytes, width: int) -> bytes:
    """Rows of fields, most of them alike, with comments, blank lines and odd ends among them."""
    plain = rng.random() < 0.7
    rows = []
    for _ in range(rng.choice((rng.randint(0, 10), rng.randint(0, 40)))):
        length = width if rng.random() < 0.99 else rng.randint(0, 4)
        digits = [b"%d" % rng.randrange(50) for _ in range(length)]
        fields = digits if plain and rng.random() < 0.97 else [_field(rng) for _ in range(length)]
        rows.append(rng.choice([separator] * 9 + [separator + b" "]).join(fields))
        if rng.random() < 0.03:
            rows.append(rng.choice([b"", b"# note", b"% note", b" ", b"\t", b"#"]))
    return rng.choice([b"\n"] * 9 + [b"\r\n"]).join(rows) + rng.choice([b"\n", b"", b"\n\n"])


def _market(rng: random.Random) -> bytes:
    form = rng.choice([b"coordinate"] * 3 + [b"array", b"vector"])
    field = rng.choice([b"real", b"integer", b"pattern", b"double", b"complex"])
    symmetry = rng.choice([b"general", b"symmetric", b"hermitian"])
    rows, columns, entries = (rng.randint(0, 6) for _ in range(3))
    width = (2 if form == b"coordinate" else 0) + (field != b"pattern")
    sizes = b"%d %d" % (rows, columns) + (b" %d" % entries if form == b"coordinate" else b"")
    body = [
        b" ".join([b"%d" % rng.randint(1, max(rows, 1))] * (width > 1) + [_field(rng)] * width)
        for _ in range(entries if form == b"coordinate" else rows * columns)
    ]
    banner = b"%%MatrixMarket matrix " + b" ".join([form, field, symmetry])
    return b"\n".join([banner, rng.choice([sizes, sizes, sizes + b" 1", b""]), *body])


def _gml(rng: random.Random) -> bytes:
    """Nested lists of keys and values, most of them what a graph needs."""
    kind = [b"", b"directed 1 ", b"multigraph 1 ", b"directed 0 "]
    parts = [b"graph [", rng.choice(kind)]
    nodes = rng.randint(0, 5)
    for place in range(nodes):
        number = place if rng.random() < 0.95 else rng.randrange(3)
        name = rng.choice([b'"n%d"' % number, b"%d" % number, b'"%s"' % _field(rng)])
        parts.append(b"node [ id %d label %s ]" % (number, name))
    for _ in range(rng.randint(0, 8) if nodes else 0):
        ends = rng.randrange(nodes), rng.randrange(nodes + (rng.random() < 0.05))
        weight = rng.choice([b"", b"weight %d" % rng.randint(0, 3), b"weight " + _field(rng)])
        parts.append(b"edge [ source %d target %d " % ends + weight + b" ]")
    if rng.random() < 0.1:
        parts.insert(rng.randrange(len(parts) + 1), b"a [ " * rng.choice((1, 30, 3000)))
    return rng.choice([b"\n", b" "]).join([*parts, b"]"])


def _graphml(rng: random.Random) -> bytes:
    """Elements of a graph, most of them where they belong."""
    kinds = [b"double", b"float", b"int", b"string", b"boolean", b"long", b"complex"]
    key = b'<key id="w" for="edge" attr.name="weight" attr.type="%s"/>' % rng.choice(kinds)
    nodes = rng.randint(0, 5)
    parts = [b'<node id="%d"/>' % place for place in range(nodes)]
    for _ in range(rng.randint(0, 8)):
        ends = rng.randrange(nodes + 1), rng.randrange(nodes + 1)
        number = b"%d" % rng.randint(0, 3) if rng.random() < 0.7 else _field(rng)
        data = rng.choice([b"", b'<data key="w">%s</data>' % number])
        parts.append(b'<edge source="%d" target="%d">%s</edge>' % (*ends, data))
    if rng.random() < 0.1:
        odd = [b"<port/>", b"<hyperedge/>", b"<graph>" * 300, b"<node/>", b"<!DOCTYPE a>", b"&lt;"]
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(odd))
    name = rng.choice([b"graphml", b"graphml", b"graph"])
    space = rng.choice([b' xmlns="http://graphml.graphdrawing.org/xmlns"'] * 4 + [b""])
    sort = rng.choice([b"undirected"] * 4 + [b"directed"])
    inner = b'<graph edgedefault="%s">%s</graph>' % (sort, b"".join(parts))
    return b"<%s%s>%s%s</%s>" % (name, space, key, inner, name)


def _array(rng: random.Random) -> np.ndarray:
    shape = tuple(rng.randint(0, 4) for _ in range(rng.choice((0, 1, 2, 2, 2, 3))))
    kind = rng.choice(["f8", "f4", ">f8", "i8", "i4", "u8", "u1", "?", "U3", "S3", "c16", "f2"])
    values = np.array([rng.randint(0, 5) for _ in range(int(np.prod(shape)))])
    return values.astype(kind).reshape(shape)


def header_by_hand(rng: random.Random) -> bytes:
    """A .npy file whose header was written by hand."""
    sizes = [rng.choice([str(rng.randint(0, 4)), "3L", " 2", "2 ", "1\x1c", "9" * 19, "-1", ""])]
    sizes += [str(rng.randint(0, 4)) for _ in range(rng.randint(0, 2))]
    descriptions = ["'<f8'", "'|O'", "'<i4'", "'|u1'", "[('a', '<f8')]", "'<U2'"]
    parts = [
        f"'descr': {rng.choice(descriptions)}",
        f"'fortran_order': {rng.choice(['True', 'False', '1'])}",
        f"'shape': ({', '.join(sizes)}{rng.choice(['', ',', ' , '])})",
    ]
    rng.shuffle(parts)
    gap = " " * rng.choice((0, 1, 1, 50, 5000))
    header = ("{" + f",{gap}".join(parts) + rng.choice([", }", "}", ""])).encode("latin-1")
    length = len(header).to_bytes(2, "little")
    return (
        b"\x93NUMPY"
        + rng.choice([b"\1\0", b"\2\0"])
        + length
        + header
        + bytes(rng.choice((0, 8, 32, 96)))
    )


def _archive(rng: random.Random) -> bytes:
    names = ["X", "y", "edges", "n", "weights", "node_names", "format", "shape", "data", "indices"]
    names += ["indptr", "row", "col", "labels"]
    chosen = rng.choice((names[:2], names[2:6], names[6:11], names[6:9] + names[11:13], names))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in rng.sample(chosen, rng.randint(1, len(chosen))):
            array = _array(rng)
            if name == "format" and rng.random() < 0.8:
                array = np.array(rng.choice([b"csr", b"csc", b"coo", b"bsr"]))
            content = _npy(array) if rng.random() < 0.9 else header_by_hand(rng)
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def grow(rng: random.Random, name: str) -> bytes:
    """A file of the kind ``name``, made by a grammar of what such files hold, well or badly."""
    if name.endswith(".gz"):
        return gzip.compress(grow(rng, name.removesuffix(".gz")), compresslevel=1, mtime=0)
    if name.endswith(".npz"):
        return _archive(rng)
    if name.endswith(".npy"):
        return _npy(_array(rng)) if rng.random() < 0.4 else header_by_hand(rng)
    if name.endswith(".mtx"):
        return _market(rng)
    if name.endswith(".gml"):
        return _gml(rng)
    if name.endswith(".graphml"):
        return _graphml(rng)
    if name.endswith(".net"):
        return grown_pajek(rng, _lines(rng, b" ", rng.choice((2, 2, 3))))
    if name.endswith(".json"):
        return grown_json(rng)
    if name.endswith((".h5ad", ".cool", ".parquet")):  # what these hold is damaged, not made
        return _mutate_bytes(rng, SEEDS[name])
    if name.startswith("labels"):
        return _lines(rng, b",", rng.choice((1, 1, 2, 3)))
    if name == "edges.csv":
        return b"source,target\n" + _lines(rng, b",", rng.choice((2, 2, 3)))
    if name.endswith((".csv", ".tsv")):
        return _lines(rng, b"," if name.endswith(".csv") else b"\t", rng.randint(1, 4))
    return _lines(rng, rng.choice((b" ", b"\t", b",")), rng.choice((2, 2, 3)))


class Maker:
    """Makes files that were damaged, that a grammar gave, or both, one at a call."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.grown = [grow(rng, name) for _ in range(10)]

    def __call__(self) -> bytes:
        rng = self.rng
        kind = rng.randrange(3)
        if kind == 0:
            return mutate(rng, self.name, SEEDS[self.name])
        place = rng.randrange(len(self.grown))
        if kind == 1:  # damaged before, and replaced here: growing takes longer than damaging
            self.grown[place] = grow(rng, self.name)
            return self.grown[place]
        return _mutate_bytes(rng, self.grown[place])

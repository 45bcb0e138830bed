"""Damaged files: whatever the bytes, a reader returns sound data or raises ``InputError``."""

from __future__ import annotations

import gzip
import io
import random
import re
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import long_count
from symnmf.errors import InputError
from symnmf.readers import MatrixFile, edges, read_labels, read_matrix, text

MEMORY = 64 * 2**20
"""Most bytes reading one of these small files may hold at any moment."""

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
    for _ in range(rng.randint(0, 40)):
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


def _array(rng: random.Random) -> np.ndarray:
    shape = tuple(rng.randint(0, 4) for _ in range(rng.choice((0, 1, 2, 2, 2, 3))))
    kind = rng.choice(["f8", "f4", ">f8", "i8", "i4", "u8", "u1", "?", "U3", "S3", "c16", "f2"])
    values = np.array([rng.randint(0, 5) for _ in range(int(np.prod(shape)))])
    return values.astype(kind).reshape(shape)


def _header(rng: random.Random) -> bytes:
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
            content = _npy(array) if rng.random() < 0.9 else _header(rng)
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def grow(rng: random.Random, name: str) -> bytes:
    """A file of the kind ``name``, made by a grammar of what such files hold, well or badly."""
    if name.endswith(".gz"):
        return gzip.compress(grow(rng, name.removesuffix(".gz")), compresslevel=1, mtime=0)
    if name.endswith(".npz"):
        return _archive(rng)
    if name.endswith(".npy"):
        return _npy(_array(rng)) if rng.random() < 0.4 else _header(rng)
    if name.endswith(".mtx"):
        return _market(rng)
    if name.startswith("labels"):
        return _lines(rng, b",", rng.choice((1, 1, 2, 3)))
    if name.endswith((".csv", ".tsv")):
        return _lines(rng, b"," if name.endswith(".csv") else b"\t", rng.randint(1, 4))
    return _lines(rng, rng.choice((b" ", b"\t", b",")), rng.choice((2, 2, 3)))


@dataclass
class Tally:
    """What a run of the fuzzer saw."""

    read: int = 0
    refused: int = 0
    peak: int = 0


def _check_result(result: MatrixFile | np.ndarray) -> None:
    if isinstance(result, np.ndarray):
        assert result.ndim == 1
        assert result.size > 0
        return
    values = result.data if isinstance(result.data, np.ndarray) else result.data.data
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    if result.kind == "graph":
        assert abs(result.data - result.data.T).sum() == 0
    for column in (result.names, result.labels):
        assert column is None or len(column) == result.data.shape[0]


def _check_sentence(text: str, name: str) -> None:
    assert text.startswith("file '")
    assert name in text
    assert text.endswith(".")
    assert text.isprintable()
    assert "more memory" not in text
    assert len(text) < 1000


@contextmanager
def traced_memory(tally: Tally) -> Iterator[None]:
    """Fail when what is allocated inside exceeds ``MEMORY``; exact, and slow."""
    tracemalloc.start()
    try:
        yield
        tally.peak = max(tally.peak, tracemalloc.get_traced_memory()[1])
        assert tally.peak <= MEMORY
    finally:
        tracemalloc.stop()


@contextmanager
def capped_memory() -> Iterator[None]:
    """Let the process grow by ``MEMORY`` and no more, so that a larger request fails at once."""
    resource = pytest.importorskip("resource", reason="the system has no address-space limit")
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("the system does not tell the size of the address space in /proc")
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def attempt(path: Path, data: bytes, tally: Tally) -> None:
    """Read one damaged file; an error carries the bytes that broke a promise."""
    path.write_bytes(data)
    read = read_labels if path.name.startswith("labels") else read_matrix
    try:
        try:
            _check_result(read(path))
            tally.read += 1
        except InputError as error:
            _check_sentence(str(error), path.name)
            tally.refused += 1
    except Exception as error:
        error.add_note(f"reading {data!r}")
        raise


@pytest.mark.parametrize("name", SEEDS)
def test_undamaged_seeds_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SEEDS[name])
    _check_result((read_labels if name.startswith("labels") else read_matrix)(tmp_path / name))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compiled reader of edges have a part in small files, all but their first lines."""
    monkeypatch.setattr(text, "BLOCK", 64)


def make(rng: random.Random, name: str) -> bytes:
    """A file that was damaged, or one that a grammar gave, or both."""
    kind = rng.randrange(3)
    if kind == 0:
        return mutate(rng, name, SEEDS[name])
    grown = grow(rng, name)
    return grown if kind == 1 else _mutate_bytes(rng, grown)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files_raise_only_input_errors(name: str, tmp_path: Path) -> None:
    rng, tally = random.Random(f"short {name}"), Tally()
    for _ in range(300):
        data = make(rng, name)
        with traced_memory(tally):
            attempt(tmp_path / name, data, tally)
    # Both ends are reached, so the files are neither harmless nor caught at the door.
    assert tally.read > 0
    assert tally.refused > 0


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEEDS)
def test_very_many_damaged_files(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rng, tally = random.Random(f"long {name}"), Tally()
    read_matrix(_written(tmp_path / "warm.edges", SEEDS["weighted.edges"] * 9))  # compiled, once
    with capped_memory():
        for _ in range(long_count("SYMNMF_FUZZ", 100_000)):
            attempt(tmp_path / name, make(rng, name), tally)
    record_property("read", tally.read)
    record_property("refused", tally.refused)
    assert tally.read > 0
    assert tally.refused > 0


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.usefixtures("small_blocks")
def test_compiled_and_general_reading_of_edges_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, used = random.Random(5), 0
    for place in range(400):
        path = _written(tmp_path / f"{place}.edges", grow(rng, "weighted.edges"))
        answers = []
        for compiled in (True, False):
            with monkeypatch.context() as patch:
                if not compiled:
                    patch.setattr(edges._Plain, "parse", lambda *_: None)
                try:
                    read = read_matrix(path)
                except InputError as error:
                    answers.append(str(error))
                else:
                    matrix = read.data
                    names = None if read.names is None else read.names.tolist()
                    rows = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
                    answers.append((names, rows))
                    used += 1
        assert answers[0] == answers[1], path.read_bytes()
    assert used > 100


@pytest.mark.parametrize("weight", ["0.1", "1e22", "123456789012345", "-7.25e-3", "+.5", "5.", "0"])
def test_weights_are_the_nearest_floats(tmp_path: Path, weight: str) -> None:
    lines = "".join(f"{k} {k + 1} {weight}\n" for k in range(60_000))  # more than one block
    data = read_matrix(_written(tmp_path / "a.edges", lines.encode())).data
    assert set(data.data.tolist()) == ({float(weight)} if float(weight) else set())

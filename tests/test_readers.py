"""NumPy files, compressed files and places that are no files: read, or refused in one sentence."""

from __future__ import annotations

import errno
import gzip
import io
import os
import threading
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from reader_files import Make, dense, npy, npz, refused, stored, write_file
from symnmf.errors import InputError
from symnmf.readers import read_labels, read_matrix
from symnmf.readers.labels import FREE_LINES

DATA = Path(os.environ.get("SYMNMF_DATA", Path(__file__).parents[2] / "shared" / "data"))
RNG = np.random.default_rng(0)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return partial(write_file, tmp_path)


# NumPy arrays


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("dtype", ["f8", ">f4", "f2", "u1", "i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_round_trip(make: Make, dtype: str, order: str, gz: str) -> None:
    array = np.array(RNG.integers(0, 2, (5, 3)), dtype=dtype, order=order)  # type: ignore[call-overload]
    read = read_matrix(make(f"a.npy{gz}", npy(array)))
    assert read.kind == "matrix"
    assert read.data.dtype == np.float64
    np.testing.assert_array_equal(read.data, array.astype(float))


def headed(header: bytes) -> bytes:
    """A .npy file of 96 bytes with a header of one's own."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(96)


def test_a_shape_may_be_written_as_python_2_did(make: Make) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4L,   3L), }"
    assert read_matrix(make("a.npy", headed(header))).data.shape == (4, 3)


def test_npy_refusals(make: Make) -> None:
    good = npy(np.ones((4, 3)))
    objects = io.BytesIO()
    np.save(objects, np.array([["a", None]], dtype=object), allow_pickle=True)
    refused(make("a.npy", objects.getvalue()), "never unpickled")
    refused(make("a.npy", npy(np.zeros((2, 2), dtype=[("x", "f8")]))), "records")
    refused(make("a.npy", npy(np.ones((2, 2), dtype=complex))), "real numbers")
    refused(make("a.npy", npy(np.ones(4))), "2-D", "1-D")
    refused(make("a.npy", npy(np.ones((0, 4)))), "(0, 4)", "holds nothing")
    refused(make("a.npy", npy(np.array([["a"]]))), "numbers")
    refused(make("a.npy", npy(np.array([[1.0, 2.0], [3.0, np.nan]]))), "not finite at [1, 1]")
    refused(make("a.npy", good[:-1]), "needs 96 bytes but 95 are there")
    refused(make("a.npy", good + b"!"), "needs 96 bytes but 97 are there")
    refused(make("a.npy.gz", good[:-1]), "needs 96 bytes but the stream holds fewer")
    refused(make("a.npy.gz", good + b"!"), "needs 96 bytes but the stream holds more")
    refused(make("a.npy", good.replace(b"(4, 3)", b"(4, x)")), "damaged .npy header")
    for shape in (b"(4L\n, 3)", b"(4\x1c, 3)", b"(4, " + 9000 * b" " + b"x)"):
        refused(
            make(
                "a.npy", headed(b"{'descr': '<f8', 'fortran_order': False, 'shape': %s, }" % shape)
            ),
            "damaged .npy header",
        )
    refused(make("a.npy", b"not an array at all"), "does not begin")
    refused(make("a.npy", good[:7]), "does not begin")


@pytest.mark.parametrize("name", ["a.npy", "a.npy.gz"])
def test_npy_header_cannot_size_an_allocation(make: Make, name: str) -> None:
    good = npy(np.ones((4, 3)))
    huge = good.replace(b"(4, 3), }" + b" " * 16, b"(400000000, 300000000), }")
    assert len(huge) == len(good)
    refused(make(name, huge), "file")


# NumPy archives


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("name", ["X", "adjacency", "affinity", "anything"])
def test_npz_with_one_array(make: Make, name: str, gz: str) -> None:
    array = RNG.random((4, 3))
    read = read_matrix(make(f"a.npz{gz}", npz(**{name: array, "y": np.array(list("abca"))})))
    np.testing.assert_array_equal(read.data, array)
    assert read.labels is not None
    assert read.labels.tolist() == list("abca")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_sparse_round_trip(tmp_path: Path, form: str) -> None:
    matrix = sp.random_array((30, 20), density=0.2, rng=1, format=form)
    sp.save_npz(tmp_path / "a.npz", matrix)
    read = read_matrix(tmp_path / "a.npz")
    assert read.kind == "matrix"
    np.testing.assert_array_equal(dense(read.data), matrix.toarray())


def test_npz_graph(make: Make) -> None:
    edges = np.array([[0, 1], [1, 2], [2, 1]])
    read = read_matrix(make("g.npz", npz(edges=edges, y=np.array([3, 3, 4, 5]))))
    expected = np.zeros((4, 4))
    expected[[0, 1, 1, 2], [1, 0, 2, 1]] = 1
    assert read.kind == "graph"
    np.testing.assert_array_equal(dense(read.data), expected)
    assert read.labels is not None
    assert read.labels.tolist() == [3, 3, 4, 5]
    weighted = read_matrix(make("g.npz", npz(edges=edges[:2], weights=[0.5, 2.0], n=3)))
    assert dense(weighted.data).sum() == 5.0


def test_npz_graph_without_a_size_is_compacted(make: Make) -> None:
    read = read_matrix(make("g.npz", npz(edges=np.array([[10, 2**62], [7, 10]]))))
    assert read.data.shape == (3, 3)
    assert read.names is not None
    assert read.names.tolist() == [7, 10, 2**62]


def test_npz_refusals(make: Make) -> None:
    two = npz(A=np.ones((2, 2)), B=np.ones((2, 2)))
    refused(make("a.npz", two), "A, B", "exactly one of X, adjacency, affinity")
    refused(make("a.npz", npz(X=np.ones((2, 2)), y=np.arange(3))), "holds 3 labels for 2 rows")
    refused(make("a.npz", npz(edges=np.array([[0, 5]]), n=3)), "'edges' holds 5", "3 there are")
    refused(make("a.npz", npz(edges=np.array([[0, -5]]))), "'edges' must lie between 0")
    refused(make("a.npz", npz(edges=np.array([[0.0, 1.0]]))), "2-D array of integers")
    refused(make("a.npz", npz(edges=np.array([[0, 1, 2]]))), "has 3 columns")
    refused(make("a.npz", npz(edges=np.array([[0, 1]]), n=2**40)), "1 entries", "plausible")
    refused(make("a.npz", npz(X=np.array([[None]], dtype=object))), "never unpickled")
    refused(make("a.npz", npz(X=np.ones((9, 9)))[:-30]), "zip archive is damaged")
    refused(make("a.npz", b"PK nothing"), "zip archive is damaged")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"indices": np.array([0, 9])}, "'indices' holds 9, beyond the 2"),
        ({"indptr": np.array([0, 2, 1])}, "does not rise"),
        ({"indptr": np.array([0, 1])}, "'indptr' holds 2 values, not 3"),
        ({"shape": np.array([2, 2**50])}, "plausible"),
        ({"shape": np.array([2, 2, 2])}, "3 dimensions"),
        ({"data": np.array([1.0, np.inf])}, "not finite at [1]"),
        ({"format": np.array(b"bsr")}, "save it as csr"),
    ],
)
def test_npz_sparse_refusals(make: Make, change: dict[str, np.ndarray], sentence: str) -> None:
    parts = {
        "format": np.array(b"csr"),
        "shape": np.array([2, 2]),
        "data": np.ones(2),
        "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]),
    }
    np.testing.assert_array_equal(
        dense(read_matrix(make("good.npz", npz(**parts))).data), np.eye(2)
    )
    refused(make("bad.npz", npz(**(parts | change))), sentence)


def test_zip_members_of_other_kinds_are_refused(make: Make) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", npy(np.ones((2, 2))))
    refused(make("a.npz", buffer.getvalue()), "compressed in an unknown way")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", npy(np.ones((2, 2))))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("X.npy", npy(np.zeros((2, 2))))
    refused(make("a.npz", buffer.getvalue()), "holds 'X' twice")


# Decompression


def test_a_small_file_of_many_lines_is_no_long_list(make: Make) -> None:
    """A line that is kept costs a hundred times what it may be compressed to."""
    lines = 2 * FREE_LINES
    tracemalloc.start()
    try:
        labels = read_labels(make("a.txt.gz", b"1\n" * lines))
        assert labels.tolist() == [1] * lines
        tracemalloc.reset_peak()
        refused(make("b.txt.gz", b"x\n" * lines), "decompression bomb", read=read_labels)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_a_sparse_format_that_is_no_text_is_refused(make: Make) -> None:
    refused(make("a.npz", npz(format=np.array(3), shape=np.array([2, 2]))), "'format'", "text")


def test_bombs_are_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros((1001, 1000))
    paths = [
        make("a.npz", npz(X=zeros)),
        make("a.npy.gz", npy(zeros)),
        make("a.csv.gz", b"0,0,0,0\n" * 200_000),
        make("b.npz.gz", npz(X=zeros)),  # packed twice, measured against the bytes on disk
    ]
    assert read_matrix(paths[0]).data.shape == zeros.shape  # small enough to need no guard
    monkeypatch.setattr("symnmf.readers.source.FREE_BYTES", 2**20)
    for path in paths:
        refused(path, "decompression bomb", "raise max_ratio if you trust it")
    assert read_matrix(paths[3], max_ratio=1e9).data.shape == zeros.shape


def test_max_bytes_bounds_every_way_in(make: Make) -> None:
    table = "1,2\n" * 100
    assert read_matrix(make("a.csv", table), max_bytes=400).data.shape == (100, 2)
    for path in (make("a.csv", table), make("a.csv.gz", table), make("a.npz", npz(X=np.eye(9)))):
        refused(path, "more than the 399 bytes allowed", max_bytes=399)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="max_bytes must be a positive integer"):
            read_matrix("a.csv", max_bytes=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_ratio must be a number"):
        read_matrix("a.csv", max_ratio=float("nan"))


def test_damaged_gzip(make: Make, tmp_path: Path) -> None:
    whole = gzip.compress(b"1,2\n" * 1000)
    for damaged in (whole[:-9], whole[:20], b"1,2\n", whole[:-8] + b"\0" * 8):
        (tmp_path / "a.csv.gz").write_bytes(damaged)
        refused(tmp_path / "a.csv.gz", "gzip stream is damaged or cut short")


# Places that are not files


def test_places_that_are_not_files(tmp_path: Path, make: Make) -> None:
    refused(tmp_path / "absent.csv", "cannot be read (No such file or directory)")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", "it is a folder")
    refused(make("empty.csv", b""), "it is empty")
    refused(make("a.xlsx", b"PK"), "the ending '.xlsx' is not known; use one of .npy")
    refused(make("plain", b"1"), "the ending '' is not known")
    for bad in (3, None, "", "a\0.csv"):
        with pytest.raises(InputError, match="path must"):
            read_matrix(bad)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    reader = threading.Thread(
        target=refused, args=(tmp_path / "pipe.csv", "a device, a pipe or a socket"), daemon=True
    )
    reader.start()
    reader.join(30)
    assert not reader.is_alive()


def test_unreadable_file(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make("a.csv", "1,2\n")

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)  # root may read whatever chmod says
    refused(path, "cannot be read (Permission denied)")


def test_file_names_are_escaped_in_errors(make: Make) -> None:
    with pytest.raises(InputError) as caught:
        read_matrix(make("a\n\x1b[31m.csv", "x"))
    assert str(caught.value).isprintable()


# Real data


@pytest.mark.parametrize("name", ["karate", "football", "email_eu_core", "ego_facebook"])
def test_real_graphs(name: str) -> None:
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; set SYMNMF_DATA to the folder that holds it")
    read = read_matrix(path)
    with np.load(path) as archive:
        edges, n = archive["edges"], int(archive["n"])
    assert read.kind == "graph"
    assert read.data.shape == (n, n)
    assert stored(read.data) == 2 * len(edges)
    assert (read.data[edges[:, 0], edges[:, 1]] == 1).all()


# Graph files


GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="w" for="edge" attr.name="weight" attr.type="double"/>{}</graphml>'
)
EDGE = '<edge source="a" target="b"><data key="w">{}</data></edge>'


def graphml(*graphs: str) -> str:
    inner = "".join(f'<graph edgedefault="undirected">{graph}</graph>' for graph in graphs)
    return GRAPHML.format(inner)


def test_parallel_edges_are_summed_and_that_is_said(make: Make) -> None:
    pytest.importorskip("networkx")
    nodes = '<node id="a"/><node id="b"/>'
    path = make("a.graphml", graphml(nodes + EDGE.format(1) + EDGE.format(5)))
    with pytest.warns(UserWarning, match="1 parallel edges; the weights of such edges were summed"):
        assert dense(read_matrix(path).data).tolist() == [[0, 6], [6, 0]]
    gml = 'graph [ multigraph 1 node [ id 0 label "a" ] node [ id 1 label "b" ] {} {} ]'
    edge = "edge [ source 0 target 1 weight {} ]"
    path = make("a.gml", gml.format(edge.format(2), edge.format(3)))
    with pytest.warns(UserWarning, match="summed"):
        assert dense(read_matrix(path).data).tolist() == [[0, 5], [5, 0]]


def test_a_file_of_several_graphs_is_refused(make: Make) -> None:
    pytest.importorskip("networkx")
    one = '<node id="a"/><node id="b"/>' + EDGE.format(1)
    refused(make("a.graphml", graphml(one, one)), "holds 2 graphs")
    nested = '<node id="c"><graph edgedefault="undirected"><node id="d"/></graph></node>'
    refused(make("b.graphml", graphml(one + nested)), "holds 2 graphs")


def test_a_weight_of_thousands_of_digits_is_refused(make: Make) -> None:
    pytest.importorskip("networkx")
    node = 'node [ id {} label "{}" ] '
    for multi in ("", "multigraph 1 "):
        text = f"graph [ {multi}" + node.format(0, "a") + node.format(1, "b")
        text += f"edge [ source 0 target 1 weight {'9' * 4000} ] ]"
        refused(make("a.gml", text))

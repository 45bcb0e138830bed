"""Files: what other programs write is read as they wrote it, and what is damaged is refused."""

import gzip
import io as streams
import random
import warnings
import zipfile
import zlib

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from extras import optional
from symnmf import io
from symnmf.errors import InputError

pd, anndata, h5py, pyarrow = map(optional, ("pandas", "anndata", "h5py", "pyarrow"))
MARKET = "%%MatrixMarket matrix "


def put(folder, name, content):
    """Write a file, gzipped where its name says so."""
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def npy(array, **options):
    stream = streams.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npz(**members):
    stream = streams.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def dense(content):
    return content.data.toarray() if sp.issparse(content.data) else content.data


def refused(path, *words, read=io.read, **options):
    """One printable sentence that names the file."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    sentence = str(caught.value)
    assert path.name in sentence
    assert sentence.isprintable()
    assert sentence.endswith(".")
    for word in words:
        assert word in sentence
    return sentence


# What the libraries write ---------------------------------------------------------------------

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 4)),
    elements=st.floats(-1e300, 1e300, allow_nan=False),
)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]))
labels = st.lists(names.filter(lambda name: name.strip() == name and name), min_size=1, max_size=6)


@given(tables, st.sampled_from(["csv", "tsv", "npy", "npz", "mtx"]), st.booleans())
def test_a_table_is_read_as_it_was_written(tmp_path_factory, X, ending, zipped):
    path = tmp_path_factory.mktemp("table") / f"X.{ending}"
    if ending in ("csv", "tsv"):
        np.savetxt(path, X, delimiter="," if ending == "csv" else "\t", fmt="%.17g")
    elif ending == "mtx":
        scipy.io.mmwrite(path, X, precision=17)
    else:
        path.write_bytes(npy(X) if ending == "npy" else npz(X=X))
    if zipped:
        path = put(path.parent, f"{path.name}.gz", path.read_bytes())
    np.testing.assert_array_equal(dense(io.read(path)), X)


@given(st.integers(1, 30), st.floats(0.1, 1), st.sampled_from(["csr", "csc", "coo"]))
def test_a_sparse_matrix_is_read_as_it_was_written(tmp_path_factory, n, density, form):
    X = sp.random_array((n, n), density=density, format=form, rng=n)
    folder = tmp_path_factory.mktemp("sparse")
    sp.save_npz(folder / "X.npz", X)
    scipy.io.mmwrite(folder / "X.mtx", X, precision=17)
    for name in ("X.npz", "X.mtx"):
        if X.nnz:
            read = io.read(folder / name).data
            np.testing.assert_array_equal(read.toarray(), X.toarray())
            assert isinstance(read, sp.csr_array)


@given(st.data(), st.sampled_from(["edges", "csv", "graphml", "gml", "net"]))
def test_a_graph_is_read_as_it_was_written(tmp_path_factory, data, ending):
    n = data.draw(st.integers(2, 8))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    weights = st.floats(0.01, 100).map(lambda weight: round(weight, 3))
    edges = data.draw(st.dictionaries(pairs.map(sorted).map(tuple), weights, min_size=1))
    A = np.zeros((n, n))
    for (u, v), weight in edges.items():
        A[u, v] = A[v, u] = weight
    path = tmp_path_factory.mktemp("graph") / f"g.{ending}"
    if ending in ("graphml", "gml"):
        graph = nx.Graph()
        graph.add_nodes_from(f"n{i}" for i in range(n))
        graph.add_weighted_edges_from((f"n{u}", f"n{v}", w) for (u, v), w in edges.items())
        (nx.write_graphml if ending == "graphml" else nx.write_gml)(graph, path)
    elif ending == "net":
        nodes = "".join(f'{i + 1} "n{i}"\n' for i in range(n))
        lines = "".join(f"{u + 1} {v + 1} {w}\n" for (u, v), w in edges.items())
        path.write_text(f"*Vertices {n}\n{nodes}*Edges\n{lines}")
    else:
        mark = "," if ending == "csv" else " "
        lines = [f"n{u}{mark}n{v}{mark}{w}" for (u, v), w in edges.items()]
        path.write_text("\n".join(["source,target,weight"] * (ending == "csv") + lines))
    content = io.read(path)
    assert content.kind == "graph"
    rows = [int(name[1:]) for name in content.names]
    np.testing.assert_allclose(dense(content), A[np.ix_(rows, rows)])
    if ending not in ("edges", "csv"):
        assert rows == list(range(n))


@given(labels)
def test_names_and_labels_come_back_from_our_own_table(tmp_path_factory, known):
    folder = tmp_path_factory.mktemp("ours")
    path = folder / "labels.csv"
    numbers = np.arange(len(known)) % 3
    io.write_table(path, {"name": known, "cluster": numbers, "membership": numbers / 7})
    if len(set(known)) == len(known):
        order = np.random.default_rng(0).permutation(len(known))
        found = io.read_labels(path, [known[i] for i in order])
        np.testing.assert_array_equal(found, numbers[order])
    table = io.read(path, name_column="name", columns="membership")
    assert table.names == known
    np.testing.assert_array_equal(table.data[:, 0], numbers / 7)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=4))
def test_no_cell_of_our_tables_is_a_formula_to_a_spreadsheet(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("formulas") / "t.csv"
    io.write_table(path, {"name": [*cells, "=1+1", "-5", "'=x", "+a", "@b"]})
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    for cell in frame["name"]:
        assert cell[:1] not in ("=", "+", "@", "\t", "\r")
    assert frame["name"].tolist()[-5:] == ["'=1+1", "'-5", "''=x", "'+a", "'@b"]


def test_a_frame_of_pandas_with_its_index(tmp_path):
    X = np.random.default_rng(0).normal(size=(5, 3))
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(5)])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_csv(tmp_path / "t.tsv", sep="\t")
    assert pyarrow.table  # skips where it is absent
    frame.to_parquet(tmp_path / "t.parquet")
    for ending in ("csv", "tsv", "parquet"):
        content = io.read(tmp_path / f"t.{ending}")
        np.testing.assert_array_equal(content.data, X)
        assert content.names == list(frame.index)
        assert content.columns == ["a", "b", "c"]
        np.testing.assert_array_equal(
            io.read(tmp_path / f"t.{ending}", columns="c,a").data, X[:, [2, 0]]
        )
    pd.DataFrame(X).to_csv(tmp_path / "plain.csv")  # columns and rows are called by numbers
    assert io.read(tmp_path / "plain.csv").names == list(range(5))


def test_an_anndata_is_its_graph_else_its_coordinates_else_its_counts(tmp_path):
    X = np.random.default_rng(0).random((12, 4)).astype(np.float32)
    cells = anndata.AnnData(X, obs=pd.DataFrame(index=[f"c{i}" for i in range(12)]))
    path = tmp_path / "a.h5ad"

    def read():
        cells.write_h5ad(path, compression="gzip")
        return io.read(path)

    content = read()
    assert (content.part, content.kind, content.names[3]) == ("X", "matrix", "c3")
    np.testing.assert_array_equal(content.data, X)
    assert content.columns == list(cells.var_names)
    cells.X = sp.csr_matrix(X)
    np.testing.assert_array_equal(read().data.toarray(), X)
    cells.obsm["X_pca"] = X[:, :2]
    assert read().part == "obsm/X_pca"
    cells.obsp["connectivities"] = sp.csr_matrix(X @ X.T)
    content = read()
    assert (content.part, content.kind) == ("obsp/connectivities", "graph")
    zipped = put(tmp_path, "b.h5ad.gz", path.read_bytes())
    assert (io.read(zipped).data != content.data).nnz == 0


def test_a_chunk_that_inflates_to_less_is_refused(tmp_path):
    path = tmp_path / "a.h5ad"
    anndata.AnnData(np.ones((200, 50), np.float32)).write_h5ad(path, compression="gzip")
    with h5py.File(path, "r+") as content:  # HDF5 would fill the rest from its own memory
        content["X"].id.write_direct_chunk((0, 0), zlib.compress(b"abcd"))
    with pytest.raises(InputError, match="damaged chunk in '/X'"):
        io.read(path)


def test_hyperedges(tmp_path):
    path = put(tmp_path, "g.hyperedges", "# who met\nann bob cat\n\nann\tbob\ncat dan cat\n")
    content = io.read(path)
    assert content.kind == "hypergraph"
    assert list(content.data) == [("ann", "bob", "cat"), ("ann", "bob"), ("cat", "dan")]
    numbered = io.read(put(tmp_path, "h.hyperedges", "10, 20, 7\n20,30\n"))
    assert numbered.names == [7, 10, 20, 30]


# Tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "rows", "columns"),
    [
        ("1,2\n3,4\n", {}, [[1, 2], [3, 4]], None),
        ("a,b\n1,2\n", {}, [[1, 2]], ["a", "b"]),
        ('"a","b, c"\n"1","2"\n', {}, [[1, 2]], ["a", "b, c"]),
        ("# of savetxt\n1;2\n", {}, [[1, 2]], None),
        ("\ufeffa\tb\r\n1\t2\r\n\r\n", {}, [[1, 2]], ["a", "b"]),
        ("2020,2021\n1,2\n", {}, [[2020, 2021], [1, 2]], None),
        ("2020,2021\n1,2\n", {"header": True}, [[1, 2]], ["2020", "2021"]),
        ("a;b\n0,5;1\n", {"decimal": ","}, [[0.5, 1]], ["a", "b"]),
        ("a,b\n1,\n?,NA\n", {"missing": "nan"}, [[1, np.nan], [np.nan] * 2], ["a", "b"]),
        ("n,a,b\nx,1,2\n", {"columns": "b"}, [[2]], ["b"]),
        ("n,a,b\nx,1,2\n", {"columns": ["3", "2"]}, [[2, 1]], ["b", "a"]),
    ],
)
def test_tables(tmp_path, text, options, rows, columns):
    content = io.read(put(tmp_path, "t.csv", text), **options)
    np.testing.assert_array_equal(content.data, rows)
    assert content.columns == columns
    assert content.names is None


@pytest.mark.parametrize("column", ["town", 1, "1"])
def test_names_come_from_the_column_that_is_chosen(tmp_path, column):
    path = put(tmp_path, "t.csv", "town,a\nParis,1\nRome,2\n")
    refused(path, "column 'town' holds 'Paris'", "Gower", "name_column=")
    content = io.read(path, name_column=column)
    assert content.names == ["Paris", "Rome"]
    assert content.data.tolist() == [[1], [2]]
    headless = put(tmp_path, "u.csv", "Paris,1\nRome,2\n")
    refused(headless, "header=True or header=False")
    assert io.read(headless, name_column=1, header=False).data.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "first", ["$12,1%", '"1,200",2', "1st,2nd", "--,3", "?,3", "low,2019", "x,3", "NA,NA", "#N/A,3"]
)
def test_a_first_line_that_may_be_a_row_is_not_taken_for_names(tmp_path, first):
    lines = ("# top\n" if first.startswith("#") else "") + "1,2\n" if first[0] == "#" else ""
    path = put(tmp_path, "t.csv", f"{lines}{first}\n3,4\n5,6\n")
    refused(path)
    if first[0] != "#":
        assert "header=True or header=False" in refused(path)
        assert io.read(path, header=True).data.tolist() == [[3, 4], [5, 6]]


# Labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "3\n-1\n2\n", [3, -1, 2]),
        ("a.txt", "New York\nParis\n\n", ["New York", "Paris"]),
        ("a.labels.gz", "label\nred\nblue\n", ["red", "blue"]),
        ("a.csv", "id,label\nb,red\na,blue\n", ["red", "blue"]),
        ("a.csv", "b,1\na,2.0\n", [1, 2]),
        ("a.csv", "x,cluster,y2\n0.5,1,3\n0.1,2,4\n", [1, 2]),
        ("a.tsv", "1\tred\r\n2\tblue, dark\r\n", ["red", "blue, dark"]),
    ],
)
def test_labels(tmp_path, name, content, expected):
    found = io.read_labels(put(tmp_path, name, content))
    assert found.tolist() == expected
    assert found.dtype == (np.int64 if isinstance(expected[0], int) else object)


def test_labels_are_found_by_name(tmp_path):
    path = put(tmp_path, "a.csv", "name,cluster\nb,1\na,2\nz,3\n")
    assert io.read_labels(path, ["a", "b"]).tolist() == [2, 1]
    refused(
        path, "no row for 1 of the 2 names", "'c'", read=lambda p: io.read_labels(p, ["a", "c"])
    )
    twice = put(tmp_path, "b.csv", "name,cluster\nb,1\nb,2\n")
    refused(twice, "more than once", read=lambda p: io.read_labels(p, ["a", "b"]))
    plain = put(tmp_path, "c.txt", "1\n2\n3\n")
    refused(plain, "3 labels for 2 rows", read=lambda p: io.read_labels(p, ["a", "b"]))


# Malformed files ------------------------------------------------------------------------------

CSR = {
    "format": np.array(b"csr"),
    "shape": np.array([2, 2]),
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
}
NODES = '<node id="a"/><node id="b"/>'


def graphml(inner):
    return f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{inner}</graphml>'


def graph(inner):
    return f'<graph edgedefault="undirected">{NODES}{inner}</graph>'


MALFORMED = {
    "objects.npy": (npy(np.array([["a", None]], dtype=object), allow_pickle=True), "pickle"),
    "records.npy": (npy(np.zeros((2, 2), dtype=[("x", "f8")])), "real numbers"),
    "complex.npy": (npy(np.ones((2, 2), dtype=complex)), "real numbers"),
    "line.npy": (npy(np.ones(4)), "two-dimensional"),
    "empty.npy": (npy(np.ones((0, 4))), "0 x 4"),
    "nan.npy": (npy(np.array([[1.0, np.nan]])), "missing='nan'"),
    "short.npy": (npy(np.ones((4, 3)))[:-1], ""),
    "other.npy": (b"not an array at all", ""),
    "huge.npy": (npy(np.ones((4, 3))).replace(b"(4, 3), }        ", b"(40000000000, 3), }"), ""),
    "two.npz": (npz(A=np.ones((2, 2)), B=np.ones((2, 2))), "A, B"),
    "labels.npz": (npz(X=np.ones((2, 2)), y=np.arange(3)), "3 labels for 2 rows"),
    "beyond.npz": (npz(edges=np.array([[0, 5]]), n=3), "none of the 3"),
    "count.npz": (npz(edges=np.array([[0, 1]])), "the number of nodes"),
    "square.npz": (npz(X=np.ones((2, 2)), y=np.ones((2, 2))), "one column"),
    "below.npz": (npz(edges=np.array([[0, -5]]), n=3), "none of the 3"),
    "triples.npz": (npz(edges=np.array([[0, 1, 2]])), "two columns"),
    "cut.npz": (npz(X=np.ones((9, 9)))[:-30], ""),
    "index.npz": (npz(**CSR | {"indices": np.array([0, 9])}), "do not fit"),
    "negative.npz": (npz(**CSR | {"indices": np.array([0, -9])}), "do not fit"),
    "falls.npz": (npz(**CSR | {"indptr": np.array([0, 2, -7])}), ""),
    "rises.npz": (npz(**CSR | {"indptr": np.array([0, 10**9, 2])}), "do not fit"),
    "deep.npz": (npz(**CSR | {"shape": np.array([2, 2, 2])}), ""),
    "infinite.npz": (npz(**CSR | {"data": np.array([1, np.inf])}), "infinite"),
    "twice.npz": (
        npz(**CSR | {"indices": np.array([1, 1]), "indptr": np.array([0, 2, 2])}),
        "twice",
    ),
    "bsr.npz": (npz(**CSR | {"format": np.array(b"bsr")}), ""),
    "empty.csv": ("", "empty"),
    "header.csv": ("a,b\n", "no row of numbers"),
    "ragged.csv": ("1,2\n3\n", "2 columns but 1 were found in row 2"),
    "wider.csv": ("a,b\n1,2,3\n", "2 names of columns and 3 cells"),
    "grouped.csv": ("a,b\n1_000,2\n", "'1_000', which is no number"),
    "words.csv": ("a,b\n1,2\n3,low\n", "'low'"),
    "gap.csv": ("a,b\n1,2\n,4\n", "row 2 holds '' in column 1"),
    "formula.csv": ("1,2\n#N/A,4\n", "#N/A"),
    "comma.csv": ("a;b\n0,5;1\n", "decimal=','"),
    "latin.csv": ("Zoë,1\n".encode("latin-1"), ""),
    "wide.csv": ("1,2\n".encode("utf-16"), ""),
    "table.parquet": (b"PAR1" + bytes(40), ""),
    "ends.csv": ("source,target\na,b\nb,\n", "only one end"),
    "ends.edges": ("0,1\n,2\n", "only one end"),
    "one.edges": ("0 1\n2\n", "2 columns but 1"),
    "none.edges": ("# nothing\n", "no edges"),
    "weights.edges": ("a b 1\nb a 2\n", "the weights 1 and 2"),
    "word.edges": ("0 1 1\n1 2 x\n", "'x'"),
    "nan.edges": ("0 1 nan\n", "non-finite"),
    "banner.mtx": ("nonsense\n", "banner"),
    "cut.mtx": (
        f"{MARKET}coordinate real general\n2 2 3\n1 1 3\n1 2 4\n",
        "announces 3 entries and holds 2",
    ),
    "beyond.mtx": (f"{MARKET}coordinate real general\n2 2 1\n1 5 3\n", ""),
    "both.mtx": (f"{MARKET}coordinate real symmetric\n2 2 2\n1 2 3\n2 1 4\n", "twice"),
    "twice.mtx": (f"{MARKET}coordinate real general\n2 2 2\n1 2 3\n1 2 4\n", "twice"),
    "skew.mtx": (f"{MARKET}coordinate real skew-symmetric\n2 2 1\n2 1 3\n", "skew-symmetric"),
    "wide.mtx": (f"{MARKET}coordinate pattern symmetric\n2 3 1\n2 1\n", "2 x 3"),
    "complex.mtx": (f"{MARKET}coordinate complex general\n2 2 1\n1 1 3 1\n", "complex"),
    "ends.graphml": (graphml(graph('<edge source="a"/>')), "lists 2 nodes"),
    "unknown.graphml": (graphml(graph('<edge source="a" target="z"/>')), "lists 2 nodes"),
    "two.graphml": (graphml(graph("") + graph("")), "several graphs"),
    "nested.graphml": (graphml(graph('<node id="c"><graph/></node>')), "several graphs"),
    "cut.graphml": ("<graphml", ""),
    "ends.gml": ("graph [ node [ id 5 ] edge [ source 5 ] ]", "no 'target'"),
    "unknown.gml": ("graph [ node [ id 5 ] edge [ source 5 target 9 ] ]", "undefined target"),
    "latin.gml": ('graph [ node [ id 0 label "Zo\xeb" ] ]'.encode("latin-1"), "utf-8"),
    "latin.net": ('*Vertices 1\n1 "Zo\xeb"\n'.encode("latin-1"), "utf-8"),
    "exponent.mtx": (f"{MARKET}coordinate real general\n2 2 1\n1 2 1e-", "'1e-'"),
    "columns.mtx": (f"{MARKET}coordinate real general\n2 2 1\n1 2 1 7\n", "3 columns but 4"),
    "more.mtx": (f"{MARKET}array real general\n1 1\n1\n2\n", "announces 1 entries and holds 2"),
    "digits.gml": (f"graph [ node [ id {'9' * 5000} ] ]", ""),
    "opposite.net": ("*Vertices 2\n*Arcs\n1 2 3\n2 1 4\n", "the weights 3 and 4"),
    "ends.net": ("*Vertices 2\n*Edges\n1\n", ""),
    "unknown.net": ("*Vertices 2\n*Edges\n1 3\n", "Invalid vertex ID"),
    "infinite.net": ("*Vertices 2\n*Edges\n1 2 1e999\n", ""),
    "nothing.hyperedges": ("# nothing\n", "empty"),
    "nameless.hyperedges": ("a,,b\n", "without a name"),
    "text.h5ad": (b"no HDF5", ""),
    "gzip.csv.gz": (None, "gzip"),
    "book.xlsx": (b"PK", "unknown ending '.xlsx'"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_in_a_sentence(tmp_path, name):
    content, words = MALFORMED[name]
    path = tmp_path / name
    if content is None:
        path.write_bytes(gzip.compress(b"1,2\n" * 1000)[:-9])
    else:
        put(tmp_path, name, content)
    sentence = refused(path)
    assert words.lower() in sentence.lower()


LABELS_REFUSED = {
    "nan.txt": ("1\nnan\n", "fractions or NaN"),
    "half.txt": ("1\n0.5\n", "fractions or NaN"),
    "none.txt": ("\n", "no labels"),
    "header.csv": ("label\n", "no labels"),
    "gap.csv": ("id,label\n1,a\n2,\n", "no label in row 1"),
    "ragged.csv": ("1,a\n2\n", "different lengths"),
    "three.csv": ("1,2,3\n", "3 columns"),
    "array.npy": (npy(np.ones(2)), "unknown ending"),
}


@pytest.mark.parametrize("name", LABELS_REFUSED)
def test_malformed_labels_are_refused_in_a_sentence(tmp_path, name):
    content, words = LABELS_REFUSED[name]
    refused(put(tmp_path, name, content), words, read=io.read_labels)


def test_places_that_are_no_files(tmp_path):
    import os

    refused(tmp_path / "absent.csv", "No such file")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", "a folder or a device")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        refused(tmp_path / "pipe.csv", "a folder or a device")
    for wrong in (3, None, "", "a\0.csv"):
        with pytest.raises(InputError, match="path must"):
            io.read(wrong)
    with pytest.raises(InputError) as caught:
        io.read(put(tmp_path, "a\n\x1b[31m.csv", "x\n"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("wrong", [{"header": 1}, {"decimal": "x"}, {"missing": "some"}])
def test_options_are_checked(tmp_path, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        io.read(put(tmp_path, "t.csv", "1,2\n"), **wrong)
    with pytest.raises(InputError, match=r"columns is for .*not for \.edges"):
        io.read(put(tmp_path, "t.edges", "1 2\n"), columns="a")


def damaged(rng, content):
    """A file with one to three random edits."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(content) + 1)
        edit = rng.randrange(4)
        if edit == 0 and at < len(content):
            content = (
                content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
            )
        elif edit == 1:
            content = content[:at]
        elif edit == 2:
            content = content[:at] + rng.randbytes(rng.randint(1, 8)) + content[at:]
        else:
            content = content[:at] + content[at + rng.randint(1, 16) :]
    return content


def repacked(rng, content):
    """An archive with one damaged member."""
    stream = streams.BytesIO()
    with zipfile.ZipFile(streams.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            member = old.read(name)
            new.writestr(name, damaged(rng, member) if name == chosen else member)
    return stream.getvalue()


SOUND = {
    "dense.npy": npy(np.arange(12.0).reshape(4, 3)),
    "dense.npz": npz(X=np.arange(12.0).reshape(4, 3), y=np.array([0, 1, 1, 0])),
    "sparse.npz": npz(**CSR),
    "graph.npz": npz(edges=np.array([[0, 1], [1, 2]]), n=np.array(3)),
    "table.csv": b"a,b,c\n" + b"".join(b"%d,%d.5,-%de-3\n" % (i, i, i) for i in range(12)),
    "edges.csv": b"source,target,weight\na,b,2\nb,c,1\n",
    "plain.edges": b"# u v w\n" + b"".join(b"%d %d %d.25\n" % (i, 30 + i, i) for i in range(9)),
    "market.mtx": f"{MARKET}coordinate real symmetric\n3 3 2\n2 1 4\n3 3 1e-3\n".encode(),
    "graph.gml": b'graph [ node [ id 0 label "a" ] node [ id 1 ] edge [ source 0 target 1 ] ]',
    "graph.graphml": graphml(graph('<edge source="a" target="b"/>')).encode(),
    "graph.net": b'*Vertices 3\n1 "a"\n2 "b"\n*Arcs\n1 2 3\n*Edges\n2 3 1.5\n',
    "groups.hyperedges": b"a b c\nb c\n",
    "labels.csv": b"id,label\n1,red\n2,blue\n",
}


@pytest.mark.parametrize("name", SOUND)
def test_damage_is_refused_or_gives_a_sound_matrix(tmp_path, name):
    """Nothing but an InputError, and nothing that compiled code must not be given."""
    rng = random.Random(name)
    read = io.read_labels if name.startswith("labels") else io.read
    read(put(tmp_path, name, SOUND[name]))
    path = tmp_path / f"damaged-{name}"
    for number in range(150):
        archive = name.endswith(".npz") and number % 2
        path.write_bytes((repacked if archive else damaged)(rng, SOUND[name]))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                content = read(path)
        except InputError:
            continue
        if read is io.read and content.kind != "hypergraph":
            data = content.data
            assert np.isfinite(data.data if sp.issparse(data) else data).all()
            assert not sp.issparse(data) or data.nnz == 0 or data.indices.max() < data.shape[1]
            if sp.issparse(data) and max(data.shape) < 1000:
                data.toarray()
            if content.kind == "graph":
                assert abs(data - data.T).sum() == 0

"""Text files are read as their reference implementations wrote them, or refused by line."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from reader_files import Make, dense, npy, npz, refused, stored, write_file
from symnmf.errors import InputError
from symnmf.readers import MAX_LINE, read_labels, read_matrix
from symnmf.readers.labels import read_named_labels

RNG = np.random.default_rng(0)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return partial(write_file, tmp_path)


# Tables


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("header", ["", "a,b,c"])
def test_csv_round_trip(tmp_path: Path, header: str, gz: str) -> None:
    table = RNG.normal(size=(20, 3)) * 10.0 ** RNG.integers(-300, 300, (20, 3))
    path = tmp_path / f"a.csv{gz}"
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")
    np.testing.assert_array_equal(read_matrix(path).data, table)


def test_csv_dialects(make: Make) -> None:
    expected = [[1, 2], [3, 4]]
    for name, text in [
        ("crlf.csv", "1,2\r\n3,4\r\n"),
        ("bom.csv", "\ufeff1,2\n3,4"),
        ("blank.csv", "\n# note\n 1 , 2 \n\n3,4\n\n"),
        ("semicolon.csv", "a;b\n1;2\n3;4\n"),
        ("quoted.csv", '"a, b","c"\n"1","2"\n3,4\n'),
        ("tabs.tsv", "a b\tc\n1\t2\n3\t4\n"),
        ("named.tsv", "\tb\tc\nx\t1\t2\ny\t3\t4\n"),
        ("commented.csv", "# a,b\n1,2\n3,4\n"),
    ]:
        assert read_matrix(make(name, text)).data.tolist() == expected, name


def test_csv_row_names(make: Make) -> None:
    read = read_matrix(make("a.csv", ',x,y\n"Lee, Ann",1,2\nZoë,3,4\n'))
    assert read.data.tolist() == [[1, 2], [3, 4]]
    assert read.names is not None
    assert read.names.tolist() == ["Lee, Ann", "Zoë"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name,x,y\na,1,2\nb,3,4\n", ["a", "b"]),
        ("who,x,y\na,1,2\nb,3,4\n", ["a", "b"]),
        ("name,2001,2002\na,1,2\nb,3,4\n", ["a", "b"]),
        ("a,1,2\nb,3,4\n", ["a", "b"]),
        ("name,2001\n1,2\n3,4\n", None),
        ("a,1.0,2\nb,3,4\n", ["a", "b"]),
        ("id,0.5,1\na,1,2\nb,3,4\n", ["a", "b"]),
        (",a,2\n7,1,2\nb,3,4\n", ["7", "b"]),
        (",x,y\n7,1,2\nb,3,4\n", ["7", "b"]),
    ],
)
def test_a_first_column_of_text_holds_row_names(
    make: Make, text: str, names: list[str] | None
) -> None:
    read = read_matrix(make("a.csv", text))
    assert read.data.tolist() == [[1, 2], [3, 4]]
    assert (None if read.names is None else read.names.tolist()) == names


def test_row_names_are_found_where_the_header_fills_a_block(make: Make) -> None:
    wide = 150_000
    header = ",".join(f"column{place}" for place in range(wide))
    row = ",".join(["a", *["1"] * (wide - 1)])
    read = read_matrix(make("a.csv", f"{header}\n{row}\n"))
    assert read.data.shape == (1, wide - 1)
    assert read.names is not None
    assert read.names.tolist() == ["a"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b\n1,2\n3,x\n", ("line 3: cell 2 is 'x', which is not a number",)),
        ("a,b\nb,c\n", ("line 2: cell 2 is 'c', which is not a number; for the edges of a graph",)),
        ("1,n/a,3\n4,5,6\n", ("line 1: cell 2 is 'n/a', which is not a number",)),
        ("1,oops\n4,5\n", ("line 1: cell 2 is 'oops', which is not a number",)),
        ("NA,2\n3,4\n", ("line 1: cell 1 is 'NA', which is not a number",)),
        ("NA,null\n3,4\n", ("line 1: cell 1 is 'NA', which is not a number",)),
        ("name,x,y\na,1,2\nb,3,x\n", ("line 3: cell 3 is 'x', which is not a number",)),
        ("x,y\nNA,2\n3,4\n", ("line 3: cell 1 is '3', but line 2 has the name 'NA' there",)),
        ("a,b\n,2\n", ("line 2: cell 1 is empty",)),
        ("a,1\nb,2\n,3\n", ("line 3: cell 1 is '', but line 1 has the name 'a' there",)),
        ("1,2\n3,nan\n", ("line 2: cell 2 is 'nan', which is not a finite number",)),
        ("1,2\n-inf,3\n", ("line 2: cell 1 is '-inf'",)),
        ("1,2\n1e999,3\n", ("line 2: cell 1 is '1e999'",)),
        ("1,2\n3\n", ("line 2: it has 1 cells where the first line has 2",)),
        ("1,2\n3,4,5\n", ("line 2: it has 3 cells",)),
        ("1,2\n3,\n", ("line 2: cell 2 is empty",)),
        ("1,2\n1_0,3\n", ("line 2: cell 1 is '1_0'",)),
        ('1,2\n"3,4\n', ("line 2: its double quotes",)),
        ("1,2\n,3\n", ("line 2: cell 1 is empty",)),
        ("a,b\n", ("holds no row of numbers",)),
        ("\n\n", ("holds no row of numbers",)),
        (b"1,2\n3,\xff\n", ("line 2: the byte 0xff is not UTF-8",)),
        (b"1,2\n3,4\0\n", ("line 2: the byte 0x00 does not belong",)),
        ("1,2\n3,\x1b[31m\n", ("line 2: the byte 0x1b",)),
        ("1,2\n3," + "z" * 500, ("line 2", "'" + "z" * 60 + "'...")),
        ("1,2\n3,\u202ez", ("line 2", r"\u202ez")),
    ],
)
def test_csv_refusals_name_the_line(make: Make, text: bytes | str, parts: tuple[str, ...]) -> None:
    refused(make("a.csv", text), *parts)


def test_long_lines_are_bounded(make: Make) -> None:
    long = b"1,2\n" + b"1," * (MAX_LINE // 2 + 2**19)
    refused(make("a.csv", long), f"line 2: the line is longer than {MAX_LINE} bytes")
    wide = ",".join(["1"] * 300_000)  # longer than a block
    assert read_matrix(make("b.csv", f"{wide}\n{wide}\n")).data.shape == (2, 300_000)


def test_line_numbers_survive_blocks(make: Make) -> None:
    rows = ["0.25,0.5"] * 200_000
    rows[150_000] = "# note"
    rows[170_000] = "0.25,oops"
    refused(make("a.csv", "\n".join(rows)), "line 170001: cell 2 is 'oops'")


# Matrix Market


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_mtx_coordinate_round_trip(make: Make, field: str, symmetry: str, gz: str) -> None:
    matrix = np.floor(5 * RNG.random((12, 12))) * (RNG.random((12, 12)) < 0.3)
    matrix = matrix + matrix.T if symmetry == "symmetric" else matrix
    matrix = (matrix != 0).astype(float) if field == "pattern" else matrix
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, sp.coo_array(matrix), field=field, symmetry=symmetry)
    np.testing.assert_array_equal(
        dense(read_matrix(make(f"a.mtx{gz}", buffer.getvalue())).data), matrix
    )


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_mtx_array_round_trip(make: Make, symmetry: str) -> None:
    matrix = RNG.random((6, 6)) if symmetry == "symmetric" else RNG.random((6, 4))
    matrix = matrix + matrix.T if symmetry == "symmetric" else matrix
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, matrix, symmetry=symmetry, precision=17)
    read = read_matrix(make("a.mtx", buffer.getvalue()))
    assert isinstance(read.data, np.ndarray)
    np.testing.assert_array_equal(read.data, matrix)


BANNER = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 1 1\n", "line 1: it starts with '1 1 1'"),
        (BANNER.replace("real", "complex") + "1 1 1\n1 1 1 0\n", "line 1: 'coordinate complex"),
        (BANNER, "ends before its size line"),
        (BANNER + "% c\n2 2\n", "line 3: the size line '2 2' must hold 3 integers"),
        (BANNER + "2 -2 1\n", "line 2: the size line '2 -2 1'"),
        (BANNER + "2 2 1\n1 3 1\n", "line 3: the index '3' is not an integer from 1 to 2"),
        (BANNER + "2 2 1\n0 1 1\n", "line 3: the index '0'"),
        (BANNER + "2 2 1\n1 1 nan\n", "line 3: the entry is 'nan', which is not a finite"),
        (BANNER + "2 2 1\n1 1\n", "line 3: it has 2 fields where 3 are needed"),
        (BANNER + "2 2 2\n1 1 1\n", "ends after 1 of the 2 entries"),
        (BANNER + "2 2 1\n1 1 1\n2 2 1\n", "line 4: there are more than the 1 entries"),
        (BANNER + "2 2 0\n", "announces no entries"),
        (BANNER + "2 2 2\n1 1 1\n1 1 2\n", "line 4: the entry 1 1 is given twice"),
        (BANNER + "2000000000 2000000000 1\n1 1 1\n", "at most 1048576 rows or columns"),
        (BANNER + "2 2 999999999999999\n1 1 1\n", "after 1 of the 999999999999999 entries"),
        (BANNER.replace("general", "symmetric") + "2 3 1\n1 1 1\n", "cannot be 2 x 3"),
        (
            BANNER.replace("general", "symmetric") + "2 2 2\n2 1 1\n1 2 1\n",
            "line 4: the entry 1 2 is given twice (a symmetric file holds one triangle)",
        ),
        (
            BANNER.replace("coordinate", "array") + "1000000 1000000\n1\n",
            "after 1 of the 1000000000000 entries",
        ),
    ],
)
def test_mtx_refusals_name_the_line(make: Make, text: str, sentence: str) -> None:
    refused(make("a.mtx", text), sentence)


# Edge lists


@pytest.mark.parametrize("name", ["a.edges", "a.edgelist", "a.el", "a.txt", "a.txt.gz"])
def test_edge_list_of_integers(make: Make, name: str) -> None:
    read = read_matrix(make(name, "# c\n% d\n0 1\n\n2\t1\r\n1 0\n3 3"))
    expected = np.zeros((4, 4))
    expected[[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]] = 1
    assert read.kind == "graph"
    assert read.names is None
    np.testing.assert_array_equal(dense(read.data), expected)


def test_edge_list_agrees_with_networkx(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.gnm_random_graph(60, 200, seed=3)
    for place, (u, v) in enumerate(graph.edges):
        graph.edges[u, v]["weight"] = 0.25 + place
    nx.write_weighted_edgelist(graph, tmp_path / "a.edges")
    read = read_matrix(tmp_path / "a.edges")
    names = range(read.data.shape[0]) if read.names is None else read.names.tolist()
    np.testing.assert_array_equal(dense(read.data), nx.to_numpy_array(graph, nodelist=names))


def test_edge_list_ids(make: Make) -> None:
    def names(text: str) -> list[Any]:
        found = read_matrix(make("a.edges", text)).names
        assert found is not None
        return found.tolist()

    assert names("5 1000000000000000\n7 5\n") == [5, 7, 1000000000000000]
    assert names("1 2\n2 3\n") == [1, 2, 3]
    assert names("2 1\n1 b\n") == ["2", "1", "b"]
    assert names("-1 2\n2 3\n") == ["-1", "2", "3"]
    assert names("7 007\n") == ["7", "007"]
    assert names("1 99999999999999999999\n") == ["1", "99999999999999999999"]
    assert names("Ann Lee,Zoë\nZoë,Bob\n") == ["Ann Lee", "Zoë", "Bob"]
    assert names("source,target\n7,8\n") == [7, 8]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", '"source","target"\n"a","b"\n"b","c, d"\n', ["a", "b", "c, d"]),
        ("a.csv", '"from","to"\n"7","8"\n8,9\n', [7, 8, 9]),
        ("a.csv", "src,dst\na b,c;d\nc;d,e\n", ["a b", "c;d", "e"]),
        ("a.tsv", "source\ttarget\na b\tc\nc\td, e\n", ["a b", "c", "d, e"]),
    ],
)
def test_an_edge_list_in_a_table_has_the_cells_of_a_table(
    make: Make, name: str, text: str, expected: list[Any]
) -> None:
    """R puts every name in quotes, and tabs alone separate where names hold spaces."""
    read = read_matrix(make(name, text))
    assert read.names is not None
    assert read.names.tolist() == expected
    assert stored(read.data) == 4


def test_integer_ids_before_the_first_name_are_kept(make: Make) -> None:
    pairs = [(i, i + 1) for i in range(100_000)]  # several blocks of integers before the name
    text = "".join(f"{u} {v}\n" for u, v in pairs) + "100000 end\n"
    read = read_matrix(make("a.edges", text))
    assert read.names is not None
    assert read.names.tolist() == [*map(str, range(100_001)), "end"]
    assert stored(read.data) == 2 * 100_001


def test_edge_weights(make: Make) -> None:
    read = read_matrix(make("a.edges", "0,1,2.5\n1,0,2.5\n1,2,0\n2,2,4\n"))
    assert dense(read.data).tolist() == [[0, 2.5, 0], [2.5, 0, 0], [0, 0, 4]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# nothing\n", "holds no edges"),
        ("source target\n", "holds no edges"),
        ("0 1\n2\n", "line 2: it has 1 fields where 2 are needed"),
        ("0 1 1\n# c\n1 2 1 1\n", "line 3: it has 4 fields where 3 are needed"),
        ("0\n", "line 1: it has 1 fields, and an edge is 'u v' or 'u v weight'"),
        ("0 1 1\n1 2 x\n", "line 2: the weight is 'x', which is not a number"),
        ("0 1 1\n1 2 inf\n", "line 2: the weight is 'inf', which is not a finite number"),
        ("0,1\n,2\n", "line 2: one end of the edge has no name"),
        ("a b 1\nb a 2\n", "line 2: the edge between 'a' and 'b' has the weights 1 and 2"),
        (b"0 1\n\xe9 2\n", "line 2: the byte 0xe9 is not UTF-8"),
        ("0 1\n".encode("utf-16"), "line 1: the byte"),
    ],
)
def test_edge_list_refusals_name_the_line(make: Make, text: bytes | str, sentence: str) -> None:
    refused(make("a.edges", text), sentence)


# Labels


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "3\n-1\n2\n", [3, -1, 2]),
        ("a.txt", "New York\nParis\n\n", ["New York", "Paris"]),
        ("a.txt", "0 5\n1 6\n", [5, 6]),
        ("a.csv", "label\nred\nblue\n", ["red", "blue"]),
        ("a.csv", "kind\n1\n2.0\n", [1, 2]),
        ("a.csv", "id,label\nb,red\na,blue\n", ["red", "blue"]),
        ("a.csv", "b,1\na,2\n", [1, 2]),
        ("a.csv", "x,cluster,y2\n0.5,1,3\n0.1,2,4\n", [1, 2]),
        ("a.tsv", "1\tred\r\n2\tblue, dark\r\n", ["red", "blue, dark"]),
        ("a.npy", npy(np.array([1.0, 2.0])), [1, 2]),
        ("a.npy", npy(np.array(["é", "b"])), ["é", "b"]),
        ("a.npy", npy(np.array([b"a", b"b"])), ["a", "b"]),
        ("a.npz", npz(X=np.ones((2, 2)), y=np.array([[4], [5]])), [4, 5]),
        ("a.npz", npz(anything=np.array([4, 5])), [4, 5]),
    ],
)
def test_labels(make: Make, name: str, content: bytes | str, expected: list[Any], gz: str) -> None:
    labels = read_labels(make(name + gz, content))
    assert labels.tolist() == expected
    assert labels.dtype == (np.int64 if isinstance(expected[0], int) else object)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", "1\n\n2\n", "line 2: it is empty"),
        ("a.txt", "1\nnan\n", "line 2: its label 'nan' is not a finite number"),
        ("a.txt", "1\n0.5\n", "line 2: its label '0.5' is a fraction"),
        ("a.txt", "\n", "holds no labels"),
        ("a.csv", "label\n", "holds no labels"),
        ("a.csv", "id,label\n1,a\n2,\n", "line 3: its label is empty"),
        ("a.csv", "1,a\n2\n", "line 2: it has 1 cells where the first has 2"),
        ("a.csv", "1,a\n1,b\n", "line 2: the id '1' is there twice"),
        ("a.csv", "2,a\n1,b\n", "line 2: the id '1' is smaller than the one before"),
        ("a.csv", "1,2,3\n", "line 1: it has 3 columns"),
        ("a.npy", npy(np.ones((2, 2))), "must be 1-D"),
        ("a.npy", npy(np.array([0.5])), "fractions"),
        ("a.npz", npz(a=np.ones(2), b=np.ones(2)), "one array 'y' or 'labels' is needed"),
        ("a.mtx", "1\n", "the ending '.mtx' is not known for labels"),
    ],
)
def test_label_refusals(make: Make, name: str, content: bytes | str, sentence: str) -> None:
    refused(make(name, content), sentence, read=read_labels)


@pytest.mark.parametrize(
    ("name", "content", "names", "labels"),
    [
        ("a.csv", "id,label\nb,red\na,blue\n", ["b", "a"], ["red", "blue"]),
        ("a.csv", "id,species\nb,red\na,blue\n", ["b", "a"], ["red", "blue"]),
        ("a.csv", "9,1\n5,2\n", ["9", "5"], [1, 2]),
        ("a.csv", "name,cluster,membership\nb,1,0.5\na,2,0.6\n", ["b", "a"], [1, 2]),
        ("a.csv", "x,cluster,name\n1,1,b\n1,2,a\n", ["b", "a"], [1, 2]),
        ("a.csv", "x,cluster,y2\n0.5,1,3\n0.1,2,4\n", None, [1, 2]),
        ("a.csv", "label\n1\n2\n", None, [1, 2]),
        ("a.npy", npy(np.array([1, 2])), None, [1, 2]),
    ],
)
def test_labels_with_their_names(
    make: Make, name: str, content: bytes | str, names: list[str] | None, labels: list[Any]
) -> None:
    found, values = read_named_labels(make(name, content))
    assert (None if found is None else found.tolist()) == names
    assert values.tolist() == labels


DOUBTFUL = [
    *('"1,200",2', "$12,3", "1.5e,2", "1%,2", "0x1,2", "\uff11\uff12,3", ",1%", "1st,2nd"),
    *("--,3", "?,3", "\u2014,3", "true,3", "No,3", "T,3", "low,2019", "\u00bd,3", "true,false"),
    *("yes,no", "#DIV/0!,3"),
]


@pytest.mark.parametrize("first", DOUBTFUL)
def test_a_first_row_that_may_be_a_header_is_refused_with_its_cell(make: Make, first: str) -> None:
    path = make("a.csv", f"{first}\n3,4\n5,6\n")
    refused(path, "line 1: cell ", "header=True or header=False")
    assert read_matrix(path, header=True).data.shape[0] == 2
    refused(path, "line 1: cell ", header=False)


def test_a_first_row_of_names_and_doubtful_numbers_is_no_header(make: Make) -> None:
    refused(make("a.csv", "alice,$12,3\nbob,4,5\n"), "cell 2 is '$12'")
    assert read_matrix(make("b.csv", "name,1st,2nd\nbob,4,5\n")).names is not None
    assert read_matrix(make("c.csv", "a,1st\n4,5\n")).data.tolist() == [[4, 5]]


def test_a_row_that_begins_with_a_failed_formula_is_no_comment(make: Make) -> None:
    rows = make("a.csv", "# a comment\n1,2\n#N/A,4\n#3,4\n")
    refused(rows, "line 3: cell 1 is '#N/A'")
    assert np.isnan(read_matrix(rows, missing="nan").data[1, 0])
    with pytest.raises(InputError, match="its label '#N/A' is not an integer"):
        read_labels(make("labels.txt", "#N/A\n1\n0\n"))


def test_a_first_label_for_true_is_not_dropped(make: Make) -> None:
    with pytest.raises(InputError, match="its label 'true' is not an integer"):
        read_labels(make("labels.txt", "true\n1\n0\n"))


def test_the_caller_says_whether_there_is_a_header(make: Make) -> None:
    years = make("a.csv", "2020,2021\n1,2\n")
    assert read_matrix(years).data.tolist() == [[2020, 2021], [1, 2]]
    assert read_matrix(years, header=False).data.tolist() == [[2020, 2021], [1, 2]]
    assert read_matrix(years, header=True).data.tolist() == [[1, 2]]
    named = make("b.csv", "a,1\nb,2\n")
    assert read_matrix(named, header=False).data.tolist() == [[1], [2]]
    assert read_matrix(named, header=True).data.tolist() == [[2]]
    absent = make("c.csv", ",2\n3,4\n")
    refused(absent, "header=True", missing="nan")
    assert read_matrix(absent, header=True, missing="nan").data.tolist() == [[4]]
    assert np.isnan(read_matrix(absent, header=False, missing="nan").data[0, 0])
    assert read_matrix(make("d.csv", "source,target\n1,2\n"), header=True).kind == "graph"
    for wrong, path in ((1, years), ("yes", years), (True, make("a.edges", "0 1\n"))):
        with pytest.raises(InputError, match="header "):
            read_matrix(path, header=wrong)  # type: ignore[arg-type]


def test_a_first_label_that_may_be_a_number_is_not_dropped(make: Make) -> None:
    for name in ("a.csv", "b.txt"):
        refused(make(name, "1%\n1\n2\n"), "line 1: its label '1%'", read=read_labels)
    assert read_labels(make("c.csv", "kind\n1\n2\n")).tolist() == [1, 2]

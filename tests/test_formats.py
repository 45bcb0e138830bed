"""Files as other programs write them: tables, graphs, cells and contacts."""

import gzip
import json
import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from extras import optional
from symnmf import graphs
from symnmf.errors import InputError
from symnmf.readers import read_matrix

igraph, pd, h5py, anndata = map(optional, ("igraph", "pandas", "h5py", "anndata"))
pq = optional("pyarrow.parquet")
KARATE = nx.karate_club_graph()
DENSE = nx.to_numpy_array(KARATE)
EDGES = [(f"n{u}", f"n{v}", w) for u, v, w in KARATE.edges(data="weight")]


def points(n=12, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def refused(path, *parts, **told):
    with pytest.raises(InputError) as caught:
        read_matrix(path, **told)
    said = str(caught.value)
    assert path.name in said
    assert said.count("\n") == 0
    for part in parts:
        assert part in said


def in_order(file):
    """The matrix of a file with the nodes n0, n1, ... in this order."""
    there = [list(file.names).index(f"n{node}") for node in KARATE]
    return file.data.toarray()[np.ix_(there, there)]


# Tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("index", [False, True])
def test_any_delimiter(tmp_path, mark, index):
    X = points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"r{i}" for i in range(len(X))])
    frame.to_csv(tmp_path / "t.csv", sep=mark, index=index)
    file = read_matrix(tmp_path / "t.csv")
    np.testing.assert_array_equal(file.data, X)
    assert file.columns == ["a", "b", "c"]
    assert (file.names is not None) is index


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("header", [False, True])
def test_decimal_commas_are_told(tmp_path, mark, header):
    X = points()
    path = tmp_path / "t.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(
        path, sep=mark, decimal=",", index=False, header=header
    )
    np.testing.assert_array_equal(read_matrix(path, decimal=",").data, X)
    refused(path, "decimal comma; pass decimal=','")


def test_what_decimal_commas_do_not_allow(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n0,5;1\n0,7;2\n")  # not a column of names
    refused(path, "cell 1 is '0,5'", "decimal=','")
    path.write_text("a;b\n0,5;1.5\n")
    refused(path, "cell 2 is '1.5', with a point", decimal=",")
    path.write_text("a,b\n1,2\n")
    refused(path, "separated by commas, which cannot be decimal commas too", decimal=",")
    with pytest.raises(InputError, match="decimal must be"):
        read_matrix(path, decimal="x")
    with pytest.raises(InputError, match=r"decimal is for \.csv and \.tsv tables"):
        read_matrix(tmp_path / "x.npy", decimal=",")


def test_columns_are_chosen_by_name_or_number(tmp_path):
    X = points()
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(town="x, y")
    frame.to_csv(path, index=False)
    refused(path, "cell 4 is 'x, y'", "or name the columns of numbers by columns=")
    for chosen in ("c,a", ["c", "a"], "3,1"):
        np.testing.assert_array_equal(read_matrix(path, columns=chosen).data, X[:, [2, 0]])
    assert read_matrix(path, columns="c,a").columns == ["c", "a"]
    refused(path, "it has no column 'd'; its columns are 'a, b, c, town'", columns="d")
    with pytest.raises(InputError, match="names 'a' more than once"):
        read_matrix(path, columns="a,a")
    with pytest.raises(InputError, match="columns is for"):
        read_matrix(tmp_path / "x.npy", columns="a")


def test_names_stay_beside_chosen_columns(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(points(), columns=["a", "b", "c"], index=[f"r{i}" for i in range(12)]).to_csv(path)
    file = read_matrix(path, columns="b")
    assert file.data.shape == (12, 1)
    assert list(file.names[:2]) == ["r0", "r1"]


# Tables of edges ------------------------------------------------------------------------------


def edge_frame():
    return pd.DataFrame(EDGES, columns=["Source", "Target", "Weight"])


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_edge_tables_with_any_delimiter_and_more_columns(tmp_path, mark):
    path = tmp_path / "e.csv"
    for frame in (edge_frame(), edge_frame().assign(Type="Undirected", Id=range(78))):
        frame.to_csv(path, sep=mark, index=False)
        file = read_matrix(path)
        assert file.kind == "graph"
        np.testing.assert_array_equal(in_order(file), DENSE)
    unweighted = read_matrix(path, columns="Source,Target")
    np.testing.assert_array_equal(in_order(unweighted), DENSE > 0)
    refused(path, "an edge has two ends and maybe a weight", columns="Source")


def test_edge_tables_with_decimal_commas(tmp_path):
    path = tmp_path / "e.csv"
    frame = edge_frame().assign(Weight=lambda table: table.Weight / 4)
    frame.to_csv(path, sep=";", decimal=",", index=False)
    np.testing.assert_array_equal(in_order(read_matrix(path, decimal=",")), DENSE / 4)


@pytest.mark.parametrize("numbered", [False, True])
def test_parquet_edges(tmp_path, numbered):
    assert pq.ParquetFile  # skips where pyarrow is absent
    path = tmp_path / "e.parquet"
    frame = edge_frame().assign(year=2020)
    if numbered:
        frame = frame.replace(r"^n", "", regex=True).astype({"Source": int, "Target": int})
    frame.to_parquet(path)
    file = read_matrix(path)
    assert file.kind == "graph"
    assert (file.names is None) is numbered
    found = file.data.toarray() if numbered else in_order(file)
    np.testing.assert_array_equal(found, DENSE)


def test_parquet_points(tmp_path):
    assert pq.ParquetFile  # skips where pyarrow is absent
    path = tmp_path / "p.parquet"
    X = points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"r{i}" for i in range(12)])
    frame.to_parquet(path)
    file = read_matrix(path)
    np.testing.assert_array_equal(file.data, X)
    assert list(file.names[:2]) == ["r0", "r1"]
    assert file.columns == ["a", "b", "c"]
    frame.assign(town="x").to_parquet(path)
    refused(path, "column 'town'", "columns=")
    np.testing.assert_array_equal(read_matrix(path, columns="b").data, X[:, [1]])
    frame.assign(a=np.nan).to_parquet(path)
    refused(path, "column 'a' has no finite number in row 0")
    assert np.isnan(read_matrix(path, missing="nan").data[:, 0]).all()


def test_parquet_that_is_none(tmp_path):
    assert pq.ParquetFile  # skips where pyarrow is absent
    path = tmp_path / "p.parquet"
    path.write_bytes(b"PAR1" + bytes(40))
    refused(path, "it cannot be read as Parquet")
    frame = pd.DataFrame({"a": np.zeros(10**6)})
    frame.to_parquet(path)
    refused(path, "more than the 1000000 bytes allowed", max_bytes=10**6)


# Graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
def test_graphs_that_igraph_writes(tmp_path, named):
    graph = igraph.Graph.Weighted_Adjacency(DENSE, mode="undirected")
    if named:
        graph.vs["name"] = graph.vs["id"] = [f"n{i}" for i in range(34)]
    for ending, write in ((".gml", graph.write_gml), (".net", graph.write_pajek)):
        path = tmp_path / f"g{ending}"
        write(str(path))
        file = read_matrix(path)
        assert file.kind == "graph"
        np.testing.assert_array_equal(file.data.toarray(), DENSE)
        assert (str(file.names[0]) == "n0") is named
    if named:
        graph.write_ncol(str(tmp_path / "g.ncol"))
        np.testing.assert_array_equal(in_order(read_matrix(tmp_path / "g.ncol")), DENSE)


def test_pajek_as_others_write_it(tmp_path):
    path = tmp_path / "g.net"
    path.write_text(
        '% a comment\n*Vertices 4\n1 "a b" 0.1 0.2\n2 "c"\n3 d\n*Arcs :1 "r"\n1 2 3\n2 1 3\n'
        "*Edges\n2 3 0.5 c Blue\n*Edgeslist\n3 1 4\n"
    )
    file = read_matrix(path)
    # vertex 4 has no label, so all go by number
    assert file.names.tolist() == [1, 2, 3, 4]
    wanted = [[0, 3, 1, 0], [3, 0, 0.5, 0], [1, 0.5, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(file.data.toarray(), wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2\n", "begins with *Vertices"),
        ("*Vertices 2\n*Edges\n1 3\n", "numbers from 1 to 2, got '1' and '3'"),
        ("*Vertices 2\n*Edges\n1 2 1e999\n", "not a finite number"),
        ("*Vertices 2\n*Edges\n1\n", "an edge needs two ends"),
        ("*Vertices 2\n7 x\n", "begins with its number, 1 to 2"),
        ("*Vertices x\n", "how many *Vertices"),
        ("*Vertices 2\n*Matrix\n0 1\n1 0\n", "'*Matrix' is not read"),
        ("*Vertices 2\n*Arcs\n1 2 3\n2 1 4\n", "has the weights 3 and 4"),
        ("*Vertices 999999999\n*Edges\n1 2\n", "rows or columns are plausible"),
    ],
)
def test_pajek_refusals(tmp_path, text, said):
    path = tmp_path / "g.net"
    path.write_text(text)
    refused(path, said)


def test_vosviewer(tmp_path):
    path = tmp_path / "map.json"
    items = [{"id": 7, "label": "nmf"}, {"id": 3, "label": "graph"}, {"id": 5, "label": "cell"}]
    links = [
        {"source_id": 7, "target_id": 3, "strength": 2.5},
        {"source_id": 3, "target_id": 5, "strength": 1},
    ]
    path.write_text(json.dumps({"network": {"items": items, "links": links}}))
    file = read_matrix(path)
    assert list(file.names) == ["nmf", "graph", "cell"]
    np.testing.assert_array_equal(file.data.toarray(), [[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]])
    for text in ("[" * 100_000, "{}", "[1]", '{"network": {"items": [], "links": []}}', "{"):
        path.write_text(text)
        refused(path)


# Cells and contacts ---------------------------------------------------------------------------


def test_a_heap_whose_free_space_has_no_size_is_refused(tmp_path):
    """The HDF5 library never comes back from one; texts and attributes are in such heaps."""
    optional("h5py")
    from hostile_formats import h5ad

    content = bytearray(h5ad())
    path = tmp_path / "a.h5ad"
    path.write_bytes(content)
    read_matrix(path)
    start = content.index(b"GCOL")
    at = start + 16
    while content[at : at + 2] != b"\0\0":  # the free space is the last object
        at += 16 + (int.from_bytes(content[at + 8 : at + 16], "little") + 7) // 8 * 8
    content[at + 8 : at + 16] = bytes(8)
    path.write_bytes(content)
    with pytest.raises(InputError, match="free space without a size"):
        read_matrix(path)


@pytest.mark.parametrize("last", [0, -7, 2])
def test_h5ad_whose_rows_end_before_they_begin_is_refused(tmp_path, last):
    """SciPy's own check passes these, and its conversions then write outside their arrays."""
    h5py = pytest.importorskip("h5py")
    from hostile_formats import h5ad

    path = tmp_path / "a.h5ad"
    path.write_bytes(h5ad())
    with h5py.File(path, "r+") as file:
        file["obsp/connectivities/indptr"][-1] = last
    with pytest.raises(
        InputError, match=r"'obsp/connectivities' is damaged \(it\.indptr must rise"
    ):
        read_matrix(path)


@pytest.mark.parametrize("zipped", [False, True])
def test_h5ad_is_its_graph_else_its_points(tmp_path, zipped):
    X = points(40)
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=[f"cell{i}" for i in range(40)]))
    path = tmp_path / ("a.h5ad.gz" if zipped else "a.h5ad")

    def write():
        adata.write_h5ad(tmp_path / "plain.h5ad")
        content = (tmp_path / "plain.h5ad").read_bytes()
        path.write_bytes(gzip.compress(content) if zipped else content)

    write()
    file = read_matrix(path)
    assert (file.kind, file.part, file.names[3]) == ("matrix", "X", "cell3")
    np.testing.assert_array_equal(file.data, X)
    adata.X = sp.csr_matrix(np.maximum(X, 0))
    write()
    np.testing.assert_array_equal(read_matrix(path).data.toarray(), np.maximum(X, 0))
    adata.obsm["X_pca"] = X[:, :2]
    write()
    assert read_matrix(path).part == "obsm/X_pca"
    adata.obsp["connectivities"] = sp.csr_matrix(graphs.self_tuning(X, normalize=False))
    write()
    file = read_matrix(path)
    assert (file.kind, file.part) == ("graph", "obsp/connectivities")
    np.testing.assert_array_equal(file.data.toarray(), adata.obsp["connectivities"].toarray())


def write_cool(path, counts, weights=None, root="", full=False):
    n = len(counts)
    with h5py.File(path, "a") as file:
        group = file.require_group(root) if root else file
        group["chroms/name"] = np.array([b"chr1", b"chr2"])
        group["bins/chrom"] = np.arange(n) * 2 // n
        group["bins/start"] = np.arange(n) * 10
        group["bins/end"] = np.arange(n) * 10 + 10
        if weights is not None:
            group["bins/weight"] = weights
        rows, columns = np.nonzero(counts if full else np.triu(counts))
        group["pixels/bin1_id"], group["pixels/bin2_id"] = rows, columns
        group["pixels/count"] = counts[rows, columns]


def contacts(n=6):
    counts = np.random.default_rng(0).poisson(3.0, size=(n, n))
    return counts + counts.T


@pytest.mark.parametrize("full", [False, True])
def test_contacts_are_balanced(tmp_path, full):
    counts, weights = contacts(), np.array([1, 0.5, 2, np.nan, 1, 1])
    path = tmp_path / "c.cool"
    write_cool(path, counts, weights, full=full)
    file = read_matrix(path)
    wanted = np.nan_to_num(counts * weights[:, None] * weights)
    np.testing.assert_allclose(file.data.toarray(), wanted)
    assert (file.kind, file.names[0], file.names[5]) == ("graph", "chr1:0-10", "chr2:50-60")
    np.testing.assert_array_equal(read_matrix(path, balance=False).data.toarray(), counts)


def test_contacts_without_weights_are_counts(tmp_path):
    path = tmp_path / "c.cool"
    write_cool(path, contacts())
    with pytest.warns(UserWarning, match="no weights to balance by"):
        file = read_matrix(path)
    np.testing.assert_array_equal(file.data.toarray(), contacts())
    refused(path, "run cooler balance", balance=True)


def test_one_of_several_resolutions(tmp_path):
    path = tmp_path / "c.mcool"
    for size in (4, 6):
        write_cool(path, contacts(size), np.ones(size), root=f"resolutions/{size}000")
    refused(path, "it holds the resolutions '4000, 6000'", "::resolutions/6000")
    file = read_matrix(f"{path}::resolutions/4000")
    np.testing.assert_array_equal(file.data.toarray(), contacts(4))
    with pytest.raises(InputError, match="has no array 'resolutions/5/bins/start'"):
        read_matrix(f"{path}::resolutions/5")


def test_hdf5_that_reaches_into_other_files_or_is_damaged(tmp_path):
    secret, path = tmp_path / "secret.h5", tmp_path / "c.cool"
    with h5py.File(secret, "w") as file:
        file["start"] = np.arange(6)
    write_cool(path, contacts(), np.ones(6))
    with h5py.File(path, "a") as file:
        del file["bins/start"]
        file["bins/start"] = h5py.ExternalLink(str(secret), "start")
    refused(path, "'bins/start' is a link")
    with h5py.File(path, "a") as file:
        del file["bins/start"]
        layout = h5py.VirtualLayout((6,), dtype=int)
        layout[:] = h5py.VirtualSource(str(secret), "start", (6,))
        file.create_virtual_dataset("bins/start", layout)
    refused(path, "keeps its numbers in other files")
    with h5py.File(path, "a") as file:
        del file["bins/start"]
        file.create_dataset("bins/start", (2**40,), dtype="i8", chunks=(1024,))
    refused(path, "bytes allowed")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "it is not a readable HDF5 file")
    with h5py.File(tmp_path / "b.cool", "w") as file:
        file["x"] = 1
    refused(tmp_path / "b.cool", "it has no array 'bins/start'")


def test_pixels_that_lead_nowhere(tmp_path):
    path = tmp_path / "c.cool"
    write_cool(path, contacts(), np.ones(6))
    with h5py.File(path, "a") as file:
        file["pixels/bin2_id"][0] = 99
    refused(path, "a pixel leads to a bin that is none of the 6")


def test_a_number_of_vertices_alone_takes_little_memory(tmp_path):
    (tmp_path / "graph.net").write_text("*Vertices 999999")
    read_matrix(tmp_path / "graph.net")  # loads what it needs
    tracemalloc.start()
    found = read_matrix(tmp_path / "graph.net")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.names[-1] == 999_999
    assert peak < 48 * 2**20

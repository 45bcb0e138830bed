"""From a file as people have it to labelled clusters, by one command or two lines."""

import csv

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from extras import optional
from shell import command
from symnmf import SymNMF, graphs
from symnmf.graphs import GraphWarning

igraph, pd, anndata = map(optional, ("igraph", "pandas", "anndata"))
pq = optional("pyarrow.parquet")
KARATE = nx.karate_club_graph()
CLUB = [KARATE.nodes[node]["club"] == "Mr. Hi" for node in KARATE]


def cluster(path, *options):
    labels = path.with_name("labels.csv")
    told = ("-o", labels, "--seed", "0", "--starts", "1", "--quiet", *options)
    done = command("cluster", path, *told)
    assert done.exit_code == 0, done.stderr
    with labels.open() as file:
        return list(csv.DictReader(file)), done.stderr


def agreement(rows, truth):
    """The share of rows that are in the cluster of their class, by the better of two numberings."""
    same = np.mean([int(row["cluster"]) == truth[row["name"]] for row in rows])
    return max(same, 1 - same)


def three_groups(columns=3):
    y = np.repeat([0, 1, 2], 20)
    return np.random.default_rng(0).normal(size=(60, columns)) + 8 * y[:, None], y


def truth_of(names):
    return dict(zip(names, CLUB, strict=True))


def test_an_edge_table_in_parquet(tmp_path):
    assert pq.ParquetFile  # skips where pyarrow is absent
    names = [f"member {node}" for node in KARATE]
    edges = pd.DataFrame(
        [(names[u], names[v], w) for u, v, w in KARATE.edges(data="weight")],
        columns=["source", "target", "weight"],
    )
    edges.to_parquet(tmp_path / "edges.parquet")
    rows, _ = cluster(tmp_path / "edges.parquet", "-k", "2")
    assert agreement(rows, truth_of(names)) > 0.9
    # the two lines of Python
    edges = pd.read_parquet(tmp_path / "edges.parquet")
    found = symnmf.communities(edges, 2, random_state=0)
    labels = dict(zip(found.names, found.labels, strict=True))
    assert agreement([{"name": n, "cluster": labels[n]} for n in names], truth_of(names)) > 0.9


def test_a_csv_with_semicolons_and_decimal_commas(tmp_path):
    X, y = three_groups()
    names = [f"row {i}" for i in range(60)]
    frame = pd.DataFrame(X, columns=["length", "width", "age"], index=names)
    frame.to_csv(tmp_path / "mine.csv", sep=";", decimal=",")
    rows, _ = cluster(tmp_path / "mine.csv", "-k", "3", "--decimal", ",")
    found = np.array([int(row["cluster"]) for row in rows])
    assert [row["name"] for row in rows] == names
    assert symnmf.metrics.clustering_accuracy(y, found) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_gml_of_igraph(tmp_path, named):
    graph = igraph.Graph.Famous("Zachary")
    names = [str(i) for i in range(34)]
    if named:
        graph.vs["name"] = names = [f"v{i}" for i in range(34)]
    graph.write_gml(str(tmp_path / "club.gml"))
    rows, _ = cluster(tmp_path / "club.gml", "-k", "2")
    assert agreement(rows, truth_of(names)) > 0.9


def test_an_h5ad(tmp_path):
    X, y = three_groups(10)
    names = [f"cell{i}" for i in range(60)]
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=names))
    with pytest.warns(GraphWarning):
        graph = graphs.self_tuning(X, normalize=False)
    adata.obsp["connectivities"] = sp.csr_matrix(graph)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    rows, said = cluster(tmp_path / "cells.h5ad", "-k", "3")
    assert "obsp/connectivities was read" in said
    assert [row["name"] for row in rows] == names
    found = [int(row["cluster"]) for row in rows]
    assert symnmf.metrics.clustering_accuracy(y, found) == 1


# Columns ----------------------------------------------------------------------------------------


def unlike_scales():
    """Three groups in two columns, and a column of noise in other units."""
    X, y = three_groups(2)
    money = np.random.default_rng(1).normal(size=60) * 5000
    return np.column_stack([X, money]), y


def test_a_column_that_decides_alone_is_named(tmp_path):
    X, y = unlike_scales()
    frame = pd.DataFrame(X, columns=["length", "width", "money"]).assign(town="x")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    told = ["-k", "3", "--columns", "length,width,money"]
    _, said = cluster(tmp_path / "mine.csv", *told)
    assert "column 'money' has" in said
    assert "--scale standard" in said
    for scale in ("standard", "robust"):
        rows, said = cluster(tmp_path / "mine.csv", *told, "--scale", scale)
        assert "column 'money'" not in said
        found = [int(row["cluster"]) for row in rows]
        assert symnmf.metrics.clustering_accuracy(y, found) > 0.9
    with pytest.warns(GraphWarning, match="column 'money' has .*StandardScaler"):
        SymNMF(3, random_state=0, n_init=1).fit(frame[["length", "width", "money"]])

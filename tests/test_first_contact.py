"""From a file as people have it to labelled clusters, by one command or two lines."""

import csv

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import symnmf
from extras import optional
from shell import command
from symnmf import InputError, SymNMF, graphs
from symnmf.graphs import GraphWarning

igraph, pd, anndata = map(optional, ("igraph", "pandas", "anndata"))


def cluster(path, *options):
    labels = path.with_name("labels.csv")
    told = ("-o", labels, "--seed", "0", "--starts", "1", "--quiet", *options)
    done = command("cluster", path, *told)
    assert done.exit_code == 0, done.stderr
    with labels.open() as file:
        return list(csv.DictReader(file)), done.stderr


def three_groups(columns=3):
    y = np.repeat([0, 1, 2], 20)
    return np.random.default_rng(0).normal(size=(60, columns)) + 8 * y[:, None], y


def test_an_h5ad(tmp_path):
    X, y = three_groups(10)
    names = [f"cell{i}" for i in range(60)]
    adata = anndata.AnnData(X, obs=pd.DataFrame(index=names))
    graph = graphs.build(X, normalize=False)
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


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (["the moon", "a star", "the sun"], "holds 'the moon'; .*TfidfVectorizer"),
        (np.array([["1", "b"], ["2", "d"], ["3", "f"]]), "holds 'b'; .*OneHotEncoder"),
        (np.arange(500.0), r"must be a table, got 1 dimension\. .*X\.reshape\(-1, 1\)"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_in_one_line(X, words):
    with pytest.raises(InputError, match=words) as caught:
        SymNMF(2).fit(X)
    assert len(str(caught.value)) < 200


def test_a_column_that_decides_alone_is_named(tmp_path):
    X, y = unlike_scales()
    frame = pd.DataFrame(X, columns=["length", "width", "money"]).assign(town="x")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    told = ["-k", "3", "--columns", "length,width,money"]
    _, said = cluster(tmp_path / "mine.csv", *told)
    assert "column 'money' has" in said
    assert said.count("--scale standard") == 1
    for scale in ("standard", "robust"):
        rows, said = cluster(tmp_path / "mine.csv", *told, "--scale", scale)
        assert "column 'money'" not in said
        found = [int(row["cluster"]) for row in rows]
        assert symnmf.metrics.clustering_accuracy(y, found) > 0.9
    with pytest.warns(GraphWarning, match="column 'money' has .*StandardScaler"):
        SymNMF(3, random_state=0, n_init=1).fit(frame[["length", "width", "money"]])


def test_points_given_as_similarities_are_sent_to_an_affinity():
    with pytest.raises(InputError, match=r"must be square, got shape 150 x 4; for points"):
        symnmf.SymNMF(3, affinity="precomputed").fit(load_iris().data)


def test_people_between_communities_have_a_share_in_several():
    found = symnmf.communities(nx.les_miserables_graph(), 6, random_state=0)
    several = (found.membership > 0).sum(axis=1) > 1
    assert 0 < several.sum() < 50
    np.testing.assert_array_equal(found.membership.argmax(axis=1), found.labels)

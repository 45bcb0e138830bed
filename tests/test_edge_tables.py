"""Tables of edges and lists of pairs, as people have them."""

import networkx as nx
import numpy as np
import pytest

import symnmf
from extras import optional
from symnmf import graphs
from symnmf.errors import InputError

pd, pl, pa = optional("pandas"), optional("polars"), optional("pyarrow")
KARATE = nx.karate_club_graph()
ROWS = [(f"n{u}", f"n{v}", float(w)) for u, v, w in KARATE.edges(data="weight")]
COLUMNS = ("source", "target", "weight")

MAKERS = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "polars, lazy": lambda columns: pl.LazyFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}


def as_columns(rows, names=COLUMNS):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def named_karate():
    return nx.relabel_nodes(KARATE, {node: f"n{node}" for node in KARATE})


@pytest.mark.parametrize("maker", MAKERS)
def test_a_table_is_the_graph_of_its_edges(maker):
    table = MAKERS[maker](as_columns(ROWS))
    A, names = graphs.from_edges(table)
    order = [f"n{node}" for node in KARATE]
    there = [names.index(name) for name in order]
    wanted = nx.to_numpy_array(KARATE)
    np.testing.assert_array_equal(A.toarray()[np.ix_(there, there)], wanted)
    found = symnmf.communities(table, 2, random_state=0)
    assert set(found) == set(symnmf.communities(named_karate(), 2, random_state=0))
    unweighted, _ = graphs.from_graph(table, weight=None)
    np.testing.assert_array_equal(unweighted.toarray()[np.ix_(there, there)], wanted > 0)


@pytest.mark.parametrize("rows", [ROWS, [row[:2] for row in ROWS], tuple(ROWS)])
def test_a_list_of_pairs_is_a_graph(rows):
    found = symnmf.communities(rows, 2, random_state=0)
    graph = named_karate()
    if len(rows[0]) == 2:
        nx.set_edge_attributes(graph, 1.0, "weight")
        assert set(found) == set(symnmf.communities(graph.edges, 2, random_state=0))
    assert set(found) == set(symnmf.communities(graph, 2, random_state=0))


@pytest.mark.parametrize(
    "names",
    [("Source", "Target", "Weight"), ("from", "to", "n"), ("SRC", "dst", "weight")],
)
def test_columns_by_name(names):
    table = pd.DataFrame(ROWS, columns=list(names))
    A, _ = graphs.from_edges(table)
    assert A.sum() == 2 * sum(row[2] for row in ROWS)


def test_columns_are_told():
    table = pd.DataFrame(ROWS, columns=["x", "y", "strength"]).assign(year=2020, weight=7.0)
    with pytest.raises(InputError, match="name them by source= and target="):
        symnmf.communities(table, 2)
    told = {"source": "y", "target": "x"}
    assert graphs.from_edges(table, **told)[0].max() == 7
    A, names = graphs.from_edges(table, weight="strength", **told)
    assert A.sum() == 2 * sum(row[2] for row in ROWS)
    assert names[:2] == [ROWS[0][1], ROWS[0][0]]
    assert graphs.from_edges(table, weight=None, **told)[0].max() == 1
    bought = pd.DataFrame({"who": ["x", "y"], "item": [1, 2]})  # one kind of node per column
    assert graphs.from_edges(bought, source="who", target="item")[1] == ["x", 1, "y", 2]


def test_an_edge_that_is_listed_again():
    both = [("a", "b", 2.0), ("b", "a", 2.0), ("a", "a", 3.0)]
    A, _ = graphs.from_edges(both)
    np.testing.assert_array_equal(A.toarray(), [[3, 2], [2, 0]])
    np.testing.assert_array_equal(graphs.from_edges(both, repeated="sum")[0].toarray()[0], [3, 4])
    with pytest.raises(InputError, match="between 'b' and 'a' with the weights 2 and 5"):
        graphs.from_edges([*both, ("b", "a", 5.0)])
    assert graphs.from_edges([[0, 1, 2.0], [1, 0, 5.0]], repeated="sum")[0][0, 1] == 7


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (lambda: {"source": ["a", None], "target": ["b", "c"]}, "has no node in 1 rows"),
        (lambda: {"source": ["a", "b"], "target": ["b", "c"], "weight": [1, None]}, "no weight"),
        (lambda: {"source": ["a"], "target": ["b"], "weight": ["x"]}, "not a number"),
        (lambda: {"source": ["a"], "target": ["b"], "weight": [-1.0]}, r"\('a', 'b'\) with -1"),
        (lambda: {"from": [0.5, 1.5, 2], "to": [1.0, 2, 3]}, "numbers that are not whole"),
        (lambda: {"name": ["x", "y", "z"], "age": [1, 2, 3]}, "for points use symnmf.SymNMF"),
    ],
)
def test_refusals(table, said):
    with pytest.raises(InputError, match=said):
        symnmf.communities(pd.DataFrame(table()), 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: graphs.from_edges([("a", "b")], source="x"), "are for columns of a data frame"),
        (lambda: graphs.from_edges(pd.DataFrame(ROWS), source=0), "give both or neither"),
        (lambda: graphs.from_edges(pd.DataFrame(ROWS), source=0, target=9), "target=9 is no"),
        (
            lambda: graphs.from_edges(pd.DataFrame(ROWS), source=0, target=1, weight="w"),
            "weight='w' is no column",
        ),
        (lambda: graphs.from_edges([("a", "b", "x")]), "not a number"),
        (lambda: graphs.from_edges([("a", {})]), "is a dict, which cannot name a node"),
        (lambda: graphs.from_edges([("a", "b")], repeated="mean"), "repeated 'mean'"),
    ],
)
def test_refusals_of_arguments(call, said):
    with pytest.raises(InputError, match=said):
        call()

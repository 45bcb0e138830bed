"""What objects show of themselves in a notebook."""

from html.parser import HTMLParser

import networkx as nx
import numpy as np

import symnmf


class Reader(HTMLParser):
    """The tags that are open, all tags there were, and the text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def read(thing):
    found = Reader(thing._repr_html_())
    assert not found.open
    return found


def test_a_result_and_its_certificate():
    result = symnmf.factorize(np.ones((6, 6)), 1, random_state=0)
    shown = read(result).text
    assert "6 x 1" in shown
    assert f"{result.status} after {result.n_iter} iterations" in shown
    certificate = result.certificate()
    shown = read(certificate).text
    assert certificate.verdict[:200] in shown
    assert f"{certificate.stationarity:.3e}" in shown


def test_communities_with_hostile_names():
    hostile = "<script>alert(1)</script>&\"'"
    graph = nx.relabel_nodes(nx.karate_club_graph(), {0: hostile, 1: "x" * 10_000})
    graph.add_node("alone")
    found = symnmf.communities(graph, 2, random_state=0)
    shown = read(found)
    assert "script" not in shown.tags
    assert hostile in shown.text
    assert "alone" in shown.text
    assert len(shown.text) < 2000
    for nodes in found:
        assert str(len(nodes)) in shown.text

"""The page as a reader sees it: opened in a browser, searched, sorted, and fed hostile names."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.errors import InputError
from symnmf.report import write_report

HOSTILE = [
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=2">',
    "'><svg onload=window.pwned=3>",
    "</td></table></main><script>window.pwned=4</script>",
    "<!--",
    "javascript:window.pwned=5",
    "&lt;b&gt; &amp;",
    "\u202eright to left",
    "bell\x07 and \x00",
    "\ud800 half a character",
]


def problem(n=30, r=3):
    U = np.zeros((n, r))
    U[np.arange(n), np.arange(n) % r] = 1 + np.arange(n) / n
    return U @ U.T


@pytest.fixture(scope="module")
def fit():
    X = problem()
    return X, symnmf.factorize(X, 3, random_state=0)


def column(page, table, place):
    cells = page.locator(f"#{table} tbody tr:not([hidden]) td:nth-child({place})")
    return cells.all_inner_texts()


def assert_alone_and_quiet(page):
    outside = [url for url in page.requests if not url.startswith(("file:", "data:"))]
    assert outside == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1
    assert page.complaints == []


def test_the_page_can_be_searched_and_sorted(fit, visit, tmp_path):
    X, result = fit
    names = [f"node {i}" for i in range(30)]
    path = write_report(tmp_path / "page.html", result, X, names=names, truth=np.arange(30) % 3)
    page = visit(path)
    assert column(page, "rows", 1) == names

    page.get_by_role("button", name="name").click()
    assert column(page, "rows", 1) == names  # node 2 before node 10
    page.get_by_role("button", name="name").click()
    assert column(page, "rows", 1) == names[::-1]
    page.locator("#clusters").get_by_role("button", name="size").click()
    sizes = [int(size) for size in column(page, "clusters", 2)]
    assert sizes == sorted(sizes)

    page.get_by_label("Search").fill("NODE 2")
    assert set(column(page, "rows", 1)) == {"node 2", *(f"node {i}" for i in range(20, 30))}
    assert page.locator("output").inner_text() == "11 of 30 rows"
    page.get_by_label("Search").fill("")
    assert len(column(page, "rows", 1)) == 30
    assert_alone_and_quiet(page)


def test_hostile_names_run_nothing(visit, tmp_path):
    n = len(HOSTILE)
    X = problem(n, 2)
    result = symnmf.factorize(X, 2, random_state=0)
    path = write_report(
        tmp_path / "page.html",
        result,
        X,
        title=HOSTILE[0],
        names=HOSTILE,
        truth=np.array(HOSTILE, dtype=object),
        settings={name: name for name in HOSTILE},
    )
    page = visit(path)
    page.get_by_role("button", name="name").click()
    page.get_by_label("Search").fill("<img")
    assert len(column(page, "rows", 1)) == 1
    page.get_by_label("Search").fill("")
    assert page.evaluate("window.pwned") is None
    assert page.locator("script").count() == 1
    assert page.locator("img:not([src^='data:image/png'])").count() == 0
    assert page.locator("svg").count() == 0
    shown = set(column(page, "rows", 1))
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[6]} <= shown
    assert_alone_and_quiet(page)


def test_the_policy_stops_a_script_that_escaping_missed(fit, visit, tmp_path):
    X, result = fit
    path = write_report(tmp_path / "page.html", result, X)
    page_with_injection = path.read_text().replace(
        "</main>", "<script>window.pwned=1</script><img src=x onerror='window.pwned=2'></main>"
    )
    path.write_text(page_with_injection)
    page = visit(path)
    assert page.evaluate("window.pwned") is None
    assert page.complaints  # the browser says what it refused
    page.get_by_label("Search").fill("7")  # and the page's own script still runs
    assert "of 30 rows" in page.locator("output").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(fit, visit, tmp_path, scheme):
    X, result = fit
    page = visit(write_report(tmp_path / "page.html", result, X), scheme)
    ratio = """(selector) => {
        const luminance = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255)
                .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const text = luminance(getComputedStyle(document.querySelector(selector)).color);
        const ground = luminance(getComputedStyle(document.body).backgroundColor);
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    }"""
    for selector in ("h1", ".certificate strong", ".facts dt", "td", "figcaption"):
        assert page.evaluate(ratio, selector) >= 4.5, selector


class Reader(HTMLParser):
    """The page as text, table by table."""

    def __init__(self):
        super().__init__()
        self.tables, self.rows, self.images = {}, [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "table":
            self.rows = self.tables.setdefault(attributes.get("id", "settings"), [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "img":
            self.images.append(attributes["src"])

    def handle_endtag(self, tag):
        if tag == "table":
            self.rows = []

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_the_table_of_clusters_adds_up(tmp_path):
    X = problem(31, 3)
    result = symnmf.factorize(X, 3, random_state=0)
    truth = np.array(["red", "green", "blue"])[np.arange(31) % 3]
    truth[0] = "green"
    names = [f"n{i}" for i in range(31)]
    page = read(write_report(tmp_path / "page.html", result, X, names=names, truth=truth))
    head, *rows = page.tables["clusters"]
    assert head == [
        "cluster", "size", "mean membership", "typical members", "commonest class", "its share",
    ]  # fmt: skip
    by_class = {row[4]: row for row in rows}
    assert {kind: row[1] for kind, row in by_class.items()} == {
        "red": "11", "green": "10", "blue": "10",
    }  # fmt: skip
    assert by_class["red"][5] == "0.909"  # ten of eleven
    # the largest entries of U are those of the latest rows
    assert by_class["red"][3] == "n30, n27, n24, n21, n18, n15"
    assert len(page.tables["rows"]) == 1 + 31


def test_nodes_without_edges_are_in_no_cluster_and_no_column_is_empty(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.connected_caveman_graph(3, 6)
    graph.add_node("alone")
    page = read(write_report(tmp_path / "page.html", symnmf.communities(graph, 3, random_state=0)))
    rows = {row[0]: row[1] for row in page.tables["rows"]}
    assert rows["alone"] == "none"
    for cells in zip(*page.tables["clusters"][1:], strict=True):
        assert any(cells)


def test_a_run_that_did_not_converge_is_not_called_certified(tmp_path):
    X = problem(20, 2) + np.random.default_rng(0).random()
    with pytest.warns(symnmf.errors.ConvergenceWarning):
        result = symnmf.factorize(X, 2, init="random", random_state=0, max_iter=1)
    text = write_report(tmp_path / "page.html", result, X).read_text()
    assert "Not certified" in text
    assert re.search(r'class="certificate no"', text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": ["a"]}, "names must hold 30 entries, one per row, got 1"),
        ({"truth": [0, 1]}, "truth must hold 30"),
    ],
)
def test_wrong_lengths_are_named(fit, tmp_path, options, words):
    X, result = fit
    with pytest.raises(InputError, match=words):
        write_report(tmp_path / "page.html", result, X, **options)
    assert not list(tmp_path.iterdir())


def test_a_small_graph_is_drawn_whatever_its_nodes_are_called(tmp_path, recwarn):
    pytest.importorskip("networkx")
    X = sp.csr_array(problem())
    result = symnmf.factorize(X, 3, random_state=0)
    names = [*HOSTILE, "$\\nothing$", "$", "\u4e2d\u6587"]
    names += [f"n{i}" for i in range(30 - len(names))]
    text = write_report(tmp_path / "a.html", result, X, names=names).read_text("utf-8")
    assert 'alt="The graph, coloured by cluster"' in text
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    larger = sp.csr_array(problem(303))
    result = symnmf.factorize(larger, 3, random_state=0)
    text = write_report(tmp_path / "b.html", result, larger).read_text("utf-8")
    assert "The graph" not in text
    assert 'alt="The rows, in two dimensions"' in text

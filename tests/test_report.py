"""The page as a reader sees it: opened in a browser, searched, sorted, and fed hostile names."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

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


def clustered(n=30, r=3, **options):
    model = symnmf.SymNMF(r, affinity="precomputed", normalize=False, random_state=0, **options)
    return model.fit(problem(n, r))


@pytest.fixture(scope="module")
def fit():
    return clustered()


def column(page, table, place):
    cells = page.locator(f"#{table} tbody tr:not([hidden]) td:nth-child({place})")
    return cells.all_inner_texts()


def assert_alone_and_quiet(page):
    outside = [url for url in page.requests if not url.startswith(("file:", "data:"))]
    assert outside == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1
    assert page.complaints == []


def test_the_page_can_be_searched_and_sorted(fit, visit, tmp_path):
    names = [f"node {i}" for i in range(30)]
    path = write_report(tmp_path / "page.html", fit, names=names, truth=np.arange(30) % 3)
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
    path = write_report(
        tmp_path / "page.html",
        clustered(n, 2),
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


def test_a_run_that_did_not_converge_is_not_called_certified(tmp_path):
    with pytest.warns(symnmf.errors.ConvergenceWarning):
        fit = clustered(20, 2, init="random", max_iter=1)
    text = write_report(tmp_path / "page.html", fit).read_text()
    assert "Not certified" in text
    assert re.search(r'class="certificate no"', text)


def test_sentences_are_whole_and_said_once(tmp_path):
    points = load_iris().data
    model = symnmf.SymNMF(3, random_state=0).fit(points)
    assert len(model.quality_.verdict.reason) > 180
    page = write_report(tmp_path / "page.html", model).read_text()
    assert model.quality_.verdict.reason[-40:] in page
    assert page.count(model.certificate_.bound.sentence.rstrip(".")) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"names": ["a"]}, "names must hold 30 entries, one per row, got 1"),
        ({"truth": [0, 1]}, "truth must hold 30"),
    ],
)
def test_wrong_lengths_are_named(fit, tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        write_report(tmp_path / "page.html", fit, **options)
    assert not list(tmp_path.iterdir())

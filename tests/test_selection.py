"""The number of clusters: folds that keep pairs together, and answers that are known."""

from __future__ import annotations

import re
import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import symnmf
from conftest import synthetic_problem
from symnmf import InputError, metrics, select_rank
from symnmf.agreement import adjusted_mutual_information
from symnmf.archives import read_archive, write_archive
from symnmf.parallel import Threads
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.selection import search, selecting
from symnmf.selection.choosing_rank import Choice, by_eigengap, by_heldout, by_stability, recommend
from symnmf.selection.folds import calibrated, deviances, pair_folds
from symnmf.selection.paths import rank_path
from symnmf.selection.search import spaced
from symnmf.selection.spectra import bethe_hessian_count
from symnmf.selection.stability import (
    consensus,
    matched_cosine,
    without_clusters,
)
from symnmf.storage import as_symmetric


def random_graph(n, chance, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


def block_graph(n, blocks, seed, within=0.4, between=0.02):
    rng = np.random.default_rng(seed)
    block = np.arange(n) * blocks // n
    chance = np.where(block[:, None] == block, within, between)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), block


@given(st.integers(10, 40), st.integers(2, 6), st.booleans(), st.integers(0, 999))
def test_mirror_images_never_part_and_the_diagonal_stays(n, count, dense, seed):
    X = random_graph(n, 0.3, seed)
    X.setdiag(1.0)
    matrix = as_symmetric(X.toarray() if dense else X)
    folds = pair_folds(matrix, count, np.random.default_rng(seed))
    seen = set()
    for fold in folds:
        assert np.all(fold.rows < fold.columns)  # one of the two, so the other cannot be elsewhere
        np.testing.assert_array_equal(fold.values, X.toarray()[fold.rows, fold.columns])
        pairs = set(zip(fold.rows.tolist(), fold.columns.tolist(), strict=True))
        assert len(pairs) == len(fold.rows)
        assert not pairs & seen
        seen |= pairs
    edges = {(i, j) for i, j in zip(*X.nonzero(), strict=True) if i < j}
    if dense:
        assert len(seen) == n * (n - 1) // 2 // count * count
    else:
        assert edges <= seen
        stood_for = sum(fold.weights.sum() for fold in folds)
        if len(edges) and len(seen) > len(edges):
            assert stood_for == pytest.approx(n * (n - 1) / 2)


def test_hidden_pairs_are_not_looked_at():
    X = synthetic_problem(40, 3, 0.1, seed=0)
    fold = pair_folds(as_symmetric(X), 4, np.random.default_rng(0))[0]
    broken = X.copy()
    broken[fold.rows, fold.columns] = broken[fold.columns, fold.rows] = 50.0
    from symnmf.objectives.observing import hide

    ends = [
        [
            result.U
            for result in rank_path(
                Problem.of(hide(as_symmetric(A), fold.rows, fold.columns)),
                [1, 2, 4],
                lambda: False,
                Settings.of(max_iter=20),
            )
        ]
        for A in (X, broken)
    ]
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_path_is_as_good_as_fresh_starts():
    X = synthetic_problem(60, 6, 0.1, seed=1)
    path = rank_path(Problem.of(X), range(1, 9), lambda: False, Settings.of(tol=1e-4))
    for rank, result in enumerate(path, 1):
        fresh = min(
            symnmf.factorize(X, rank, init="scaled-random", random_state=seed, tol=1e-4).error
            for seed in range(5)
        )
        assert result.error <= 1.05 * fresh


@pytest.mark.parametrize("rank", [3, 7])
def test_planted_factors_are_counted(rank):
    X, _ = symnmf.datasets.synthetic(150, rank, 0.1, random_state=rank)
    found = symnmf.select_rank(
        X, range(2, 10), criteria=("heldout", "eigengap"), n_folds=4, random_state=0
    )
    assert found.recommendation == rank
    assert found.best.U.shape == (150, rank)
    assert found.table["heldout_error"][rank - 1] < found.table["heldout_error"][rank - 2]


@pytest.mark.parametrize("unit", [1e-28, 1e28])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_units_do_not_matter(unit):
    X, _ = symnmf.datasets.synthetic(60, 3, 0.05, random_state=0)
    found = symnmf.select_rank(unit * X, (2, 3, 4), n_folds=3, n_runs=2, random_state=0, n_init=1)
    assert found.recommendation == 3
    assert found.best.error < 1e-3


def test_blocks_of_a_graph_are_counted_by_every_criterion():
    A, _ = block_graph(160, 4, seed=2)
    found = symnmf.select_rank(A, range(2, 8), n_folds=4, n_runs=4, random_state=0)
    assert found.recommendation == 4
    assert {name: choice.rank for name, choice in found.choices.items()} == {
        "heldout": 4,
        "stability": 4,
        "eigengap": 4,
    }
    assert found.bethe_hessian == 4
    table = found.table
    assert set(table["rank"]) == set(range(1, 8))
    assert table["heldout_auc"][3] > 0.75
    assert table["pac"][3] < table["null_pac"][3]
    assert table["dispersion"][3] > table["null_dispersion"][3]
    assert found.to_frame().shape == (7, len(table))
    figure = found.plot()
    assert [axes.get_title() for axes in figure.axes] == [
        "Error on hidden pairs",
        "Agreement of runs",
        "Eigengap",
    ]
    assert "4 clusters" in figure.get_suptitle()
    for axes, name in zip(figure.axes, found.choices, strict=True):
        lines = [text.get_text() for text in axes.get_legend().get_texts()]
        assert f"chosen: {found.choices[name]}" in lines
    assert "excess: judged" in [text.get_text() for text in figure.axes[1].get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["graph", "matrix"])
def test_no_clusters_is_an_answer(kind):
    if kind == "graph":
        X = random_graph(150, 0.1, seed=3)
    else:
        X = np.random.default_rng(3).random((80, 80))
        X = (X + X.T) / 2
    found = symnmf.select_rank(X, range(2, 6), n_folds=4, n_runs=3, random_state=0)
    assert found.recommendation is None
    assert found.best is None
    assert str(found).startswith("Clusters: no clear number. One factor predicts")


def test_the_same_seed_gives_the_same_table_on_any_number_of_threads():
    A, _ = block_graph(60, 3, seed=4)
    tables = [
        symnmf.select_rank(A, (2, 3, 4), n_folds=3, n_runs=3, random_state=5, n_jobs=jobs).table
        for jobs in (1, 2)
    ]
    for name, column in tables[0].items():
        np.testing.assert_array_equal(tables[1][name], column)


def test_a_picture_without_matplotlib_says_what_to_install(monkeypatch):
    found = symnmf.select_rank(block_graph(40, 2, seed=1)[0], (2, 3), n_folds=2, n_runs=2)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"symnmf\[plots\]"):
        found.plot()


def test_a_search_that_was_stopped_goes_on(tmp_path):
    A, _ = block_graph(60, 3, seed=6)
    options = {"n_folds": 3, "n_runs": 3, "random_state": 7, "n_jobs": 1}
    whole = symnmf.select_rank(A, (2, 3, 4), **options)
    file = tmp_path / "ranks.npz"
    fits = []
    stopped = symnmf.select_rank(
        A, (2, 3, 4), checkpoint=file, callback=lambda done, total: done >= 9, **options
    )
    assert stopped.status == "stopped"
    assert stopped.recommendation is stopped.best is None
    assert stopped.reason == "Stopped after 9 of 21 fits; the runs that decide are not done."
    assert str(stopped).startswith(stopped.reason)
    assert "so far" in str(stopped.choices["heldout"])
    assert stopped.verdict == "Stopped early"
    rest = symnmf.select_rank(
        A, (2, 3, 4), checkpoint=file, callback=lambda done, _: fits.append(done), **options
    )
    assert rest.status == "done"
    assert fits[0] == 9  # two of the six runs were kept
    np.testing.assert_allclose(rest.table["heldout_error"], whole.table["heldout_error"], rtol=1e-6)
    assert rest.recommendation == whole.recommendation
    with pytest.raises(symnmf.InputError, match="another search: it does not match this ranks"):
        symnmf.select_rank(A, (2, 3), checkpoint=file, **options)


def test_a_stopped_search_recommends_where_the_runs_that_decide_are_done():
    A, _ = block_graph(60, 3, seed=6)
    found = symnmf.select_rank(
        A,
        (2, 3, 4),
        n_folds=3,
        n_runs=3,
        random_state=7,
        n_jobs=1,
        callback=lambda done, _: done > 12,
    )
    assert (found.recommendation, found.status, found.best) == (3, "stopped", None)
    assert found.reason.startswith("Stopped after 13 of 21 fits; fewer than 3 predict")
    assert found.verdict == "Stopped early: 3 clusters"


def test_no_time_left_stops_a_search_with_what_is_known(tmp_path, monkeypatch):
    A, _ = block_graph(60, 3, seed=6)
    file = tmp_path / "ranks.npz"
    options = {"n_folds": 3, "n_runs": 3, "random_state": 7, "n_jobs": 1, "n_init": 1}
    none = symnmf.select_rank(A, (2, 3, 4), max_time=0.0, checkpoint=file, **options)
    assert (none.status, none.recommendation, none.settings["fits_done"]) == ("stopped", None, 0)
    assert not file.exists()

    def run_out(done, total):  # in the middle of the second run
        if done == 6:
            monkeypatch.setattr("symnmf.calls.time.perf_counter", lambda: float("inf"))

    some = symnmf.select_rank(
        A, (2, 3, 4), max_time=1e6, checkpoint=file, callback=run_out, **options
    )
    monkeypatch.undo()
    assert some.reason == (
        "No recommendation: time ran out after 6 of 21 fits. Raise max_time or try fewer ranks."
    )
    assert some.status == "stopped"
    rest = symnmf.select_rank(A, (2, 3, 4), max_time=1e6, checkpoint=file, **options)
    assert (rest.status, rest.recommendation) == ("done", 3)
    assert rest.best is not None
    with pytest.raises(symnmf.InputError, match="max_time must be"):
        symnmf.select_rank(A, (2, 3, 4), max_time=-1.0)


def test_a_search_goes_on_with_its_own_seed_only(tmp_path):
    A, _ = block_graph(40, 2, seed=6)
    file = tmp_path / "ranks.npz"
    options = {"n_folds": 2, "n_runs": 2, "checkpoint": file, "n_init": 1}
    first = symnmf.select_rank(A, (2, 3), random_state=0, **options)
    with pytest.raises(symnmf.InputError, match=r"random_state 1 \(it has 0\)"):
        symnmf.select_rank(A, (2, 3), random_state=1, **options)
    again = symnmf.select_rank(A, (2, 3), random_state=None, **options)
    assert again.settings["random_state"] == 0
    for name, column in first.table.items():
        np.testing.assert_array_equal(again.table[name], column)


def interrupted(monkeypatch, owner, name):
    """Let SIGINT come when something is called for the first time."""
    real, calls = getattr(owner, name), []

    def call(*given, **told):
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return real(*given, **told)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("criteria", [("heldout", "stability"), ("stability", "eigengap")])
def test_an_interrupt_while_runs_are_judged_keeps_what_is_known(monkeypatch, tmp_path, criteria):
    A, _ = block_graph(60, 3, seed=6)
    file = tmp_path / "ranks.npz"
    options = {"n_folds": 3, "n_runs": 3, "random_state": 7, "checkpoint": file, "n_init": 1}
    interrupted(monkeypatch, search, "agreements")
    found = symnmf.select_rank(A, (2, 3, 4), criteria=criteria, **options)
    assert found.status == "stopped"
    assert "stability" not in found.choices
    assert found.recommendation == (3 if "heldout" in criteria else None)
    why = "fewer than 3" if "heldout" in criteria else "the criteria that decide are not known."
    assert found.reason.startswith(f"Stopped after all 21 fits, before they were judged; {why}")
    monkeypatch.undo()
    fits = []
    whole = symnmf.select_rank(
        A, (2, 3, 4), criteria=criteria, callback=lambda *now: fits.append(now), **options
    )
    assert (whole.status, whole.recommendation, fits) == ("done", 3, [])


def test_an_interrupt_of_the_final_fit_keeps_the_number(monkeypatch):
    A, _ = block_graph(60, 3, seed=6)
    options = {"n_folds": 3, "n_runs": 3, "random_state": 7, "n_init": 1}
    interrupted(monkeypatch, selecting.Plan, "best")
    found = symnmf.select_rank(A, (2, 3, 4), **options)
    assert (found.recommendation, found.status, found.best) == (3, "stopped", None)
    assert found.reason.startswith("Stopped before the final fit was done; ")


def test_the_command_says_that_time_ran_out_before_there_was_an_answer(tmp_path):
    import json

    from typer.testing import CliRunner

    from symnmf.cli.app import app

    sp.save_npz(tmp_path / "A.npz", block_graph(60, 3, seed=6)[0])
    page = tmp_path / "rank.html"
    told = ["rank", str(tmp_path / "A.npz"), "--max", "4", "--max-time", "0", "-q"]
    ran = CliRunner().invoke(app, [*told, "--report", str(page)])
    said = "No recommendation: time ran out after 0 of 29 fits. Raise --max-time or lower --max."
    assert ran.exit_code == 3
    assert ran.stdout.startswith(said)
    assert said in page.read_text()
    ran = CliRunner().invoke(app, [*told, "--json"])
    assert ran.exit_code == json.loads(ran.stdout)["exit_code"] == 3


def test_the_command_says_first_that_it_was_stopped(monkeypatch, tmp_path):
    import json

    from typer.testing import CliRunner

    from symnmf.cli.app import app

    A, _ = block_graph(80, 3, seed=14, within=0.5, between=0.03)
    sp.save_npz(tmp_path / "A.npz", A)
    page, kept = tmp_path / "rank.html", tmp_path / "kept.npz"
    told = ["rank", str(tmp_path / "A.npz"), "--max", "5", "--folds", "3", "--seed", "0", "--quiet"]
    told += ["--jobs", "1", "--report", str(page), "--checkpoint", str(kept)]
    interrupted(monkeypatch, search, "write_archive")  # when the first run is kept
    ran = CliRunner().invoke(app, told)
    assert ran.exit_code == 130, ran.output
    said = re.match(r"Stopped after \d of 37 fits; the runs that decide are not done\.", ran.stdout)
    assert said
    assert f"Stopped early.</strong> {said[0]}" in page.read_text()
    assert "certificate yes" not in page.read_text()
    assert kept.is_file()
    monkeypatch.undo()
    interrupted(monkeypatch, search, "agreements")
    ran = CliRunner().invoke(app, [*told, "--json"])
    assert ran.exit_code == 130, ran.output
    found = json.loads(ran.stdout)
    assert (found["status"], found["clusters"], found["random_state"]) == ("stopped", 3, 0)
    assert found["fits_done"] == found["fits"]
    assert found["reason"].startswith("Stopped after")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("seed", lambda _: "many"),
        ("seed", lambda _: None),
        ("run-0", lambda U: U[:-1]),
        ("run-0", lambda U: U[:, :2]),
        ("run-0", lambda U: -U),
        ("run-0", lambda U: U * np.nan),
        ("run-0", lambda U: U.astype(np.int64)),
    ],
)
def test_a_search_that_nobody_kept_is_refused(tmp_path, name, change):
    A, _ = block_graph(30, 2, seed=6)
    file = tmp_path / "ranks.npz"
    options = {"n_folds": 2, "n_runs": 2, "random_state": 7, "n_jobs": 1, "checkpoint": file}
    symnmf.select_rank(A, (2, 3), **options)
    stored = read_archive(file, "symnmf-ranks-3")
    changed = change(stored.pop(name))
    write_archive(file, stored if changed is None else {**stored, name: np.asarray(changed)})
    with pytest.raises(symnmf.InputError, match="not a whole checkpoint of a search"):
        symnmf.select_rank(A, (2, 3), **options)


def test_one_standard_error_takes_the_smallest_and_trifles_do_not_count():
    errors = np.array([[1.0, 0.5, 0.20, 0.19], [1.0, 0.5, 0.20, 0.21], [1.1, 0.6, 0.30, 0.29]])
    assert by_heldout([1, 2, 3, 4], errors) == Choice(3, 3, 4)
    falling = np.array([[1.0, 0.8, 0.6], [1.0, 0.8, 0.6]])
    assert by_heldout([1, 2, 3], falling).at_edge
    rising = np.array([[1.0, 1.1], [1.0, 1.2]])
    assert by_heldout([1, 2], rising).rank is None
    tiny = np.array([[1.0, 0.1, 0.0999], [1.0, 0.1, 0.0999]])
    assert by_heldout([1, 2, 3], tiny).rank == 2


def test_a_rank_is_as_good_within_one_standard_error_and_not_beyond():
    # ranks 1, 2 and 3 in eight folds: 2 is worse than 3 by 0.05 of what 3 gains, which is no trifle
    noise = np.array([1, -1, 1, -1, 1, -1, 1, -1.0])
    for spread, rank in ((0.2, 2), (0.1, 3)):
        # the standard error of the difference is spread * 0.378
        errors = np.column_stack([np.full(8, 2.0), np.full(8, 1.05) + spread * noise, np.ones(8)])
        assert by_heldout([1, 2, 3], errors).rank == rank


def test_recommendations_say_why():
    ranks = range(1, 10)
    fewer = "Fewer than 3 predict hidden pairs worse and more do not better"
    three, two, four = (Choice(k, k, k) for k in (3, 2, 4))
    for stability, eigengap, support in (
        (three, three, "; stability and eigengap say the same."),
        (three, Choice(None, 1, 9), "; stability says the same."),
        (three, four, "; stability says the same, and eigengap (4) is close to it."),
        (two, four, "; stability (2) and eigengap (4) are close to it."),
        (Choice(8, 8, 8), Choice(None, 1, 9), "."),
    ):
        choices = {"heldout": Choice(3, 3, 5), "stability": stability, "eigengap": eigengap}
        assert recommend(choices, ranks) == (3, fewer + support)
    edge = Choice(9, 9, 9, at_edge=True)
    assert str(edge) == "9, still falling"
    assert recommend({"heldout": edge, "stability": four, "eigengap": Choice(5, 5, 5)}, ranks) == (
        4,
        "Stability says so; eigengap (5) is close to it.",
    )
    assert recommend({"heldout": edge, "stability": four, "eigengap": four}, ranks) == (
        4,
        "Stability and eigengap agree on it.",
    )
    falls = "The held-out error still falls at 9, the most that was tried, and "
    for others, says in (
        ({"eigengap": four}, "eigengap alone does not decide."),
        ({}, "no other criterion was asked."),
        (
            {"stability": four, "eigengap": Choice(8, 8, 8)},
            "stability and eigengap do not point at one number.",
        ),
    ):
        assert recommend({"heldout": edge, **others}, ranks) == (None, falls + says)
    # two that would take nearly any number agree by chance
    vague = {"heldout": edge, "stability": Choice(6, 3, 9), "eigengap": Choice(6, 5, 9)}
    assert recommend(vague, ranks)[0] is None
    assert recommend(vague | {"eigengap": Choice(6, 6, 6)}, ranks)[0] == 6
    assert by_stability([2, 3, 4], np.array([0.1, 0.6, 0.2]), np.full(3, 0.01)).rank == 3
    assert by_stability([2, 3], np.array([0.02, 0.01]), np.full(2, 0.01)).rank is None
    # twice the spread of the runs, and no less
    assert by_stability([2, 3], np.array([0.2, 0.0]), np.full(2, 0.11)).rank is None
    assert by_stability([2, 3], np.array([0.2, 0.0]), np.full(2, 0.09)).rank == 2
    assert by_eigengap([2, 3, 4, 5], np.array([1, 0.95, 0.9, 0.3, 0.28, 0.27])).rank == 3


def test_one_number_alone_shows_no_trend():
    A, _ = block_graph(60, 3, seed=6)
    found = symnmf.select_rank(A, [3], n_folds=3, n_runs=3, random_state=7)
    assert found.recommendation is None
    assert found.reason == (
        "Only 3 was tried, and it predicts hidden pairs better than one factor; try a range of "
        "numbers."
    )
    assert "falling" not in str(found)


def test_a_graph_object_is_its_adjacency_matrix():
    nx = pytest.importorskip("networkx")
    A, _ = block_graph(40, 2, seed=6)
    told = {"criteria": ("heldout",), "n_folds": 2, "random_state": 7, "n_init": 1}
    tables = [
        symnmf.select_rank(X, (2, 3), **told).table for X in (A, nx.from_scipy_sparse_array(A))
    ]
    np.testing.assert_array_equal(tables[0]["heldout_error"], tables[1]["heldout_error"])


def test_scores_of_agreement():
    rng = np.random.default_rng(8)
    U = rng.random((50, 4))
    assert matched_cosine(U, 3.0 * U[:, [2, 0, 3, 1]]) == pytest.approx(1.0)
    assert matched_cosine(U, rng.random((50, 4))) < 0.95
    sharp = np.eye(4)[rng.integers(4, size=50)]
    assert consensus([sharp, sharp[:, ::-1], sharp], rng) == (0.0, 1.0)
    pac, dispersion = consensus([np.eye(4)[rng.integers(4, size=50)] for _ in range(6)], rng)
    assert pac > 0.4
    assert dispersion < 0.6


@given(st.integers(1, 7), st.integers(1, 60), st.floats(0, 1), st.integers(0, 999))
def test_the_agreement_of_labels_is_scikit_learns(count, n, kept, seed):
    from sklearn.metrics import adjusted_mutual_info_score

    rng = np.random.default_rng(seed)
    one = rng.integers(count, size=n)
    other = np.where(rng.random(n) < kept, one, rng.integers(count, size=n))
    alone = len(set(one)) == n == len(set(other))  # where scikit-learn divides 0 by 0
    expected = 1.0 if alone else adjusted_mutual_info_score(one, other)
    assert adjusted_mutual_information(one, other, count) == pytest.approx(expected, abs=1e-9)


@given(st.sets(st.integers(2, 80), max_size=30))
def test_the_null_is_fitted_at_some_ranks_between_which_the_others_lie(given):
    ranks = [1, *sorted(given)]
    some = spaced(ranks)
    assert some[0] == 1
    assert some[-1] == ranks[-1]
    assert set(some) <= set(ranks)
    for rank in ranks:  # one that was left out has a fitted one little above it
        assert min(other for other in some if other >= rank) < 1.5 * rank + 1e-9


def test_the_null_keeps_degrees_and_has_no_blocks():
    A, block = block_graph(200, 4, seed=9)
    for kind in (A, A.toarray() + 0.01):
        X = as_symmetric(kind)
        null = without_clusters(X, np.random.default_rng(0), Threads(1))
        array = null.matmul(np.eye(200))
        np.testing.assert_array_equal(array, array.T)
        before, after = np.asarray(kind.sum(axis=1)).ravel(), array.sum(axis=1)
        assert np.corrcoef(before, after)[0, 1] > 0.7
        assert after.sum() == pytest.approx(before.sum(), rel=0.15)
        same = block[:, None] == block
        assert array[same].mean() < 1.3 * array[~same].mean()


def test_the_bethe_hessian_counts_blocks_and_wants_zeros_and_ones():
    A, _ = block_graph(300, 5, seed=10)
    assert bethe_hessian_count(as_symmetric(A), 20) == 5
    assert bethe_hessian_count(as_symmetric(2.0 * A), 20) is None
    assert bethe_hessian_count(as_symmetric(A.toarray()), 20) is None


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"ranks": ()}, "ranks must be"),
        ({"ranks": (0, 2)}, "ranks must be"),
        ({"ranks": (2, 999)}, "ranks must be"),
        ({"ranks": 3}, "ranks must be"),
        ({"criteria": "heldout"}, "criteria must be"),
        ({"criteria": ("luck",)}, "criteria must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"n_runs": 2.5}, "n_runs must be"),
    ],
)
def test_wrong_searches_are_refused(told, says):
    with pytest.raises(symnmf.InputError, match=says):
        symnmf.select_rank(np.ones((20, 20)), **({"ranks": (2, 3)} | told))


def test_no_more_clusters_than_rows_are_tried_by_default(tmp_path):
    import json

    from typer.testing import CliRunner

    from symnmf.cli.app import app

    A, _ = block_graph(12, 2, seed=1)
    found = symnmf.select_rank(A, criteria=("eigengap",), random_state=0)
    assert found.settings["ranks"] == list(range(2, 13))
    with pytest.raises(symnmf.InputError, match="X has 8 rows; at least 10 are needed"):
        symnmf.select_rank(A[:8, :8])

    sp.save_npz(tmp_path / "A.npz", A)

    def ran(*options):
        told = ["rank", str(tmp_path / "A.npz"), "--folds", "2", "--seed", "0", "--json", "-q"]
        return CliRunner().invoke(app, [*told, *options])

    assert json.loads(ran().stdout)["ranks"] == list(range(2, 13))
    assert "--max must be at most the 12 rows of A.npz, got 13" in ran("--max", "13").stderr
    assert "--min must be at most the 12 rows of A.npz, got 14" in ran("--min", "14").stderr
    assert "got --min 25 and --max 20, its default." in ran("--min", "25").stderr


def test_the_estimator_counts_clusters_itself():
    from sklearn.datasets import make_blobs
    from sklearn.metrics import adjusted_rand_score

    A, block = block_graph(100, 3, seed=11, within=0.5, between=0.02)
    model = symnmf.SymNMF("auto", affinity="precomputed", random_state=0).fit(A)
    assert model.n_clusters_ == 3
    assert model.embedding_.shape == (100, 3)
    assert model.rank_selection_.recommendation == 3
    assert adjusted_rand_score(block, model.labels_) > 0.9
    refined = model.set_params(warm_start=True).fit(A)
    assert refined.n_clusters_ == 3
    points, _ = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(symnmf.InputError, match="at least 1 or 'auto', got 'Auto'"):
        symnmf.SymNMF("Auto").fit(points)


def test_the_estimator_leaves_missing_affinities_out():
    A, block = block_graph(90, 3, seed=13, within=0.6, between=0.05)
    X = A.toarray()
    hidden = np.triu(np.random.default_rng(0).random(X.shape) < 0.3, 1)
    X[hidden | hidden.T] = np.nan
    posed = symnmf.Problem(X, missing="nan")
    model = symnmf.SymNMF(3, affinity="precomputed", random_state=0).fit(posed)
    from sklearn.metrics import adjusted_rand_score

    assert adjusted_rand_score(block, model.labels_) > 0.9
    assert model.certificate_.certified or model.certificate_.stationarity < 1e-3


def test_the_command_recommends_and_reports(tmp_path):
    import json

    from typer.testing import CliRunner

    from symnmf.cli.app import app

    A, _ = block_graph(80, 3, seed=14, within=0.5, between=0.03)
    sp.save_npz(tmp_path / "A.npz", A)
    names = ("rank.html", "rank.png", "rank.csv")
    page, picture, table = (tmp_path / name for name in names)
    told = ["rank", str(tmp_path / "A.npz"), "--max", "5", "--folds", "3", "--seed", "0", "--json"]
    told += ["--report", str(page), "--plot", str(picture), "-o", str(table)]
    ran = CliRunner().invoke(app, told)
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["clusters"] == 3
    assert found["status"] == "done"
    assert "3 clusters" in page.read_text()
    assert page.read_text().count("<img ") == 3  # stacked on narrow screens
    for value, what in (("2 to 5", "numbers of clusters"), ("3", "folds of pairs"), ("0", "seed")):
        assert re.search(rf"<dd>.*?{value}.*?</dd><dt>.*?{what}", page.read_text())
    assert picture.stat().st_size > 1000
    assert table.read_text().startswith("rank,heldout_error")
    wrong = CliRunner().invoke(app, ["rank", str(tmp_path / "A.npz"), "--min", "9", "--max", "3"])
    assert wrong.exit_code == 2


@pytest.mark.parametrize("bernoulli", [False, True])
def test_deviances_are_zero_at_the_best_rate_and_only_there(bernoulli):
    x = np.array([0.0, 0.3, 0.8, 1.0] if bernoulli else [0.0, 0.5, 1.0, 4.0])
    rates = np.geomspace(1e-6, 50, 4000)
    costs = np.array([deviances(np.full(4000, one), rates, bernoulli=bernoulli) for one in x])
    assert (costs >= -1e-12).all()
    np.testing.assert_allclose(costs.min(axis=1), 0, atol=1e-5)
    best = rates[costs.argmin(axis=1)]
    expected = -np.log1p(-x[1:3]) if bernoulli else x[1:3]
    np.testing.assert_allclose(best[1:3], expected, rtol=0.01)


def test_the_share_of_degrees_is_chosen_by_the_other_folds():
    """Three folds, one rank, two shares: the best of a fold's own pairs would be 1, 1 and 3."""
    left = np.array([[[1.0, 2.0]], [[1.0, 4.0]], [[9.0, 3.0]]])
    others = left.sum(axis=0) - left
    expected = [fold[0][np.argmin(rest[0])] for fold, rest in zip(left, others, strict=True)]
    assert calibrated(left).ravel().tolist() == expected
    assert expected[2] == 9.0


def test_a_likelihood_sees_two_groups_that_squares_do_not(tmp_path):
    """Mean degree 10, and the groups 1.6 times as far apart as can be told at all."""
    n, group = 600, np.arange(600) % 2
    apart = 1.6 * np.sqrt(10.0)
    chance = np.where(group[:, None] == group, 10 + apart, 10 - apart) / n
    upper = np.triu(np.random.default_rng(0).random((n, n)) < chance, 1)
    A = sp.csr_array((upper + upper.T).astype(float))
    options = {"criteria": ("heldout",), "random_state": 0}
    assert select_rank(A, range(2, 5), **options).recommendation is None
    path = tmp_path / "ranks.npz"
    found = select_rank(A, range(2, 5), loss="poisson", checkpoint=path, **options)
    assert found.recommendation == 2
    assert found.settings["loss"] == "poisson"
    assert found.table["heldout_error"][0] == pytest.approx(1.0, abs=1e-3)  # degrees alone
    assert found.best is not None
    assert metrics.clustering_accuracy(group, found.best.labels) > 0.8
    again = select_rank(A, range(2, 5), loss="poisson", checkpoint=path, **options)
    np.testing.assert_array_equal(again.table["heldout_error"], found.table["heldout_error"])
    with pytest.raises(InputError, match=r"ranks\.npz"):
        select_rank(A, range(2, 5), loss="bernoulli", checkpoint=path, **options)
    nothing = np.triu(np.random.default_rng(1).random((n, n)) < 12 / n, 1)
    none = select_rank(
        sp.csr_array((nothing + nothing.T).astype(float)), range(2, 5), loss="poisson", **options
    )
    assert none.recommendation is None
    with pytest.raises(InputError, match="loss 'gauss' is not known"):
        select_rank(A, range(2, 5), loss="gauss")

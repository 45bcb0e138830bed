"""The reproduction: its runs, its tables, its claims and its report, at tiny size."""

from __future__ import annotations

import csv
import functools
import itertools
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq, nnls

import reproduction
from reproduction import __main__ as command
from reproduction import clustering, figure1, figure2, figure5, figure6, published, synthetic, tasks
from reproduction.asymmetric import AsymmetricMatrix
from reproduction.claims import Claim, Part, PartVerdict, Verdict, judge
from reproduction.clustering import paper_figure
from reproduction.report import Section, html, markdown
from reproduction.runs import (
    METHODS,
    OURS,
    Curve,
    Needs,
    Runs,
    with_median_clock,
    write_csv,
)
from reproduction.tasks import AtRest, Instance, Task
from symnmf import datasets, factorize
from symnmf.errors import InputError
from symnmf.parallel import Threads
from symnmf.solvers import ADMM
from symnmf.solvers.admm import shortened

NAMES = reproduction.available()
CLAIMS = {c.key: (name, c) for name in NAMES for c in reproduction.load(name).claims}


# Running --------------------------------------------------------------------------------------


def small_graph(dataset):
    """Three noisy blocks in place of a data set."""
    rng = np.random.default_rng(len(dataset))
    target = np.repeat([0, 1, 2], 8)
    X = 0.2 * rng.random((24, 24)) + (target[:, None] == target)
    return (X + X.T) / 2, target, 3


def small_problem(n, rank, *arguments, **options):
    return datasets.synthetic(45, rank, *arguments, **options)


@pytest.fixture
def tiny(monkeypatch):
    """Small matrices, ten iterations and no data files."""
    short = (10, 10)
    monkeypatch.setattr(figure1, "ITERATIONS", 10)
    monkeypatch.setattr(synthetic, "ITERATIONS", short)
    monkeypatch.setattr(synthetic, "KUANG_ITERATIONS", short)
    monkeypatch.setattr(figure5, "ITERATIONS", short)
    monkeypatch.setattr(figure6, "ITERATIONS", short)
    for name in ("ITERATIONS", "ADMM_ITERATIONS"):
        monkeypatch.setattr(clustering, name, dict.fromkeys(clustering.ITERATIONS, short))
    monkeypatch.setattr(clustering, "BESIDE_ITERATIONS", short)
    monkeypatch.setattr(tasks, "synthetic", small_problem)
    monkeypatch.setattr(tasks, "_graph", small_graph)
    monkeypatch.setattr(reproduction, "_absent", lambda chosen: set())


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_experiment_leaves_its_table_pictures_and_claims_and_runs_once(
    tiny, tmp_path, monkeypatch
):
    told = []
    page = reproduction.reproduce(
        NAMES, quick=True, out=tmp_path, seeds=1, jobs=1, progress=lambda *row: told.append(row)
    )
    planned = {t for n in NAMES for t in reproduction.load(n).plan(True, [0])}
    assert [row[0] for row in told] == list(range(1, len(planned) + 1))
    assert {row[1] for row in told} == {len(planned)}
    for name in NAMES:
        rows = rows_of(tmp_path / f"{name}.csv")
        plan = set(reproduction.load(name).plan(True, [0]))
        one_row_each = name in ("figure5", "table1")
        assert len(rows) == len(plan) if one_row_each else len(rows) > len(plan)
        assert {row["method"] for row in rows} == {task.method for task in plan}
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert b"<svg" in (tmp_path / f"{name}.svg").read_bytes()
    sentences = [row["sentence"] for row in rows_of(tmp_path / "claims.csv")]
    assert list(dict.fromkeys(sentences)) == list(CLAIMS)

    text = page.read_text()
    for key, (_, claim) in CLAIMS.items():
        assert f'id="{key}"' in text
        assert claim.reading
    assert not re.search(r"https?:|<script|<link|src=\"(?!data:)|url\(", text)
    assert not re.search(r"href=\"(?!#)", text)

    def refuse(task):
        raise AssertionError(f"{task.name} was run again")

    monkeypatch.setattr(tasks, "run", refuse)
    assert tasks.execute(planned, tmp_path / "tasks", jobs=1) == 0
    csv_before = (tmp_path / "figure1.csv").read_bytes()
    svg_before = (tmp_path / "figure1.svg").read_bytes()
    reproduction.reproduce(["figure1"], quick=True, out=tmp_path, seeds=1, jobs=1)
    assert (tmp_path / "figure1.csv").read_bytes() == csv_before
    assert (tmp_path / "figure1.svg").read_bytes() == svg_before


def test_a_damaged_or_foreign_task_file_is_done_again(tmp_path):
    task = Task("symhals", Instance(12, 2, 0.1), 0, 5, 1)
    assert tasks.execute([task, task], tmp_path, jobs=1) == 1
    assert tasks.execute([task], tmp_path, jobs=1) == 0
    path = tmp_path / f"{task.name}.npz"
    path.write_bytes(path.read_bytes()[:100])
    assert tasks.execute([task], tmp_path, jobs=1) == 1
    np.savez(path, format="something else")
    assert tasks.execute([task], tmp_path, jobs=1) == 1


def test_an_interrupted_reproduction_goes_on_where_it_was(tmp_path, monkeypatch):
    plan = [Task(m, Instance(12, 2, 0.1), 0, 5, 1) for m in METHODS]
    run = tasks.run

    def fail_at_admm(task):
        if task.method == "admm":
            raise KeyboardInterrupt
        return run(task)

    monkeypatch.setattr(tasks, "run", fail_at_admm)
    with pytest.raises(KeyboardInterrupt):
        tasks.execute(plan, tmp_path, jobs=1)
    left = [task for task in plan if tasks.load(task, tmp_path) is None]
    assert 0 < len(left) < len(plan)
    monkeypatch.setattr(tasks, "run", run)
    assert tasks.execute(plan, tmp_path, jobs=1) == len(left)


def test_workers_give_the_same_numbers_as_this_process(tmp_path):
    plan = [Task(m, Instance(30, 3, 0.1), s, 20, 5) for m in ("symanls", "admm") for s in (0, 1)]
    tasks.execute(plan, tmp_path / "one", jobs=1)
    tasks.execute(plan, tmp_path / "two", jobs=2)
    for task in plan:
        here, there = tasks.load(task, tmp_path / "one"), tasks.load(task, tmp_path / "two")
        assert set(here) == set(there)
        for column in set(here) - {"seconds"}:
            np.testing.assert_array_equal(here[column], there[column])


def test_a_task_is_the_papers_problem_start_and_coupling():
    X, _ = datasets.synthetic(30, 3, 0.1, noise_kind="uniform", random_state=4)
    problem = Instance(30, 3, 0.1, "uniform", mirrored=True)
    record = tasks.run(Task("a-symhals", problem, 4, 15, 5))
    expected = factorize(
        X,
        3,
        solver="a-symhals",
        coupling="adaptive",
        init="random",
        tol=0,
        max_iter=15,
        record_every=5,
        random_state=4,
    )
    assert record["iteration"].tolist() == [0, 5, 10, 15]
    assert record["coupling"][0] == 1e-5
    assert record["asymmetric_share"] == 0
    np.testing.assert_allclose(record["error"], expected.history["error"], rtol=1e-10)


@pytest.mark.parametrize("kind", ["gaussian", "uniform", "lognormal"])
def test_literal_and_mirrored_noise_share_the_upper_triangle(kind):
    literal, truth = tasks.random_problem(Instance(40, 3, 0.1, kind), 2)
    mirrored, same = tasks.random_problem(Instance(40, 3, 0.1, kind, mirrored=True), 2)
    np.testing.assert_array_equal(truth, same)
    np.testing.assert_allclose(np.triu(literal), np.triu(mirrored), rtol=1e-12)
    np.testing.assert_array_equal(mirrored, mirrored.T)
    noise = (literal - truth @ truth.T) / 0.1
    assert noise.min() > -1e-9
    upper, lower = noise[np.triu_indices(40, 1)], noise.T[np.triu_indices(40, 1)]
    assert abs(np.corrcoef(upper, lower)[0, 1]) < 0.15


def test_a_run_stops_at_rest():
    problem = Instance(20, 2, 0.1, mirrored=True)
    task = Task("a-symhals", problem, 0, 30_000, 250, until_rest=True)
    record = tasks.run(task)
    assert record["status"] == "at rest"
    assert 2000 < record["iteration"][-1] < 30_000
    longer = tasks.run(replace(task, max_iter=6000, until_rest=False))
    assert record["error"][-1] == pytest.approx(longer["error"][-1], rel=1e-3)


def test_the_clock_counts_processor_time_of_the_solver_alone(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(tasks.time, "thread_time", lambda: float(next(ticks)))
    record = tasks.run(Task("pgd", Instance(12, 2, 0.1), 0, 6, 2))
    assert record["seconds"].tolist() == [1.0, 3.0, 5.0, 7.0]  # the start, then one per iteration


def test_rest_is_neither_a_fall_nor_a_swing():
    def rests(errors):
        at_rest = AtRest(500)
        return [at_rest(SimpleNamespace(error=e)) for e in errors]

    assert rests([1.0] * 6) == [False] * 4 + [True] * 2
    assert not any(rests([1.0, 0.99, 0.98, 0.97, 0.96, 0.95]))
    assert not any(rests([1.0, 1.2, 0.9, 1.1, 1.0, 1.0]))
    assert rests([1e-15]) == [True]


# What the paper writes and its authors publish -------------------------------------------------


def slow_hals(X, U, coupling, iterations, refill):
    """The authors' HALS column by column; X may be asymmetric."""
    U, V = U.copy(), U.copy()
    for _ in range(iterations):
        for factor, other, data in ((U, V, X), (V, U, X.T)):
            for i in range(U.shape[1]):
                rest = data - factor @ other.T + np.outer(factor[:, i], other[:, i])
                new = rest @ other[:, i] + coupling * other[:, i]
                factor[:, i] = np.maximum(new / (other[:, i] @ other[:, i] + coupling), 0)
                if refill and not factor[:, i].any():
                    factor[:, i] = 1e-16 * factor.max()
    return U, V


def asymmetric(n, seed=0):
    return tasks.random_problem(Instance(n, 3, 0.5), seed)[0]


def test_half_steps_see_x_and_its_transpose():
    X, U0 = asymmetric(25), np.random.default_rng(1).random((25, 3))
    matrix = AsymmetricMatrix(X, Threads(1))
    settings = {"coupling": 2.0, "init": U0, "tol": 0, "max_iter": 7}
    result = factorize(matrix, 3, solver="symhals", **settings)
    U, V = slow_hals(X, U0, 2.0, 7, refill=False)
    np.testing.assert_allclose(result.U, U, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(result.V, V, rtol=1e-8, atol=1e-12)
    error = np.sum((X - U @ U.T) ** 2) / np.sum(X**2)
    objective = np.sum((X - U @ V.T) ** 2) / 2 + np.sum((U - V) ** 2)
    assert result.error == pytest.approx(error, rel=1e-10)
    assert result.history["objective"][-1] == pytest.approx(objective, rel=1e-10)
    with pytest.raises(InputError, match="not symmetric"):
        factorize(X, 3, solver="symhals", **settings)


def test_one_factor_methods_see_the_symmetric_part_and_the_error_of_x():
    X = asymmetric(25)
    symmetric = (X + X.T) / 2
    settings = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 20}
    settings["solver"] = "beta-snmf"  # which has no step in units of ||X||
    literal = factorize(AsymmetricMatrix(X, Threads(1)), 3, **settings)
    plain = factorize(symmetric, 3, **settings)
    np.testing.assert_allclose(literal.U, plain.U, rtol=1e-6)
    expected = np.sum((X - plain.U @ plain.U.T) ** 2) / np.sum(X**2)
    assert literal.error == pytest.approx(expected, rel=1e-8)


def test_the_antisymmetric_part_pulls_the_factors_apart_as_the_report_says():
    X = asymmetric(60)
    coupling = 1e4
    matrix = AsymmetricMatrix(X, Threads(1))
    settings = {"solver": "symanls", "init": "random", "random_state": 0, "tol": 0}
    result = factorize(matrix, 3, coupling=coupling, max_iter=4000, **settings)
    antisymmetric = (X - X.T) / 2
    free = (result.U > 0) & (result.V > 0)
    expected = (antisymmetric @ result.U / coupling)[free]
    np.testing.assert_allclose(
        (result.U - result.V)[free], expected, atol=0.05 * abs(expected).max()
    )


def test_tsvd_starts_from_the_left_singular_vectors():
    X = asymmetric(25)
    record = tasks.run(Task("tsvd", Instance(25, 3, 0.5), 0, 50, 10))
    left, values, _ = np.linalg.svd(X)
    root = left[:, :3] * np.sqrt(values[:3])
    U = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0x5EED,))).random((25, 3))
    for _ in range(50):
        P, _, W = np.linalg.svd(U.T @ root)
        U = np.maximum(root @ W.T @ P.T, 0)
    assert record["error"][-1] == pytest.approx(np.sum((X - U @ U.T) ** 2) / np.sum(X**2))


def test_an_emptied_column_is_refilled_as_in_the_authors_code():
    X, _, _ = small_graph("raw")
    X = X / X.sum(axis=1).max()  # so small that the raw start empties columns
    U0 = np.random.default_rng(0).random((24, 6))
    stock, kept = (
        factorize(X, 6, solver=solver, coupling=1e-5, init=U0, tol=0, max_iter=3, n_jobs=1)
        for solver in ("symhals", published.solver("symhals"))
    )
    assert not stock.V.any(axis=0).all()
    assert kept.V.any(axis=0).all()
    U, V = slow_hals(X, U0, 1e-5, 3, refill=True)
    np.testing.assert_allclose(kept.U, U, rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(kept.V, V, rtol=1e-6, atol=1e-30)


def test_without_empty_columns_the_published_sweeps_are_the_stock_ones():
    X, _, _ = small_graph("any")
    settings = {"coupling": 0.3, "init": "scaled-random", "random_state": 0, "tol": 0, "n_jobs": 1}
    for method in ("symhals", "a-symhals"):
        stock, kept = (
            factorize(X, 3, solver=solver, max_iter=5, **settings)
            for solver in (method, published.solver(method))
        )
        np.testing.assert_array_equal(stock.V, kept.V)


def test_with_the_refill_the_raw_start_does_not_collapse_on_orl():
    if not any(d.name == "orl" and d.present for d in datasets.available()):
        pytest.skip("the ORL data are absent")
    X, _, _ = tasks._graph("orl")
    settings = {"coupling": "adaptive", "init": "random", "tol": 0, "random_state": 0}
    live = {}
    for name, solver in (("stock", "symhals"), ("published", published.solver("symhals"))):
        V = factorize(X, 40, solver=solver, max_iter=100, n_jobs=1, **settings).V
        live[name] = int((V.max(axis=0) > 1e-6).sum())
    assert live["published"] == 40
    assert live["stock"] < 10


def test_the_authors_rho_of_admm():
    X, _ = datasets.synthetic(20, 3, 0.1, random_state=0)
    tau = max((X[k, k] + np.linalg.norm(X[k])) / 2 for k in range(20))
    seen = []

    class Spy(ADMM):
        def step(self, X, state):
            super().step(X, state)
            seen.append(float(state.memory["admm_rho"]))

    factorize(X, 3, solver=Spy.published(), init="random", random_state=0, tol=0, max_iter=4)
    rho = 20 * tau
    for value in seen:
        assert value == pytest.approx(min(rho, 6.1 * 20 * tau), rel=1e-12)
        rho = rho / (1 - 1e-3 / rho)
    best = factorize(X, 3, random_state=0, tol=1e-8)
    assert (best.U**2).sum(axis=1).max() <= tau
    with pytest.raises(InputError, match="rule must be"):
        ADMM(rule="other")


def test_the_bound_on_the_rows_of_admm():
    rng = np.random.default_rng(0)
    gram = (lambda B: B.T @ B + 0.5 * np.eye(4))(rng.standard_normal((6, 4)))
    cross, bound = 6 * rng.standard_normal((9, 4)), 1.3

    def minimiser(row, more=0.0):
        root = np.linalg.cholesky(gram + more * np.eye(4))
        return nnls(root.T, np.linalg.solve(root, row))[0]

    def expected(row):  # with the multiplier of the bound on the diagonal
        if np.sum(minimiser(row) ** 2) <= bound:
            return minimiser(row)
        return minimiser(row, brentq(lambda m: np.sum(minimiser(row, m) ** 2) - bound, 0, 1e6))

    free = np.array([minimiser(row) for row in cross])
    lengths = (free**2).sum(axis=1)
    assert lengths.min() < bound < lengths.max()
    rows = shortened(free, cross, gram, bound)
    np.testing.assert_allclose(rows, [expected(row) for row in cross], atol=1e-8)


def test_the_published_admm_keeps_every_row_within_its_bound():
    X = 1e-3 * datasets.synthetic(20, 3, 0.1, random_state=0)[0]  # the start is too large for it
    tau = max((X[k, k] + np.linalg.norm(X[k])) / 2 for k in range(20))
    longest = []
    factorize(
        X,
        3,
        solver=ADMM.published(),
        init="random",
        random_state=0,
        tol=0,
        max_iter=20,
        callback=lambda snapshot: longest.append((snapshot.U**2).sum(axis=1).max()),
    )
    assert longest[0] > tau
    assert max(longest[1:]) <= tau * (1 + 1e-12)
    assert longest[1] == pytest.approx(tau, rel=1e-12)


def test_absent_data_are_skipped_and_the_report_says_so(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("SYMNMF_DATA", str(tmp_path / "empty"))
    page = reproduction.reproduce(["figure7"], quick=True, out=tmp_path / "out", jobs=1)
    text = page.read_text()
    assert "Skipped: coil20, orl, whose files are absent" in text
    assert "not checked: no run was done" in text
    assert not (tmp_path / "out" / "figure7.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["figure9"]}, "did you mean"),
        ({"names": "figure1"}, "list"),
        ({"names": ["figure1"], "seeds": 0}, "seeds"),
        ({"names": ["figure1"], "jobs": -1}, "jobs"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(arguments, words, tmp_path):
    with pytest.raises(InputError, match=words):
        reproduction.reproduce(**arguments, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_estimate_grows_with_the_work():
    quick = reproduction.expected_seconds(NAMES, quick=True, jobs=2)
    full = reproduction.expected_seconds(NAMES, quick=False, jobs=2)
    assert quick < 600
    assert quick < full < 4 * 3600
    assert reproduction.expected_seconds(["figure7"], seeds=6, jobs=1) == pytest.approx(
        2 * reproduction.expected_seconds(["figure7"], seeds=3, jobs=1)
    )


def test_importing_the_package_is_cheap():
    code = (
        "import sys, reproduction as e; e.available();"
        "print([m for m in ('numpy', 'numba', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Verdicts -------------------------------------------------------------------------------------
#
# Worlds are made-up runs: in one, everything is as the paper says; in the others it is not.

PACE = {"a-symhals": 0.0120, "symanls": 0.0120, "symhals": 0.0090, "tsvd": 0.0070}
PACE |= {"admm": 0.0060, "pgd": 0.0050, "beta-snmf": 0.0045, "kuang-anls": 0.0044}
NOISY_PACE = PACE | {"symanls": 0.0130}
COST = {"symhals": 1e-4, "a-symhals": 1.2e-4, "symanls": 1e-3, "tsvd": 1.2e-4}
FLOOR = {"admm": 1.02, "pgd": 1.04, "tsvd": 2.0, "beta-snmf": 3.0}
# the paper's figure 7 in words; its table says otherwise of tSVD on ORL and of ADMM on COIL-20
IN_FIGURE7 = {"admm": 0.79, "tsvd": 0.7, "beta-snmf": 0.7}


def as_the_paper_says(task, name):
    k = np.concatenate([np.arange(0, 1000, 5), np.linspace(1000, task.max_iter, 200)])
    k = np.unique(k[k <= task.max_iter].astype(int))
    problem = task.problem
    error = np.exp(-(NOISY_PACE if problem.noise else PACE)[task.method] * k)
    if problem.noise or name == "figure5":
        error += (2e-5 if problem.noise else 1e-8) * FLOOR.get(task.method, 1.0)
    record = {
        "iteration": k,
        "seconds": COST.get(task.method, 2e-3) * k,
        "error": error,
        "objective": 1e6 * error,
        "coupling": np.minimum(1e-5 * 1.21 ** np.minimum(k, 200), 97.0),
        "consensus": np.exp(-0.01 * k),
        "stationarity": error,
        "status": np.array("max_iter"),
        "noise_share": np.array(4e-5),
        "signal_to_noise": np.array(5e4),
    }
    if task.method == "kuang-anls":
        record["coupling"] = 1e-5 * 1.01 ** np.minimum(k, 6000)
    if problem.dataset:
        figure = paper_figure(task.method, problem)
        final = IN_FIGURE7.get(task.method, 0.8) if name == "figure7" else figure
        record["accuracy"] = accuracy(k, final, settles(task))
    return record


def settles(task):
    if task.method == "admm":
        return 5000 if task.problem == clustering.COIL20 else 1000
    return 50 if task.method in ("tsvd", "beta-snmf") else 300


def accuracy(k, final, when):
    return np.where(k < when, final - 0.3, final)


def backwards(task, name):
    """The last come first, and what should stay or fall does not."""
    record = as_the_paper_says(task, name)
    k = record["iteration"]
    order = ("symanls", "a-symhals", "symhals", "beta-snmf", "pgd", "admm", "tsvd")
    place = 1 + order[::-1].index(task.method) if task.method in order else 0.5
    size = (1 + task.problem.n / 100) ** 2
    level = size * 1e-9 * place
    changed = {
        "error": np.exp(-0.02 * k / place) + level,
        "objective": 1e6 * (1 + k),
        "coupling": 3.0 * np.ones(len(k)) * 2.0 ** (k > 100),
        "seconds": 1e-3 * (8 - place) * k,
        "consensus": np.ones(len(k)),
        "signal_to_noise": np.array(5e4 * size),
        "noise_share": np.array(1e-12),
    }
    if task.problem.dataset:
        ours = task.method in OURS
        final = 0.5 if ours else 0.7 + 0.01 * place
        changed["accuracy"] = accuracy(k, final, 20 if ours else 1000)
        if task.method == "admm":
            changed["accuracy"] = np.where(k < 140, 0.85, 0.2)
    return record | changed


def nothing_moves(task, name):
    record = as_the_paper_says(task, name)
    k = record["iteration"]
    still = {"error": np.ones(len(k)), "coupling": 1e-5 * 1.001 ** np.minimum(k, 6000)}
    still["objective"] = np.ones(len(k)) * 1e6 * (1 + 1e-9 * np.cos(k))
    if task.problem.dataset:
        still["accuracy"] = np.full(len(k), 0.3)
    return record | still | {"seconds": 1e-3 * k}


def far_apart(task, name):
    """All come to rest, one after the other, each at its own error."""
    record = as_the_paper_says(task, name)
    k = record["iteration"]
    place = METHODS.index(task.method) if task.method in METHODS else 9
    late = k > 1000 * (1 + place) ** 1.5
    return record | {
        "error": np.where(late, 1e-6, 1e-2) * 1.3**place,
        "objective": np.where(late, 1.0, 1e6),
        "seconds": 1e-3 * (1 + place) * k,
    }


def still_moving(task, name):
    record = as_the_paper_says(task, name)
    k = record["iteration"]
    moving = {"error": 1.0 / (1.0 + k)}
    if task.problem.dataset:
        moving["accuracy"] = np.full(len(k), 0.1 if task.method == "admm" else 0.8)
    return record | moving


@functools.cache
def world(name, make):
    plan = reproduction.load(name).plan(False, [0])
    return Runs(with_median_clock(Curve(task, make(task, name)) for task in plan))


@pytest.mark.parametrize("key", CLAIMS)
def test_a_sentence_holds_where_all_is_as_the_paper_says_and_every_part_can_fail(key):
    name, claim = CLAIMS[key]
    there = judge(claim, world(name, as_the_paper_says))
    assert there.word == "holds", there.parts
    assert all(part.outcomes[0].figures for part in there.parts)
    if there.mirrored is not None:
        assert there.mirrored.word == "holds"
    failing = set()
    for make in (backwards, nothing_moves, far_apart, still_moving):
        parts = judge(claim, world(name, make)).parts
        failing |= {part.what for part in parts if part.outcomes[0].holds is False}
    never = {part.what for part in there.parts} - failing
    assert not {what for what in never if "E = 1.5 x" not in what}


def test_there_is_one_claim_per_sentence_each_with_its_reading():
    assert len(CLAIMS) == sum(len(reproduction.load(name).claims) for name in NAMES) >= 30
    assert len({claim.quote for _, claim in CLAIMS.values()}) == len(CLAIMS)
    assert all(claim.reading for _, claim in CLAIMS.values())


@pytest.mark.parametrize(
    ("held", "word", "sentence"),
    [
        ([True, True], "holds", "2 of 2 cases hold"),
        ([True, False], "partly", "1 of 2 cases hold, 1 do not"),
        ([False, False], "fails", "0 of 2 cases hold, 2 do not"),
        ([None, None], "undecided", "0 of 2 cases hold, 2 undecided"),
        ([None, None, True], "undecided", "1 of 3 cases hold, 2 undecided"),
        ([None, None, False], "fails", "0 of 3 cases hold, 1 do not, 2 undecided"),
        ([None, True, True], "holds", "2 of 3 cases hold, 1 undecided"),
    ],
)
def test_a_verdict_says_in_how_many_cases(held, word, sentence):
    runs = world("figure1", as_the_paper_says)
    claim = Claim("key", "quote", "read", lambda runs, seed: [Part("x", held[seed], "x")])
    curves = [Curve(replace(runs.curves[0].task, seed=s), {}) for s in range(len(held))]
    verdict = judge(claim, Runs(curves))
    assert (verdict.word, verdict.sentence) == (word, sentence)


def test_a_sentence_about_two_methods_does_not_hold_where_one_is_open():
    runs = world("figure1", as_the_paper_says)
    both = [Part("tSVD", True, "x"), Part("beta-SNMF", None, "x")]
    verdict = judge(Claim("key", "quote", "read", lambda runs, seed: both), Runs(runs.curves[:1]))
    assert (verdict.word, verdict.sentence) == ("partly", "1 of 2 cases hold, 1 undecided")


@pytest.mark.parametrize(
    ("objective", "holds"),
    [
        (lambda k: np.exp(-0.1 * k), True),
        (lambda k: (1.0 + k) ** -3.0, False),
        (lambda k: np.exp(-0.02 * k) * k**-1.5, None),  # both lines fit as well
    ],
)
def test_a_rate_is_linear_only_where_a_power_law_fits_worse(objective, holds):
    k = np.arange(1.0, 101.0)
    status = np.array("max_iter")
    curve = {"iteration": k, "objective": objective(k), "error": objective(k), "status": status}
    task = Task("symanls", figure2.R20, 0, 100, 1)
    curves = [Curve(replace(task, method=method), curve) for method in OURS]
    (part, *_) = figure2._linear_to_zero(Runs(curves), 0)
    assert part.holds is holds, part.figures


@pytest.mark.parametrize(
    ("late", "holds"),
    [
        ([0.50, 0.60, 0.70, 0.70, 0.70], True),  # at rest
        ([0.50, 0.60, 0.65, 0.68, 0.70], None),  # still rising: the last is the best so far
        ([0.50, 0.70, 0.60, 0.60, 0.60], False),  # it was better before
    ],
)
def test_admm_is_at_its_best_only_where_its_accuracy_has_come_to_rest(late, holds):
    name, claim = CLAIMS["table1-admm"]
    curve = next(c for c in world(name, as_the_paper_says) if c.task.method == "admm")
    record = {"iteration": np.arange(0, 100, 20), "accuracy": np.array(late)}
    runs = Runs([Curve(curve.task, record | {"status": np.array("max_iter")})])
    (part,) = judge(claim, runs).parts
    assert part.outcomes[0].holds is holds


def test_a_claim_whose_runs_are_missing_is_not_checked():
    name, claim = CLAIMS["figure4-time-hard"]
    without = Runs([c for c in world(name, as_the_paper_says) if c.task.method != "pgd"])
    verdict = judge(claim, without)
    assert verdict.word == "not checked"
    assert "no run of PGD" in verdict.sentence


@pytest.mark.parametrize(
    ("mine", "other", "answer"),
    [
        (Needs(3, True), Needs(5, True), True),
        (Needs(5, True), Needs(3, True), False),
        (Needs(3, True), Needs(5, False), True),  # the other needs more than 5
        (Needs(5, True), Needs(3, False), None),
        (Needs(5, False), Needs(3, True), False),  # this one needs more than 5
        (Needs(3, False), Needs(5, True), None),
        (Needs(3, False), Needs(5, False), None),
        (Needs(np.inf, True), Needs(np.inf, True), None),
        (Needs(3, True), Needs(np.inf, True), True),
    ],
)
def test_unfinished_runs_are_compared_only_as_far_as_they_went(mine, other, answer):
    assert mine.no_more_than(other) is answer


def test_seconds_are_the_median_of_the_repetitions():
    task = Task("pgd", Instance(20, 2), 0, 10, 5)
    record = {"iteration": np.arange(3), "error": np.ones(3)}
    curves = [
        Curve(replace(task, repetition=k), record | {"seconds": np.arange(3.0) * pace})
        for k, pace in enumerate((1.0, 9.0, 2.0))
    ]
    (merged,) = with_median_clock(curves)
    assert merged.task == task
    assert merged["seconds"].tolist() == [0.0, 2.0, 4.0]
    assert len(merged["spent"]) == 3
    assert merged["spent"].max() > merged["seconds"][-1]


def test_the_papers_own_table_can_fail_a_check():
    said = {part.what: part.holds for part in CLAIMS["figure7-fast-worse"][1].paper()}
    assert said["tSVD, ORL: worse"] is False
    assert said["beta-SNMF, COIL-20: worse"] is True
    (admm,) = CLAIMS["figure7-admm-6000"][1].paper()
    assert admm.holds is False


# Report ---------------------------------------------------------------------------------------


def test_the_report_escapes_everything():
    nasty = "<b>&\"'|*_`"
    experiment = replace(
        reproduction.load("figure1"), title=nasty, settings=lambda quick: nasty, claims=()
    )
    claim = Claim("key", nasty, nasty, lambda runs, seed: [])
    verdict = Verdict(claim, [PartVerdict(nasty, {0: Part(nasty, True, nasty)})])
    sections = [Section(experiment, Runs(), [verdict], missing=[nasty])]
    text = html(sections, {nasty: nasty}, {"figure1": b"<svg/>"})
    assert "<b>&" not in text
    assert text.count("&lt;b&gt;&amp;&quot;&#x27;") >= 8
    rows = [line for line in markdown(sections, {}).splitlines() if line.startswith("| holds")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 5
    assert "<b>" not in rows[0]


def test_the_report_writes_formulas_as_formulas():
    quote = "||U_k - V_k||_F^2, lambda_0, 7x10^7, 10^-8, ||U*U*^T||^2, mnist_train"
    claim = Claim("key", quote, "read", lambda runs, seed: [])
    sections = [Section(reproduction.load("figure1"), Runs(), [Verdict(claim, [])])]
    assert (
        "‖U<sub>k</sub> - V<sub>k</sub>‖<sub>F</sub><sup>2</sup>, λ<sub>0</sub>, "
        "7 × 10<sup>7</sup>, 10<sup>-8</sup>, ‖U*U*<sup>T</sup>‖<sup>2</sup>, mnist_train"
    ) in html(sections, {}, {})


def test_the_table_beside_the_papers_shows_both():
    rows = reproduction.load("table1").compared(world("table1", as_the_paper_says))
    assert len(rows) == 1 + len(METHODS) + 2 * len(OURS)
    assert rows[0][1:3] == ["ORL: paper", "ORL: ours"]
    assert rows[1][:3] == ["SymANLS", "0.8000", "0.8000 (0.8000 to 0.8000)"]


def test_a_table_survives_the_csv(tmp_path):
    table = {"method": np.array(["a,b", 'c"d']), "error": np.array([0.1, 1e-300])}
    write_csv(table, tmp_path / "t.csv")
    rows = rows_of(tmp_path / "t.csv")
    assert [row["method"] for row in rows] == ["a,b", 'c"d']
    assert [float(row["error"]) for row in rows] == [0.1, 1e-300]


def test_the_command_says_the_time_first_and_how_the_sentences_came_out(
    tmp_path, monkeypatch, capsys
):
    def reproduce(names, *, quick, out, seeds, jobs, progress):
        asked.append((list(names), quick, seeds, jobs))
        progress(1, 1, "the only task")
        rows = ["figure1,a,literal,holds", "figure1,a,literal,holds", "figure1,a,mirrored,fails"]
        rows += ["table1,b,literal,partly", "table1,c,literal,holds", "table1,d,literal,partly"]
        (out / "claims.csv").write_text("\n".join(["experiment,sentence,noise,verdict", *rows]))
        return out / "report.html"

    asked = []
    monkeypatch.setattr(reproduction, "reproduce", reproduce)
    monkeypatch.setattr(reproduction, "expected_seconds", lambda names, **_: 600.0)
    line = f"figure1 table1 --quick --out {tmp_path} --seeds 2 --jobs 3"
    monkeypatch.setattr(sys, "argv", ["reproduction", *line.split()])
    command.main()
    assert asked == [(["figure1", "table1"], True, 2, 3)]
    printed = capsys.readouterr()
    assert printed.out.strip() == str(tmp_path / "report.html")
    assert re.search(r"about 10 minutes.*1 of 1 tasks", printed.err, re.DOTALL)
    assert "figure1: 1 sentence of the paper: 1 holds.\n" in printed.err
    assert "table1: 3 sentences of the paper: 2 partly, 1 holds.\n" in printed.err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("no such name")])
def test_the_command_ends_in_a_sentence(monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(reproduction, "reproduce", fail)
    monkeypatch.setattr(sys, "argv", ["reproduction", "figure1"])
    with pytest.raises(SystemExit, match=r"the same command resumes|error: no such name"):
        command.main()

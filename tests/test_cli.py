"""Every command as a user runs it: files in, files out, exit codes."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("typer", reason="the command line needs pip install 'symnmf[cli]'")

from typer.testing import CliRunner

import symnmf
from conftest import synthetic_problem
from symnmf.cli.app import app

FRIENDS = [(a, b) for group in ("abcd", "efgh") for a in group for b in group if a < b] + ["de"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder; the answer has exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(line, expected=0):
        answer = CliRunner().invoke(app, line.split(), prog_name="symnmf")
        assert answer.exit_code == expected, answer.output
        return answer

    return run


@pytest.fixture
def friends(tmp_path):
    """Two groups of four, joined by one tie."""
    path = tmp_path / "friends.edges"
    path.write_text("".join(f"{a} {b}\n" for a, b in FRIENDS))
    return path


@pytest.fixture
def points(tmp_path):
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0)
    np.savetxt(tmp_path / "points.csv", centres + rng.normal(size=(60, 2)), delimiter=",")
    (tmp_path / "truth.csv").write_text("".join(f"{k}\n" for k in np.repeat(["x", "y", "z"], 20)))
    return tmp_path / "points.csv"


def table(path_or_text):
    text = path_or_text if isinstance(path_or_text, str) else path_or_text.read_text()
    return list(csv.DictReader(text.splitlines()))


def one_line(answer):
    """The answer's only complaint: one sentence, and no traceback."""
    assert "Traceback" not in answer.output
    lines = answer.stderr.strip().splitlines()
    assert len(lines) == 1, answer.stderr
    return lines[0]


# Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["cluster", "factorize", "compare", "reproduce", "info"])
def test_every_help_has_examples(run, command):
    help_text = run(f"{command} --help").stdout
    assert "Examples:" in help_text
    assert f"symnmf {command}" in help_text


def test_the_first_help_lists_the_commands_and_the_exit_codes(run):
    text = " ".join(run("--help").stdout.split())
    for word in ("cluster", "factorize", "compare", "reproduce", "info", "130", "143"):
        assert word in text


def test_the_version(run):
    assert run("--version").stdout.strip() == f"symnmf {symnmf.__version__}"


def test_help_says_what_a_limit_in_seconds_is_for(run):
    for command in ("cluster", "factorize"):
        text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run(f"{command} --help").stdout).split())
        assert "Maximum number of seconds for the whole command" in text
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", run("compare --help").stdout).split())
    assert "Maximum number of seconds for each run: of one solver, from one start." in text


def test_help_lists_the_names_that_errors_list():
    from symnmf.cli import options
    from symnmf.coupling import COUPLINGS
    from symnmf.run.loop import STARTS

    for option, known in ((options.Init, STARTS), (options.Coupling, COUPLINGS)):
        listed = option.__metadata__[0].help.removesuffix(" or a number.").rpartition(":")[2]
        assert set(re.split(r", | or ", listed.strip(" ."))) == set(known)


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from symnmf.cli import main\n"
        "sys.argv = ['symnmf', 'cluster', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# cluster --------------------------------------------------------------------------------------


def test_points_are_clustered_and_compared_with_the_truth(run, points):
    answer = run("cluster points.csv -k 3 -o labels.csv --truth truth.csv --seed 0")
    assert answer.stdout == ""
    assert "accuracy 1.000" in answer.stderr
    rows = table(points.with_name("labels.csv"))
    assert [row["row"] for row in rows] == [str(i) for i in range(60)]
    groups = [{row["cluster"] for row in rows[k : k + 20]} for k in (0, 20, 40)]
    assert sorted(len(group) for group in groups) == [1, 1, 1]
    assert len(set.union(*groups)) == 3
    again = run("cluster points.csv -k 3 --truth labels.csv --seed 0 --json")
    assert json.loads(again.stdout)["adjusted_rand"] == 1.0


def test_without_an_output_the_table_goes_to_stdout(run, friends):
    rows = table(run("cluster friends.edges -k 2 --seed 0").stdout)
    by_name = {row["name"]: row["cluster"] for row in rows}
    assert len({by_name[name] for name in "abcd"}) == 1
    assert len({by_name[name] for name in "efgh"}) == 1
    assert by_name["a"] != by_name["e"]


def test_json_has_the_table_and_the_certificate(run, friends):
    content = json.loads(run("cluster friends.edges -k 2 --seed 0 --json").stdout)
    assert content["status"] == "converged"
    assert content["certified"] is True
    assert content["affinity"] == "precomputed"
    assert content["normalized"] is True
    assert sorted(content["table"]["name"]) == list("abcdefgh")
    assert sorted(content["sizes"].values()) == [4, 4]
    assert content["exit_code"] == 0


def test_a_built_in_name_brings_its_classes(run):
    pytest.importorskip("networkx")
    content = json.loads(run("cluster karate -k 2 --seed 0 --json").stdout)
    target = symnmf.datasets.load("karate").target
    labels = np.array(content["table"]["cluster"])
    agreement = np.mean(labels == target)
    assert content["accuracy"] == pytest.approx(max(agreement, 1 - agreement))
    assert content["accuracy"] > 0.9


def test_a_symmetric_matrix_is_taken_as_similarities_and_it_is_said(run, tmp_path):
    block = np.kron(np.eye(2), np.ones((5, 5)))
    np.save(tmp_path / "A.npy", block)
    answer = run("cluster A.npy -k 2 --seed 0 --json")
    assert "taken as similarities" in answer.stderr
    content = json.loads(answer.stdout)
    assert content["affinity"] == "precomputed"
    assert content["normalized"] is True  # the default, unless the plain matrix does better
    content = json.loads(run("cluster A.npy -k 2 --seed 0 --json --no-normalize").stdout)
    assert content["normalized"] is False
    assert content["error"] == pytest.approx(0, abs=1e-6)  # the matrix itself was factorized
    answer = run("cluster A.npy -k 2 --seed 0 --json --affinity nearest_neighbors --neighbors 3")
    assert json.loads(answer.stdout)["affinity"] == "nearest_neighbors"
    assert "taken as" not in answer.stderr


def test_overlapping_lists_every_cluster_above_the_threshold(run, tmp_path):
    U = np.array([[1.0, 0.0], [1.0, 0.0], [0.7, 0.7], [0.0, 1.0], [0.0, 1.0]])
    np.save(tmp_path / "A.npy", U @ U.T)
    rows = table(run("cluster A.npy -k 2 --seed 0 --overlapping --tol 1e-8").stdout)
    assert [len(row["all_clusters"].split()) for row in rows] == [1, 1, 2, 1, 1]
    strengths = [[float(s) for s in row["strengths"].split()] for row in rows]
    assert list(map(len, strengths)) == [1, 1, 2, 1, 1]
    assert all(s > 1 for row in strengths for s in row)
    rows = table(run("cluster A.npy -k 2 --seed 0 --overlapping --threshold 0.9").stdout)
    assert [len(row["all_clusters"].split()) for row in rows] == [1] * 5
    assert "strengths" not in rows[0]  # read by shares


def test_nodes_without_edges_have_no_cluster(run, tmp_path):
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1], [1, 2], [0, 2], [4, 5]]), n=np.array(7))
    answer = run("cluster g.npz -k 2 --seed 0")
    clusters = [row["cluster"] for row in table(answer.stdout)]
    assert [i for i, cluster in enumerate(clusters) if cluster == "-1"] == [3, 6]
    assert "2 rows that belong nowhere have the cluster -1" in answer.stderr


def test_pictures_and_the_page_are_written(run, friends):
    run("cluster friends.edges -k 2 -o l.csv --plot p.png --report r.html --seed 0")
    folder = friends.parent
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "r.html").read_text()
    assert "Clusters of friends.edges" in page
    assert page.count("data:image/png;base64") == 5  # graph, matrix, sizes and two curves


def test_formulas_in_names_are_defused_in_the_table(run, tmp_path):
    (tmp_path / "g.csv.edges").write_text("=1+1 b\nb c\n=1+1 c\nd e\n")
    answer = run("cluster g.csv.edges -k 2 -o l.csv --seed 0")
    assert {row["name"] for row in table(tmp_path / "l.csv")} == {"'=1+1", "b", "c", "d", "e"}
    assert "apostrophe" in answer.stderr


def test_not_converged_is_3_and_everything_is_written(run, points):
    answer = run("cluster points.csv -k 3 -o labels.csv --max-iter 1 --seed 0", expected=3)
    assert "did not converge in 1 iteration (raise --max-iter" in answer.stderr
    assert len(table(points.with_name("labels.csv"))) == 60
    run("cluster points.csv -k 3 -o labels.csv --max-iter 1 --tol 0", expected=0)


def test_the_same_command_goes_on_from_its_checkpoint_and_another_is_refused(run, points):
    options = "cluster points.csv -k 3 --seed 0 --starts 2 --tol 0"
    whole = run(f"{options} --max-iter 40 -o whole.csv")
    assert "did 40 iterations" in whole.stderr
    run(f"{options} --max-iter 9 -o part.csv --checkpoint c.npz")
    refused = run("cluster points.csv -k 3 --seed 1 --checkpoint c.npz", expected=2)
    assert "--seed 1 (it has 0)" in refused.stderr
    rest = run(f"{options} --max-iter 40 -o rest.csv --checkpoint c.npz")
    assert "going on from c.npz" in rest.stderr
    folder = points.parent
    assert (folder / "rest.csv").read_bytes() == (folder / "whole.csv").read_bytes()


# Wrong input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.csv", None, "No such file"),
        ("empty.csv", b"", "empty.csv"),
        ("words.csv", b"a,b\nc,d\n", "words.csv"),
        ("ragged.csv", b"1,2\n3\n", "ragged.csv"),
        ("broken.npz", b"PK\x03\x04 nothing", "broken.npz"),
        ("picture.jpg", b"\xff\xd8", ".jpg"),
        ("short.mtx", b"%%MatrixMarket matrix coordinate real general\n9 9 5\n", "short.mtx"),
        ("text.csv.gz", b"not gzip", "text.csv.gz"),
        ("negative.edges", b"a b -1\nb c 1\n", "the negative weight -1"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_exit_code_2(run, tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert words in one_line(run(f"cluster {name} -k 2", expected=2))


def test_a_pickled_array_is_refused_unopened(run, tmp_path):
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    one_line(run("cluster p.npy -k 1", expected=2))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cluster nosuch -k 2", "neither a file nor a data set"),
        ("cluster digit -k 2", "did you mean 'digits'?"),
        ("cluster friends.edges -k 9", "-k 9 is more than the 8 rows of friends.edges; choose"),
        ("cluster one.csv -k 2", "-k 2 is more than the 1 row of one.csv; choose at most -k 1."),
        ("factorize uneven.csv -r 2 -o U.npz", "symnmf: uneven.csv is not symmetric: entries"),
        ("rank uneven.csv --affinity precomputed", "symnmf: uneven.csv is not symmetric"),
        ("factorize signed.csv -r 2 -o U.npz", "symnmf: signed.csv has negative entries (the"),
        (
            "cluster signed.csv -k 2 --affinity precomputed",
            "in the file first, or pass --allow-negative to symnmf cluster if they are meant.",
        ),
        ("cluster friends.edges -k 0", "-k must be a whole number of at least 1"),
        ("cluster friends.edges -k 2 --solver a-symhal", "did you mean 'a-symhals'"),
        ("cluster friends.edges -k 2 --affinity rfb", "did you mean 'rbf'"),
        ("cluster friends.edges -k 2 --affinity rbf", "is a graph"),
        ("cluster friends.edges -k 2 --neighbors 3", "--neighbors is for points"),
        ("cluster friends.edges -k 2 --threshold 1", "--threshold must be"),
        ("cluster friends.edges -k 2 --solver symhals --coupling strong", "coupling 'strong'"),
        ("cluster friends.edges -k 2 --tol -1", "--tol must be"),
        ("cluster friends.edges -k 2 --starts 0", "--starts must be at least 1, got 0"),
        ("cluster friends.edges -k 2 --seed -1", "--seed must be at least 0, got -1"),
        ("cluster friends.edges -k 2 --jobs 0", "--jobs must be"),
        ("cluster friends.edges -k 2 --max-time -1", "--max-time must be at least 0"),
        ("cluster friends.edges -k 2 --max-time nan", "--max-time must be at least 0"),
        ("factorize friends.edges -r 2 -o U.npz --seed -1", "--seed must be at least 0"),
        ("reproduce figure1 --jobs 0", "--jobs must be at least 1"),
        ("cluster friends.edges -k 2 -o labels.xlsx", "must end in .csv"),
        ("cluster friends.edges -k 2 -o no/such/labels.csv", "does not exist"),
        ("cluster friends.edges -k 2 --plot p.bmp", "must end in .png"),
        ("cluster friends.edges -k 2 --truth short.csv", "3 labels, but the input has 8 rows"),
        ("factorize friends.edges -r 9 -o U.npz", "-r must be"),
        ("factorize table.csv -r 2 -o U.npz", "is 2 x 3"),
        ("factorize friends.edges -r 2 -o U.npz --init nothing", "init 'nothing'"),
        ("compare friends.edges -r 2 -s pdg", "did you mean 'pgd'"),
        ("compare friends.edges -r 2 --runs 0", "--runs must be"),
        ("reproduce figure99", "experiment 'figure99' is not known"),
    ],
)
def test_wrong_settings_are_one_sentence_and_nothing_is_written(
    run, friends, tmp_path, line, words
):
    (tmp_path / "short.csv").write_text("0\n1\n0\n")
    (tmp_path / "table.csv").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "one.csv").write_text("1,2\n")
    (tmp_path / "uneven.csv").write_text("0,1,5\n2,0,1\n0,1,0\n")
    (tmp_path / "signed.csv").write_text("1,-1,0\n-1,1,0\n0,0,1\n")
    before = sorted(tmp_path.iterdir())
    assert words in one_line(run(line, expected=2))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("factorize X.npz -r 2 -o X.npz", "INPUT and -o both name"),
        ("factorize X.npz -r 2 -o link.npz", "INPUT and -o both name"),
        ("factorize X.npz -r 2 -o ./new.npz --checkpoint new.npz", "-o and --checkpoint"),
        ("cluster X.npz -k 2 --checkpoint X.npz", "INPUT and --checkpoint"),
        ("cluster X.npz -k 2 --truth t.csv -o t.csv", "--truth and -o"),
        ("compare X.npz -r 2 -o t.csv --history t.csv", "-o and --history"),
    ],
)
def test_no_file_is_overwritten_by_another_option(run, tmp_path, line, words):
    for name in ("X.npz", "X2.npz"):
        np.savez(tmp_path / name, X=np.eye(4))
    (tmp_path / "link.npz").symlink_to(tmp_path / "X.npz")
    (tmp_path / "t.csv").write_text("0\n1\n0\n1\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert words in one_line(run(line, expected=2))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_checkpoint_leaves_every_other_file_alone(run, tmp_path):
    """Names of starts, of their temporary files, and of a fit whose name is a pattern."""
    np.savez(tmp_path / "run.start-truth.npz", y=np.array([0, 1] * 17))
    for name in ("run.start-0.npz", "runs.start-1.npz", ".run.npz.notes.tmp", "e1.start-0.npz"):
        (tmp_path / name).write_text("years of work")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    options = "--seed 0 --starts 2 --max-iter 5 --tol 1e9 -q"
    for name in ("run.npz", "run?.npz", "e[1].npz", "a**b.npz"):
        truth = "--truth run.start-truth.npz"
        run(f"cluster karate -k 2 --checkpoint {name} {truth} {options}")
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name: after.get(name) for name in before} == before


# Truth ----------------------------------------------------------------------------------------


def test_truth_is_matched_by_name(run, tmp_path):
    edges = ["a e", *(f"{u} {v}" for u, v in FRIENDS if (u, v) != ("d", "e"))]
    (tmp_path / "g.edges").write_text("\n".join(edges))  # e is the second node to appear
    (tmp_path / "named.csv").write_text(
        "name,label\n" + "".join(f"{name},{int(name > 'd')}\n" for name in "hgfedcba")
    )
    (tmp_path / "plain.csv").write_text("0\n" * 4 + "1\n" * 4)
    answer = run("cluster g.edges -k 2 --seed 0 --json --truth named.csv -o l.csv")
    assert json.loads(answer.stdout)["accuracy"] == 1.0
    assert "order" not in answer.stderr
    again = run("cluster g.edges -k 2 --seed 0 --json --truth l.csv")
    assert json.loads(again.stdout)["accuracy"] == 1.0
    answer = run("cluster g.edges -k 2 --seed 0 --json --truth plain.csv")
    assert json.loads(answer.stdout)["accuracy"] == 0.75  # a e b c | d f g h
    assert "in the order of first appearance (a, e, b, ...)" in answer.stderr


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("abcdefg", "no label for 1 of the 8 names in friends.edges, such as 'h'"),
        ("abcdefgha", "holds the name 'a' more than once"),
    ],
)
def test_truth_for_other_names_is_refused(run, friends, tmp_path, names, words):
    (tmp_path / "t.csv").write_text("".join(f"{name},1\n" for name in names))
    assert words in one_line(run("cluster friends.edges -k 2 --truth t.csv", expected=2))


def test_names_that_differ_by_an_apostrophe_keep_their_labels(run, tmp_path):
    (tmp_path / "g.edges").write_text("=x '=x\n=x b\n'=x b\nc d\nd e\nc e\nb c\n")
    run("cluster g.edges -k 2 --seed 0 -o labels.csv -q")
    again = run("cluster g.edges -k 2 --seed 0 -o more.csv -q --json --truth labels.csv")
    assert json.loads(again.stdout)["accuracy"] == 1.0


def test_a_picture_replaces_what_a_link_names_and_the_link_stays(run, tmp_path):
    (tmp_path / "latest.png").write_text("the one before")
    (tmp_path / "plot.png").symlink_to("latest.png")
    run("cluster karate -k 2 --seed 0 -o labels.csv -q --plot plot.png")
    assert (tmp_path / "latest.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "plot.png").is_symlink()


@pytest.mark.parametrize("option", ["--report page.html", "--plot p.png", "-o labels.csv"])
def test_a_full_disk_is_the_machines_fault(run, tmp_path, monkeypatch, option):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = run(f"cluster karate -k 2 --seed 0 -q --tol 1 {option}", expected=1)
    assert "No space left on device" in answer.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("line", ["info", "cluster karate -k 2 --max-iter 3 -o l.csv", "--help"])
def test_closed_streams_do_not_matter(tmp_path, closed, line):
    program = f"{sys.executable} -c 'from symnmf.cli import main; main()' {line} {closed}"
    done = subprocess.run(["sh", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == (["l.csv"] if "l.csv" in line else [])


def test_a_terminal_that_knows_only_ascii_gets_escapes(tmp_path):
    (tmp_path / "g.edges").write_text("Zoë Bob\nBob Ann\n", encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from symnmf.cli import main; main()", "cluster", "g.edges"),
            *("-k", "1", "--solver", "a-symhals", "--report", "é.html"),
        ],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
    )
    assert done.returncode in (0, 3), done.stderr
    assert "Zoë" in done.stdout.decode("utf-8")  # a table is data, and UTF-8 everywhere
    assert b"Traceback" not in done.stderr


def test_truth_may_hold_more_names_than_the_input(run, friends, tmp_path):
    (tmp_path / "t.csv").write_text("".join(f"{name},1\n" for name in "abcdefghz"))
    answer = run("cluster friends.edges -k 2 --truth t.csv --seed 0 --json")
    assert "accuracy" in json.loads(answer.stdout)
    assert "labels for 1 names that friends.edges does not have, such as 'z'" in answer.stderr


def test_names_with_an_apostrophe_in_front_are_still_found(run, tmp_path):
    (tmp_path / "g.edges").write_text("=1+1 b\nb c\n=1+1 c\nd e\n")
    run("cluster g.edges -k 2 -o l.csv --seed 0")
    answer = run("cluster g.edges -k 2 --truth l.csv --seed 0 --json")
    assert json.loads(answer.stdout)["accuracy"] == 1.0


def test_factorize_keeps_the_best_of_several_starts(run, tmp_path):
    X = np.random.default_rng(3).random((30, 30))
    np.save(tmp_path / "X.npy", X + X.T)
    told = "factorize X.npy -r 6 -o U.npz --seed 1 --init scaled-random --tol 1e-3 --json"
    errors = [json.loads(run(f"{told} --starts {n}").stdout)["error"] for n in (1, 8)]
    expected = symnmf.factorize(
        X + X.T, 6, n_init=8, init="scaled-random", random_state=1, tol=1e-3
    )
    assert errors[1] == expected.error <= errors[0]


# Guesses and words ----------------------------------------------------------------------------


def test_a_reading_that_is_a_guess_is_said(run, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "square.npy", rng.random((12, 12)))
    answer = run("cluster square.npy -k 2 --seed 0 --max-iter 5 --tol 0")
    assert "12 x 12 but is not symmetric" in answer.stderr
    rows = [f"{i},{(i + step) % 12},1.5\n" for i in range(12) for step in (1, 2)]
    (tmp_path / "edges.csv").write_text("one,other,weight\n" + "".join(rows))
    answer = run("cluster edges.csv -k 2 --seed 0 --max-iter 5 --tol 0")
    assert "could be the edges of a graph" in answer.stderr
    (tmp_path / "edges.csv").write_text("source,target,weight\n" + "".join(rows))
    answer = run("cluster edges.csv -k 2 --seed 0 --max-iter 5 --tol 0")
    assert "12 rows in 2 clusters" in answer.stderr  # read as the edges its header names


def test_the_summary_counts_in_words(run, points, tmp_path):
    answer = run("cluster points.csv -k 3 -o labels.csv --seed 0")
    assert "60 rows in 3 clusters of 20 each" in answer.stderr
    answer = run("cluster points.csv -k 1 -o labels.csv --seed 0")
    assert "60 rows in 1 cluster of 60;" in answer.stderr
    np.save(tmp_path / "A.npy", np.ones((6, 6)))
    answer = run("cluster A.npy -k 2 -o labels.csv --seed 0 --tol 0 --max-iter 1")
    assert "did 1 iteration," in answer.stderr


def test_clusters_without_members_are_said(run, tmp_path, monkeypatch):
    from symnmf.run.result import Result

    np.save(tmp_path / "A.npy", np.kron(np.eye(2), np.ones((3, 3))))
    labels = property(lambda self: np.zeros(6, dtype=int))
    monkeypatch.setattr(Result, "labels", labels)
    answer = run("cluster A.npy -k 2 -o labels.csv --seed 0")
    assert "6 rows in 1 cluster of 6;" in answer.stderr
    assert "only 1 of the 2 clusters asked for have rows" in answer.stderr


def test_factorize_says_once_that_it_did_not_converge(run, tmp_path):
    np.save(tmp_path / "X.npy", synthetic_problem(20, 2))
    answer = run("factorize X.npy -r 2 -o U.npz --seed 0 --max-iter 1", expected=3)
    assert answer.stderr.count("did not converge") == 1
    assert "--max-iter" in answer.stderr
    assert "auto" in answer.stderr


def test_a_reader_that_closes_stdout_is_no_failure():
    for line in ("info", "--help"):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [sys.executable, "-m", "symnmf", line], stdout=write_end, stderr=subprocess.PIPE
        )
        os.close(write_end)
        assert (done.returncode, done.stderr) == (141, b"")


def test_unknown_options_and_missing_ones_are_usage_errors(run):
    run("cluster karate", expected=2)
    run("cluster karate -k two", expected=2)
    run("cluster karate -k 2 --nosuch", expected=2)
    run("nosuch", expected=2)


def test_names_in_errors_cannot_steer_the_terminal(run):
    answer = run("cluster \x1b[2Jevil -k 2", expected=2)
    assert "\x1b[2J" not in answer.stderr


def test_what_the_machine_refuses_is_1(run, friends, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("symnmf.readers.write_table", full)
    assert "No space left" in run("cluster friends.edges -k 2", expected=1).stderr


def test_a_missing_extra_is_asked_for_before_the_run(run, friends, monkeypatch):
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    answer = run("cluster friends.edges -k 2 -o l.csv --plot p.png", expected=2)
    assert "pip install 'symnmf[plots]'" in one_line(answer)


# factorize, compare, reproduce, info ----------------------------------------------------------


def test_factorize_keeps_the_names_and_prints_the_certificate(run, friends, tmp_path):
    answer = run("factorize friends.edges -r 2 -o U.npz --seed 0 --solver a-symhals --plot p.svg")
    assert answer.stdout.startswith("Certified")
    assert "Theorem 1" in answer.stdout
    result = symnmf.Result.load(tmp_path / "U.npz")
    names = np.load(tmp_path / "U.npz")["names"].tolist()
    assert names == list("abcdefgh")
    A = np.zeros((8, 8))
    for a, b in FRIENDS:
        A[names.index(a), names.index(b)] = A[names.index(b), names.index(a)] = 1
    error = np.linalg.norm(A - result.U @ result.U.T) ** 2 / np.linalg.norm(A) ** 2
    assert result.error == pytest.approx(error)
    assert "<svg" in (tmp_path / "p.svg").read_text()
    run("factorize friends.edges -r 2 -o U.csv --seed 0 --solver a-symhals")
    rows = table(tmp_path / "U.csv")
    assert [row["name"] for row in rows] == names
    assert np.array_equal([[float(row["u0"]), float(row["u1"])] for row in rows], result.U)


def test_factorize_goes_on_from_a_checkpoint(run, tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(synthetic_problem(30, 3, 0.1)))
    options = "factorize X.npz -r 3 --seed 0 --tol 0"
    run(f"{options} -o whole.npz --max-iter 30")
    run(f"{options} -o part.npz --max-iter 7 --checkpoint run.npz")
    other = run("factorize X.npz -r 2 -o x.npz --checkpoint run.npz", expected=2)
    assert "rank 2 (it has 3)" in other.stderr
    again = run(f"{options} -o r.npz --max-iter 30 --checkpoint run.npz --json")
    content = json.loads(again.stdout)
    assert content["iterations"] == 30
    rest, whole = (symnmf.Result.load(tmp_path / name) for name in ("r.npz", "whole.npz"))
    assert np.array_equal(rest.U, whole.U)


def test_compare_runs_everything_from_the_same_start(run, tmp_path):
    np.save(tmp_path / "X.npy", synthetic_problem(20, 2))
    solvers = ["a-symhals", "pgd", "beta-snmf"]
    chosen = " ".join(f"-s {solver}" for solver in solvers)
    answer = run(
        f"compare X.npy -r 2 {chosen} --runs 2 --max-iter 5 -o t.csv --history h.csv --plot p.png"
    )
    shown = [line.split()[0] for line in answer.stdout.splitlines()]
    assert shown[0] == "solver"
    assert sorted(shown[1:]) == sorted(2 * solvers)
    errors = [float(line.split()[-1]) for line in answer.stdout.splitlines()[1:]]
    assert errors == sorted(errors)
    assert [row["iterations"] for row in table(tmp_path / "t.csv")] == ["5"] * 6
    for start in ("0", "1"):
        first = {
            row["error"]
            for row in table(tmp_path / "h.csv")
            if row["iteration"] == "0" and row["run"] == start and row["solver"] != "beta-snmf"
        }  # beta-SNMF rescales the start before it sets out
        assert len({f"{float(error):.9g}" for error in first}) == 1
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_compare_json_and_its_own_short_list(run, friends):
    content = json.loads(run("compare friends.edges -r 2 --max-iter 3 --json").stdout)
    solvers = [row["solver"] for row in content["runs"]]
    assert {"symanls", "symhals", "a-symhals"} < set(solvers)
    assert len(solvers) < len(symnmf.solvers.available())
    assert all(math.isfinite(row["error"]) for row in content["runs"])


def test_info(run):
    text = run("info").stdout
    content = json.loads(run("info --json").stdout)
    assert content["symnmf"] == symnmf.__version__
    assert content["threads"] >= 1
    assert content["versions"]["numpy"] == np.__version__
    for solver in symnmf.solvers.available():
        assert str(solver) in text
    assert {"digits", "karate"} <= {e["name"] for e in content["datasets"] if e["present"]}

"""The command as a person or a script uses it."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import MINUTES, synthetic_problem
from shell import command

SHELL = [sys.executable, "-m", "symnmf"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder with points in three groups, their classes and a graph of two."""
    monkeypatch.chdir(tmp_path)
    classes = np.repeat([0, 1, 2], 20)
    points = np.random.default_rng(0).normal(size=(60, 3)) + 9 * classes[:, None]
    np.savetxt("points.csv", points, delimiter=",", header="a,b,c", comments="")
    np.savetxt("truth.txt", classes, fmt="%d")
    cliques = [(f"{side}{i}", f"{side}{j}") for side in "ab" for i in range(8) for j in range(i)]
    with open("friends.edges", "w") as file:
        file.writelines(f"{u} {v}\n" for u, v in [*cliques, ("a0", "b0")])
    np.save("X.npy", synthetic_problem(30, 3, 0.05, seed=1))
    return tmp_path


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def refused(line, *words):
    """Refused in one sentence, before anything was written."""
    before = sorted(os.listdir())
    answer = command(line)
    assert answer.exit_code == 2, answer.stderr
    sentence = answer.stderr.strip()
    assert sentence.startswith("symnmf: ")
    assert "\n" not in sentence
    assert answer.stdout == ""
    assert sorted(os.listdir()) == before
    for word in words:
        assert word in sentence
    return sentence


# Help -----------------------------------------------------------------------------------------


def test_help_and_version():
    first = command("--help")
    assert first.exit_code == 0
    for name in ("cluster", "factorize", "compare", "info", "datasets"):
        assert f"\n  {name} " in first.stdout
        answer = command(name, "--help")
        assert answer.exit_code == 0
        assert f"symnmf {name}" in answer.stdout.partition("examples:")[2]
        assert "None" not in answer.stdout.partition("examples:")[2]
    assert command("--version").stdout == f"symnmf {symnmf.__version__}\n"
    assert command().stdout == first.stdout


def test_every_option_of_the_library_is_spelt_as_it_is_declared():
    from symnmf.cli.parsing import COMMANDS, OWN
    from symnmf.options import OPTIONS

    for name, one in COMMANDS.items():
        shown = command(name, "--help").stdout
        for option in (option for names in one.options.values() for option in names):
            if option not in OWN:
                assert OPTIONS[option].shell in shown


# cluster --------------------------------------------------------------------------------------


def test_the_verdict_is_said_first_and_labels_go_to_a_file():
    answer = command("cluster points.csv -k 3 -o labels.csv --truth truth.txt --seed 0 -q")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.startswith("Are they clusters? ")
    assert "accuracy 1.000" in answer.stdout
    assert answer.stderr == ""
    table = rows("labels.csv")
    assert list(table[0]) == ["row", "cluster", "membership"]
    assert [int(row["row"]) for row in table] == list(range(60))
    model = symnmf.SymNMF(3, random_state=0).fit(
        np.loadtxt("points.csv", delimiter=",", skiprows=1)
    )
    assert [int(row["cluster"]) for row in table] == model.labels_.tolist()


def test_labels_go_to_stdout_only_where_they_are_asked_for():
    answer = command("cluster friends.edges -k 2 -o - -q")
    table = list(csv.DictReader(answer.stdout.splitlines()))
    assert {row["name"] for row in table} == {f"{side}{i}" for side in "ab" for i in range(8)}
    assert len({row["cluster"] for row in table if row["name"][0] == "a"}) == 1
    assert answer.stderr.startswith("Are they clusters? ")
    assert "-o labels.csv" in command("cluster friends.edges -k 2 -q").stdout


def test_the_number_of_clusters_is_found_unless_it_is_given():
    answer = command("cluster points.csv --seed 0 -q")
    assert "\nHow many: 3. " in answer.stdout


def test_json_is_one_object_with_the_table():
    answer = command("cluster friends.edges -k 2 --json --seed 0 -q")
    content = json.loads(answer.stdout)
    assert next(iter(content)) == "verdict"
    assert content["sizes"] == {"0": 8, "1": 8}
    assert len(content["table"]["cluster"]) == 16
    assert content["exit_code"] == 0
    found = symnmf.communities(nx.read_edgelist("friends.edges"), 2, random_state=0)
    assert content["error"] == pytest.approx(found.result.error)
    written = json.loads(command("cluster friends.edges -k 2 --json -o l.csv -q").stdout)
    assert "table" not in written


def test_overlapping_lists_every_cluster_of_a_row():
    command("cluster friends.edges -k 2 --overlapping -o l.csv -q")
    for row in rows("l.csv"):
        mine = row["all_clusters"].split()
        assert len(mine) == len(row["strengths"].split())
        assert not mine or row["cluster"] in mine


def test_text_columns_are_refused_with_advice_and_names_come_from_the_column_chosen():
    lines = Path("points.csv").read_text().splitlines()
    named = ["town," + lines[0], *(f"t{i},{line}" for i, line in enumerate(lines[1:]))]
    Path("towns.csv").write_text("\n".join(named))
    refused("cluster towns.csv -k 3", "'t0', which is no number", "Gower", "--name-column")
    command("cluster towns.csv -k 3 --name-column town -o l.csv -q")
    assert [row["name"] for row in rows("l.csv")] == [f"t{i}" for i in range(60)]
    command("cluster towns.csv -k 3 --columns a,b -o l.csv -q")
    assert "row" in rows("l.csv")[0]


def test_truth_and_attributes_are_matched_by_name():
    command("cluster friends.edges -k 2 -o labels.csv -q --seed 0")
    shuffled = Path("labels.csv").read_text().splitlines()
    Path("truth.csv").write_text("\n".join([shuffled[0], *reversed(shuffled[1:])]))
    answer = command("cluster friends.edges -k 2 --truth truth.csv -q --seed 0")
    assert "accuracy 1.000" in answer.stdout
    words = [",left,right"] + [f"{side}{i},{side == 'a':d},{side == 'b':d}"
             for side in "ba" for i in range(8)]  # fmt: skip
    Path("words.csv").write_text("\n".join(words))
    answer = command("cluster friends.edges -k 2 --attributes words.csv -q --seed 0")
    assert answer.exit_code == 0, answer.stderr
    told = [line for line in answer.stdout.splitlines() if line.startswith("  cluster ")]
    assert {line.partition(": ")[2].split(",")[0] for line in told} == {"left", "right"}
    Path("words.csv").write_text("\n".join(words[:-1]))
    refused("cluster friends.edges -k 2 --attributes words.csv", "no row for 1 of the 16 names")
    Path("words.csv").write_text("1,2\n3,4\n")
    refused("cluster friends.edges -k 2 --attributes words.csv", "one row for each of the 16 rows")
    refused("cluster points.csv -k 2 --attributes words.csv", "goes with a graph")


def test_nodes_without_edges_have_no_cluster_and_formulas_are_disarmed():
    A = nx.to_numpy_array(nx.read_edgelist("friends.edges"))
    names = ["=1+1", *(f"n{i}" for i in range(1, 17))]
    edges = np.column_stack(np.nonzero(np.triu(A)))
    np.savez("g.npz", edges=edges, n=17, node_names=np.array(names))
    answer = command("cluster g.npz -k 2 -o l.csv -q")
    assert "1 of the rows are in no cluster (-1)." in answer.stdout
    table = rows("l.csv")
    assert table[16]["cluster"] == "-1"
    assert table[0]["name"] == "'=1+1"
    assert "accuracy 1.000" in command("cluster g.npz -k 2 --truth l.csv -q").stdout


def test_not_converged_is_3_and_everything_is_written():
    answer = command("cluster points.csv -k 3 --max-iter 1 --init random --tol 1e-12 -o l.csv -q")
    assert answer.exit_code == 3
    assert "raise --max-iter or --tol" in answer.stdout
    assert len(rows("l.csv")) == 60


# factorize, compare, info ---------------------------------------------------------------------


def test_factorize_writes_the_run_and_prints_the_certificate():
    answer = command("factorize X.npy -r 3 -o U.npz --seed 0 -q")
    assert answer.exit_code == 0, answer.stderr
    assert "Certified" in answer.stdout
    result = symnmf.Result.load("U.npz")
    expected = symnmf.factorize(np.load("X.npy"), 3, random_state=0)
    np.testing.assert_array_equal(result.U, expected.U)
    command("factorize friends.edges -r 2 -o U.csv -q --normalize")
    assert list(rows("U.csv")[0]) == ["name", "u0", "u1"]
    content = json.loads(command("factorize X.npy -r 3 -o U.npz --json -q").stdout)
    assert content["status"] == "converged"


def test_compare_lists_every_run_the_best_first():
    answer = command(
        "compare X.npy -r 3 -s pgd -s symhals --max-iter 30 --starts 2 -o t.csv --seed 0"
    )
    assert answer.exit_code == 0, answer.stderr
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert lines[0] == ["solver", "run", "status", "iterations", "seconds", "error"]
    errors = [float(line[-1]) for line in lines[1:]]
    assert errors == sorted(errors)
    assert sorted((line[0], line[1]) for line in lines[1:]) == [
        *(("pgd", "0"), ("pgd", "1")),
        *(("symhals", "0"), ("symhals", "1")),
    ]
    assert len(rows("t.csv")) == 4
    runs = json.loads(command("compare points.csv -r 3 -s pgd --max-iter 3 --json").stdout)["runs"]
    assert [run["solver"] for run in runs] == ["pgd"]


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("clster", "'cluster'"),
        ("cluster", "INPUT"),
        ("cluster points.csv --overlaping", "'--overlapping'"),
        ("cluster points.csv --seed", "--seed"),
        ("cluster points.csv -k 0", "-k must be a whole number of at least 1 or 'auto'"),
        ("cluster points.csv -k some", "-k must be"),
        ("cluster friends.edges -k 17", "more than the 16 nodes of friends.edges"),
        ("cluster points.csv --tol -1", "--tol must be a number of at least 0"),
        ("cluster points.csv --jobs 0", "--jobs must be a number of threads"),
        ("cluster points.csv --seed -1", "--seed must be"),
        ("compare X.npy -r 2 -s pgd --init here", "--init"),
        ("cluster points.csv --components most", "--components must be"),
        ("cluster points.csv --solver fast", "--solver"),
        ("cluster points.csv --affinity alike", "--affinity"),
        ("cluster points.csv --row-sparse", "--row-sparse is for graphs"),
        ("cluster points.csv --overlapping", "--overlapping is for graphs"),
        ("cluster friends.edges --affinity rbf", "friends.edges is a graph"),
        ("cluster friends.edges --scale standard", "--scale is for tables"),
        ("cluster friends.edges --columns a", "--columns is for .csv"),
        ("cluster friends.edges --threshold 2", "--threshold must be"),
        ("cluster nothing.csv", "No such file"),
        ("cluster digitz", "did you mean 'digits'?"),
        ("cluster digits --n-clusters=3", "did you mean '-k'?"),
        ("cluster digits --random_state 3", "did you mean '--seed'?"),
        ("cluster points.csv -o points.csv", "points.csv and -o both name"),
        ("cluster points.csv -o l.csv --truth l.csv", "--truth and -o both name"),
        ("cluster points.csv -o labels.txt", "-o must end in .csv or .csv.gz"),
        ("cluster points.csv -o none/l.csv", "does not exist; create it first"),
        ("cluster points.csv --plot p.jpg", "--plot must end in .png"),
        ("cluster points.csv --truth X.npy", "unknown ending '.npy'"),
        ("factorize points.csv -r 2 -o U.npz", "60 x 3"),
        (
            "factorize X.npy -r 31 -o U.npz",
            "-r must be a whole number from 1 to the 30 row(s) of X.npy",
        ),
        ("factorize X.npy -r 2", "-o"),
        ("factorize none.npy -r 2 -o U.npz", "does not exist"),
        ("compare X.npy -r 2 -s fast", "fast"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(line, words):
    refused(line, words)


def test_names_in_errors_cannot_steer_the_terminal():
    assert "\x1b" not in command("cluster", "a\x1b[31m.csv").stderr


# Streams and signals --------------------------------------------------------------------------


def test_a_reader_that_closes_stdout_is_no_failure():
    line = f"{' '.join(SHELL)} info | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=MINUTES)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_matter(closed):
    line = f"{' '.join(SHELL)} cluster friends.edges -k 2 -o l.csv {closed}"
    assert subprocess.run(["bash", "-c", line], timeout=MINUTES).returncode == 0
    assert len(rows("l.csv")) == 16


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("factorize big.npz -r 5 -o U.npz", signal.SIGTERM, 130),
        ("cluster big.npz -k 5 -o l.csv", signal.SIGINT, 130),
    ],
    ids=["SIGTERM", "Ctrl-C"],
)
def test_an_interrupted_run_writes_what_it_has(line, number, code):
    sp.save_npz("big.npz", sp.csr_array(synthetic_problem(900, 5, 1.0, seed=0)))
    run = "--tol 0 --max-iter 10000000 --init random --seed 0 --checkpoint run.npz"
    reader, terminal = pty.openpty()  # where progress is shown at once
    process = subprocess.Popen(
        [*SHELL, *line.split(), *run.split()], stdout=subprocess.DEVNULL, stderr=terminal
    )
    os.close(terminal)
    stop = threading.Timer(MINUTES, process.kill)
    stop.start()
    printed = b""
    try:
        while b"iteration" not in printed:
            printed += os.read(reader, 4096)
        process.send_signal(number)
        assert process.wait() == code, printed
    finally:
        stop.cancel()
        process.kill()
        os.close(reader)
    assert b"Traceback" not in printed
    assert os.path.exists(line.split()[-1])

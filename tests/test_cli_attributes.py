"""``symnmf cluster --attributes``: links and a table of what is known of the nodes."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

pytest.importorskip("typer", reason="the command line needs pip install 'symnmf[cli]'")

from typer.testing import CliRunner

import symnmf
from symnmf.cli.app import app

N, WORDS = 60, 30
GROUP, TOPIC = np.arange(N) % 3, np.arange(WORDS) % 3
COLUMNS = [f"word{j}_of_{topic}" for j, topic in enumerate(TOPIC)]
NAMES = [f"p{i}" for i in range(N)]


def planted(seed=0):
    """Links that tell the groups badly, and words that tell them well."""
    rng = np.random.default_rng(seed)
    inside = GROUP[:, None] == GROUP
    upper = np.triu(rng.random((N, N)) < np.where(inside, 0.32, 0.15), 1)
    words = rng.random((N, WORDS)) < np.where(GROUP[:, None] == TOPIC, 0.45, 0.05)
    return upper | upper.T, words.astype(int)


LINKS, F = planted()
SHUFFLED = np.random.default_rng(1).permutation(N)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder; the answer has exit_code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(line, expected=0):
        answer = CliRunner().invoke(app, f"{line} --quiet".split(), prog_name="symnmf")
        assert answer.exit_code == expected, answer.output
        return answer

    return run


@pytest.fixture
def graph(tmp_path):
    """The links by names; nodes come in the order in which edges first name them."""
    write_edges(tmp_path / "graph.edges", NAMES)


def write_edges(path, names):
    rows, columns = np.nonzero(np.triu(LINKS))
    path.write_text("".join(f"{names[i]} {names[j]}\n" for i, j in zip(rows, columns, strict=True)))


def write_table(path, order, names=None, columns=COLUMNS, first="name"):
    """Write the words of the nodes in this order, with names if there are any."""
    lines = [] if columns is None else [[*([] if names is None else [first]), *columns]]
    lines += [[*([] if names is None else [names[i]]), *F[i]] for i in order]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


def found_by_name(answer):
    table = json.loads(answer.stdout)["table"]
    return dict(zip(table["name"], table["cluster"], strict=True))


def agreement(answer, name=str):
    """Return the adjusted Rand index of clusters with names p0, p1, ... against the groups."""
    clusters = found_by_name(answer)
    return adjusted_rand_score(GROUP, [clusters[name(one)] for one in NAMES])


def complaint(answer):
    """The answer's only complaint: one sentence, and no traceback."""
    assert "Traceback" not in answer.output
    (line,) = answer.stderr.strip().splitlines()
    return line


COMMAND = "cluster graph.edges -k 3 --seed 0 --starts 2"


# What comes out ---------------------------------------------------------------------------------


def test_rows_are_matched_by_name_and_words_help(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    with_words = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    links = run(f"{COMMAND} --json")
    assert agreement(with_words) > 0.85
    assert agreement(links) < agreement(with_words) - 0.2
    assert "attribute_weight" not in json.loads(links.stdout)


def test_json_tells_the_weight_and_what_each_cluster_is_about(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    told = json.loads(answer.stdout)
    assert told["attribute_weight"] == 1
    assert told["attribute_weights_tried"] == []
    topics = [{name[-1] for name in told["about"][str(k)][:5]} for k in range(3)]
    assert sorted(map(sorted, topics)) == [["0"], ["1"], ["2"]]
    # the words of a cluster are those of the group that fills it
    clusters = found_by_name(answer)
    for k, (topic,) in enumerate(topics):
        mine = [GROUP[int(name[1:])] for name, cluster in clusters.items() if cluster == k]
        assert np.bincount(mine, minlength=3).argmax() == int(topic)


def test_the_weight_is_chosen_as_in_python(run, tmp_path):
    sp.save_npz(tmp_path / "graph.npz", sp.csr_array(LINKS.astype(float)))
    sp.save_npz(tmp_path / "words.npz", sp.csr_array(F.astype(float)))
    answer = run(
        "cluster graph.npz -k 3 --seed 0 --starts 2 --normalize --attributes words.npz --json"
    )
    told = json.loads(answer.stdout)
    same = symnmf.communities(
        sp.csr_array(LINKS.astype(float)), 3, attributes=F, random_state=0, n_init=2
    )
    assert told["table"]["cluster"] == same.labels.tolist()
    assert told["attribute_weight"] == same.attribute_weight.weight
    assert told["degree_offset"] == same.degree_offset
    weights = [each["weight"] for each in told["attribute_weights_tried"]]
    assert told["attribute_weight"] in weights
    assert len(weights) > 5
    assert [told["about"][str(k)] for k in range(3)] == same.about(8)  # numbers without names


def test_a_person_is_told_too(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight 2 -o labels.csv")
    assert "Attributes count 2 times as much as links (as given)." in answer.stderr
    for k in range(3):
        assert re.search(rf"cluster {k}: word\d+_of_\d, word", answer.stderr)
    labels = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert len(labels) == N


def test_a_chosen_weight_is_called_chosen(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight auto -o labels.csv")
    assert "(chosen by held-out links and attributes)" in answer.stderr


def test_the_report_lists_the_most_distinctive_columns(run, graph, tmp_path):
    pytest.importorskip("matplotlib")
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    line = f"{COMMAND} --attributes words.csv --attribute-weight 1 -o l.csv --report page.html"
    about = re.findall(r"cluster \d: (.*)", run(line).stderr)
    page = (tmp_path / "page.html").read_text()
    assert "most distinctive columns" in page
    assert len(about) == 3
    assert all(f">{columns}<" in page for columns in about)
    assert "attribute_weight" in page
    run(f"{COMMAND} -o l.csv --report page.html")
    assert "most distinctive columns" not in (tmp_path / "page.html").read_text()


def test_a_run_resumes_with_the_same_table_only(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    line = f"{COMMAND} --attributes words.csv --attribute-weight 1 --json"
    whole = run(line)
    run(f"{line} --checkpoint run.npz --max-iter 3", expected=3)
    assert found_by_name(run(f"{line} --checkpoint run.npz")) == found_by_name(whole)
    write_table(tmp_path / "words.csv", SHUFFLED[::-1], NAMES[::-1])
    assert "run.npz" in run(f"{line} --checkpoint run.npz", expected=2).stderr


# How rows are matched ---------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["id", "person"])
def test_numbers_of_nodes_are_names(run, tmp_path, first):
    """Whether the column is called so, or has the number of every node."""
    numbers = [10 + 3 * i for i in range(N)]
    write_edges(tmp_path / "graph.edges", numbers)
    write_table(tmp_path / "words.csv", SHUFFLED, numbers, first=first)
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    assert agreement(answer, lambda name: 10 + 3 * int(name[1:])) > 0.85
    assert "first column of words.csv was taken as the names" in answer.stderr
    assert all(first not in about for about in json.loads(answer.stdout)["about"].values())


def test_nodes_without_names_are_found_by_their_numbers(run, tmp_path):
    sp.save_npz(tmp_path / "graph.npz", sp.csr_array(LINKS.astype(float)))
    write_table(tmp_path / "words.csv", SHUFFLED, range(N), first="node")
    line = "cluster graph.npz -k 3 --seed 0 --starts 2 --attribute-weight 1 --json --attributes"
    shuffled = json.loads(run(f"{line} words.csv").stdout)
    np.save(tmp_path / "words.npy", F)
    ordered = json.loads(run(f"{line} words.npy").stdout)
    assert shuffled["table"]["cluster"] == ordered["table"]["cluster"]


def test_without_names_rows_are_matched_by_order(run, graph, tmp_path):
    names = list(found_by_name(run(f"{COMMAND} --json")))
    order = [NAMES.index(name) for name in names]
    write_table(tmp_path / "words.csv", order)
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    assert agreement(answer) > 0.85
    assert "its rows were matched" in answer.stderr
    assert "order of first appearance" in answer.stderr


def test_a_parquet_table_is_matched_by_its_index(run, graph, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(F, index=pd.Index(NAMES, name="paper"), columns=COLUMNS)
    frame.iloc[SHUFFLED].to_parquet(tmp_path / "words.parquet")
    answer = run(f"{COMMAND} --attributes words.parquet --attribute-weight 1 --json")
    write_table(tmp_path / "words.csv", range(N), NAMES)
    same = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    assert found_by_name(answer) == found_by_name(same)
    assert json.loads(answer.stdout)["about"] == json.loads(same.stdout)["about"]


def test_rows_of_other_nodes_are_left_out(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", SHUFFLED, NAMES)
    with (tmp_path / "words.csv").open("a") as more:
        more.write("stranger" + ",1" * WORDS + "\n")
    answer = run(f"{COMMAND} --attributes words.csv --attribute-weight 1 --json")
    assert agreement(answer) > 0.85
    assert "rows for 1 names that graph.edges does not have, such as 'stranger'" in answer.stderr


# What is refused --------------------------------------------------------------------------------


def test_another_number_of_rows_is_refused(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", range(N - 1))
    said = complaint(run(f"{COMMAND} --attributes words.csv", expected=2))
    assert "--attributes must have one row for each of the 60 rows of graph.edges" in said
    assert "words.csv has 59 without names" in said


def test_a_node_without_a_row_is_refused(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", range(1, N), NAMES)
    said = complaint(run(f"{COMMAND} --attributes words.csv", expected=2))
    assert "words.csv has no row for 1 of the 60 names in graph.edges, such as 'p0'" in said


def test_a_name_twice_is_refused(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", [*range(N), 4], NAMES)
    said = complaint(run(f"{COMMAND} --attributes words.csv", expected=2))
    assert "words.csv holds the name 'p4' more than once" in said


def test_a_missing_value_is_refused(run, graph, tmp_path):
    write_table(tmp_path / "words.csv", range(N), NAMES)
    text = (tmp_path / "words.csv").read_text()
    (tmp_path / "words.csv").write_text(re.sub(r"\np7,\d,", "\np7,,", text))
    said = complaint(run(f"{COMMAND} --attributes words.csv", expected=2))
    assert "has 1, the first in the row of 'p7', column 'word0_of_0'" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--attribute-weight 0.3", "--attribute-weight needs --attributes"),
        ("--attributes words.csv --attribute-weight much", "--attribute-weight must be 'auto' or"),
        ("--attributes words.csv --attribute-weight 0", "--attribute-weight must be 'auto' or"),
        ("--attributes words.csv --attribute-weight nan", "--attribute-weight must be 'auto' or"),
        ("--attributes words.csv --triangles", "cannot be combined with --triangles"),
        ("--attributes words.csv --loss poisson", "cannot be combined with --loss"),
        ("--attributes words.csv --overlapping --row-sparse", "cannot be combined with"),
        ("--attributes graph.edges", "must be a table, and graph.edges holds a graph"),
        ("--attributes absent.csv", "absent.csv"),
        ("--attributes words.csv -o words.csv", "--attributes and -o both name the file"),
    ],
)
def test_what_does_not_go_together_is_refused(run, graph, tmp_path, options, said):
    write_table(tmp_path / "words.csv", range(N), NAMES)
    assert said in complaint(run(f"{COMMAND} {options}", expected=2))


def test_points_take_no_attributes(run, tmp_path):
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(N, 4)))
    np.save(tmp_path / "words.npy", F)
    line = "cluster points.npy -k 3 --attributes words.npy"
    assert "add the columns to that table" in complaint(run(line, expected=2))


def test_blocks_on_disk_take_no_attributes(run, tmp_path):
    np.save(tmp_path / "graph.npy", LINKS.astype(float))
    np.save(tmp_path / "words.npy", F)
    line = "cluster graph.npy -k 3 --memory 1GB --attributes words.npy"
    assert "is read in blocks" in complaint(run(line, expected=2))

"""Files become folders of blocks that hold the same matrix, within a stated memory."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

pytest.importorskip("typer", reason="the command line needs pip install 'symnmf[cli]'")

from typer.testing import CliRunner

import symnmf
from symnmf.cli.app import app as program
from symnmf.errors import InputError
from symnmf.readers import read_matrix
from symnmf.readers.converting import convert
from symnmf.storage import Blocks
from symnmf.storage.folder import BlockFolder
from symnmf.storage.names import read_names


def some_graph(n=150, seed=0):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=0.04, rng=rng, format="csr")
    A.data = np.round(A.data, 3) + 0.001
    A = sp.csr_array(sp.triu(A))
    A = A + sp.triu(A, 1).T
    return sp.csr_array(A)


def write_edges(path, A, names=None, both=False):
    upper = sp.coo_array(A if both else sp.triu(A))
    lines = [
        f"{i if names is None else names[i]} {j if names is None else names[j]} {w:.3f}"
        for i, j, w in zip(*upper.coords, upper.data, strict=True)
    ]
    path.write_text("# a comment\n" + "\n".join(lines) + "\n")
    return path


def whole(folder):
    """Put the blocks together again."""
    matrix = Blocks(folder, memory="1GB")
    return matrix.matmul(np.eye(matrix.shape[0], dtype=matrix.dtype))


def names_of(folder):
    return read_names(folder, BlockFolder(folder).n)


def same_as_reader(path, folder, memory=20_000, **options):
    made = convert(path, folder, memory=memory, **options)
    found = read_matrix(path)
    data = found.data.toarray() if sp.issparse(found.data) else found.data
    np.testing.assert_allclose(whole(folder), data, rtol=1e-12)
    names = None if found.names is None else found.names.tolist()
    assert names_of(folder) == names
    assert not (folder / ".scratch").exists()
    return made


def test_an_edge_list_is_streamed_into_blocks(tmp_path):
    A = some_graph()
    made = same_as_reader(write_edges(tmp_path / "a.edges", A), tmp_path / "a")
    assert made.n == 150
    assert made.blocks > 5
    assert 3 * made.largest_block < 20_000
    same_as_reader(write_edges(tmp_path / "b.edges", A, both=True), tmp_path / "b")
    (tmp_path / "c.edges.gz").write_bytes(gzip.compress((tmp_path / "a.edges").read_bytes()))
    same_as_reader(tmp_path / "c.edges.gz", tmp_path / "c")


def test_names_survive_whatever_they_are(tmp_path):
    A = some_graph()
    far = {i: 10**12 + 7 * i for i in range(150)}
    same_as_reader(write_edges(tmp_path / "far.edges", A, far), tmp_path / "far")
    text = {i: f"node{i}" for i in range(150)}
    same_as_reader(write_edges(tmp_path / "text.edges", A, text), tmp_path / "text")
    lines = "".join(f"{i} {i + 1}\n" for i in range(60_000)) + "last 0\n"  # text, but late
    (tmp_path / "late.edges").write_text(lines)
    convert(tmp_path / "late.edges", tmp_path / "late", memory="20MB")
    assert names_of(tmp_path / "late") == read_matrix(tmp_path / "late.edges").names.tolist()


@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
def test_matrix_market_is_streamed_into_blocks(symmetry, tmp_path):
    scipy.io.mmwrite(tmp_path / "A.mtx", some_graph(), symmetry=symmetry)
    made = same_as_reader(tmp_path / "A.mtx", tmp_path / "blocks")
    assert made.blocks > 5


def test_dense_arrays_and_small_files_become_blocks(tmp_path):
    X = some_graph().toarray()
    np.save(tmp_path / "X.npy", X)
    made = same_as_reader(tmp_path / "X.npy", tmp_path / "dense", memory=60_000)
    assert made.blocks > 3
    sp.save_npz(tmp_path / "A.npz", some_graph())
    same_as_reader(tmp_path / "A.npz", tmp_path / "sparse", memory="1MB")
    np.savetxt(tmp_path / "X.csv", X, delimiter=",")
    same_as_reader(tmp_path / "X.csv", tmp_path / "table", memory="10MB")
    convert(tmp_path / "X.npy", tmp_path / "single", dtype=np.float32)
    assert Blocks(tmp_path / "single").dtype == np.float32


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.edges", "0 1 1\n1 0 2\n", "between 0 and 1 has two weights"),
        ("a.edges", "0 1 -1\n", "between 0 and 1 is negative"),
        ("a.edges", "0 1 1\n1 2\n", "line 2"),
        ("a.edges", "# nothing\n", "holds no edges"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "no mirror"),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 1 3\n",
            "between 0 and 1 is not symmetric",
        ),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n2 1 1\n",
            "given twice",
        ),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n", "is 2 x 3"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 2 1\n", "ends after"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left_behind(name, content, said, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        convert(tmp_path / name, tmp_path / "blocks")
    assert not (tmp_path / "blocks").exists()


def test_what_cannot_be_done_is_refused(tmp_path):
    sp.save_npz(tmp_path / "A.npz", some_graph())
    with pytest.raises(InputError, match="cannot be streamed within 1000"):
        convert(tmp_path / "A.npz", tmp_path / "a", memory=1000)
    convert(tmp_path / "A.npz", tmp_path / "a")
    with pytest.raises(InputError, match="already a folder of blocks"):
        convert(tmp_path / "a", tmp_path / "b")
    with pytest.raises(InputError, match="is not empty"):
        convert(tmp_path / "A.npz", tmp_path / "a")
    with pytest.raises(InputError, match="cannot be read"):
        convert(tmp_path / "none.npz", tmp_path / "c")


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


def test_from_the_shell_a_graph_becomes_blocks_and_these_a_factor(tmp_path):
    A = some_graph()
    edges = write_edges(tmp_path / "a.edges", A, {i: f"n{i}" for i in range(150)})
    made = run("convert", edges, tmp_path / "blocks", "--memory", "40KB", "--json", "-q")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["n"] == 150
    options = ["-r", 3, "--seed", 0, "--max-iter", 20, "--tol", 0, "--solver", "a-symhals", "-q"]
    blocks = run(
        "factorize", tmp_path / "blocks", "-o", tmp_path / "U.npz", "--memory", "1GB", *options
    )
    assert blocks.exit_code == 0, blocks.output
    assert run("factorize", edges, "-o", tmp_path / "V.npz", *options).exit_code == 0
    one, two = (symnmf.Result.load(tmp_path / f"{name}.npz").U for name in "UV")
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-11)


def test_a_memory_that_is_too_small_is_refused_with_the_arithmetic(tmp_path):
    np.save(tmp_path / "X.npy", some_graph().toarray())
    found = run(
        "factorize", tmp_path / "X.npy", "-r", 3, "-o", tmp_path / "U.npz", "--memory", "9MB"
    )
    assert found.exit_code == 2
    assert "is too little for X" in found.output


@pytest.mark.skipif(os.name != "posix", reason="the limit on file sizes is POSIX's")
@pytest.mark.parametrize("name", ["X.npy", "X.csv", "X.edges", "X.mtx"])
@pytest.mark.parametrize("made", [True, False])
def test_a_disk_that_fills_up_leaves_nothing_behind(name, made, tmp_path):
    """A limit on the size of files stands for the full disk: writing fails in the middle."""
    A = some_graph(120)
    if name == "X.npy":
        np.save(tmp_path / name, A.toarray())
    elif name == "X.csv":
        np.savetxt(tmp_path / name, A.toarray(), delimiter=",")
    elif name == "X.edges":
        write_edges(tmp_path / name, A)
    else:
        scipy.io.mmwrite(tmp_path / name, A)
    target = tmp_path / "blocks"
    if made:
        target.mkdir()
    code = (
        "import resource, sys, signal\n"
        "from symnmf.readers.converting import convert\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    convert(sys.argv[1], sys.argv[2], memory='50MB')\n"
        "except OSError as error:\n"
        "    print(error.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / name, target], capture_output=True, text=True
    )
    assert done.stdout == "File too large\n", done.stderr
    assert target.exists() == made
    assert not made or not list(target.iterdir())


@pytest.mark.parametrize("name", ["names.npy", "names.json"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "not a regular file"),
        (b"[" * 100_000, "cannot be read"),
        (b"PK\x03\x04" + bytes(100), "cannot be read"),
        (b'["a", "b"]', "cannot be read"),
        (b'{"a": 1}', "cannot be read"),
        ("wrong", "names for 150 rows"),
        (b"", "cannot be read"),
    ],
    ids=["pipe", "nested", "zip", "few", "no list", "wrong number", "empty"],
)
def test_names_that_are_no_names_are_refused_before_the_run(name, content, words, tmp_path):
    convert(write_edges(tmp_path / "A.edges", some_graph()), tmp_path / "blocks", memory="1MB")
    path = tmp_path / "blocks" / name
    path.unlink(missing_ok=True)
    if content is None:
        os.mkfifo(path)
    elif content == "wrong":
        names = np.arange(7)
        np.save(path, names) if name == "names.npy" else path.write_text('["a"]')
    else:
        path.write_bytes(content)
    out = tmp_path / "U.npz"
    ended = CliRunner().invoke(
        program, ["factorize", str(tmp_path / "blocks"), "-r", "2", "-o", str(out)]
    )
    assert ended.exit_code == 2
    assert words in " ".join(ended.stderr.split())
    assert not out.exists()

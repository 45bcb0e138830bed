"""Missing entries: from files, from paths, and what is said where they cannot be."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io

import symnmf
from conftest import synthetic_problem
from shell import command
from symnmf import io


@pytest.fixture
def X():
    """A matrix with a few pairs that were not observed."""
    X = synthetic_problem(24, 3, 0.1, 0)
    for i, j in ((0, 0), (0, 5), (7, 20), (11, 12)):
        X[i, j] = X[j, i] = np.nan
    return X


def write(X, path):
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    elif path.suffix == ".csv":
        np.savetxt(path, X, delimiter=",", fmt="%.17g")
    else:
        scipy.io.mmwrite(path, X, symmetry="general", precision=17)
    return path


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder and return the one line that it says on stderr."""
    monkeypatch.chdir(tmp_path)

    def run(line, expected=2):
        answer = command(line)
        assert answer.exit_code == expected, answer.stderr
        if not expected:
            return answer.stdout
        lines = answer.stderr.strip().splitlines()
        assert len(lines) == 1, answer.stderr
        return lines[0]

    return run


FORMATS = ["X.npy", "X.npz", "X.csv", "X.mtx"]


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_fits_a_file_with_nan_as_the_function_fits_the_array(run, X, tmp_path, name):
    write(X, tmp_path / name)
    run(f"factorize {name} -r 3 -o U.npz --missing nan --seed 0 -q", expected=0)
    found = symnmf.Result.load(tmp_path / "U.npz")
    wanted = symnmf.factorize(X, 3, missing="nan", random_state=0)
    np.testing.assert_allclose(found.U, wanted.U, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FORMATS)
def test_without_the_option_a_file_with_nan_is_refused_and_the_option_named(run, X, tmp_path, name):
    write(X, tmp_path / name)
    said = run(f"factorize {name} -r 3 -o U.npz")
    assert name in said
    assert "--missing nan" in said
    assert "missing='nan'" not in said
    with pytest.raises(symnmf.InputError, match="missing='nan'"):
        io.read(tmp_path / name)


@pytest.mark.parametrize("name", FORMATS)
def test_infinities_are_refused_even_where_nan_may_be(run, X, tmp_path, name):
    X[3, 4] = X[4, 3] = np.inf
    write(X, tmp_path / name)
    said = run(f"factorize {name} -r 3 -o U.npz --missing nan")
    assert "are NaN or infinite; correct them" in said


def test_cells_without_a_value_are_nan_where_nan_may_be(tmp_path):
    path = tmp_path / "X.csv"
    path.write_text(",a,b,c\na,1,,2\nb,NA,3,4\nc,2,4,?\n")  # as pandas and R write it
    read = io.read(path, missing="nan")
    nan = np.nan
    np.testing.assert_array_equal(read.data, [[1, nan, 2], [nan, 3, 4], [2, 4, nan]])
    assert read.names == ["a", "b", "c"]
    path.write_text("NA,1\n1,NA\n")  # no header
    np.testing.assert_array_equal(io.read(path, missing="nan").data, [[nan, 1], [1, nan]])
    path.write_text(",0,1\n0,1.5,\n1,,2.5\n")  # as pandas writes numbered rows and columns
    with pytest.raises(symnmf.InputError, match="may be a header or a row of data"):
        io.read(path, missing="nan")
    path.write_text("1,x\n2,3\n")
    with pytest.raises(symnmf.InputError, match="may be a header or a row of data"):
        io.read(path, missing="nan")


def test_an_ignored_diagonal_may_hold_anything():
    X = synthetic_problem(20, 3, 0.1, 0)
    wanted = symnmf.factorize(X, 3, ignore_diagonal=True, random_state=0)
    for strange in (np.nan, np.inf, -1.0):
        given = X.copy()
        np.fill_diagonal(given, strange)
        found = symnmf.factorize(given, 3, ignore_diagonal=True, random_state=0)
        np.testing.assert_array_equal(found.U, wanted.U)
        assert np.array_equal(given.diagonal(), np.full(20, strange), equal_nan=True)

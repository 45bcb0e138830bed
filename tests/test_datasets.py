"""Data sets against what is known of them, and against files that are missing or damaged."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf import datasets
from symnmf.errors import InputError

ENTRIES = {entry.name: entry for entry in datasets.available()}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "mnist_full"])
def test_data_are_what_the_catalogue_says(name, real_data):
    data, entry = datasets.load(name, real_data), ENTRIES[name]
    assert (data.name, data.kind, data.n_clusters) == (name, entry.kind, entry.n_clusters)
    assert data.data.shape[0] == entry.n == len(data.target)
    values = data.data.data if sp.issparse(data.data) else data.data
    assert values.min() >= 0
    assert values.max() <= 1 + 1e-12
    if data.kind == "graph":
        assert data.data.shape == (entry.n, entry.n)
        assert (data.data != data.data.T).nnz == 0
        assert (data.data.diagonal() == 0).all()
        assert len(data.node_names) == entry.n
    if data.kind == "images":
        assert data.data.shape[1] == np.prod(data.image_shape)


def test_a_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"needs the file ORL.npz, which is not in .*SYMNMF_DATA"):
        datasets.load("orl", folder=tmp_path)
    monkeypatch.setenv("SYMNMF_DATA", str(tmp_path))
    monkeypatch.setenv("SYMNMF_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=str(tmp_path)):
        datasets.load("coil20")
    present = {entry.name for entry in datasets.available() if entry.present}
    assert present == {"digits", "karate"}


def test_damaged_and_other_content_is_refused(tmp_path, real_data):
    path = tmp_path / "football.npz"
    shutil.copyfile(real_data / "football.npz", path)
    assert datasets.load("football", folder=tmp_path).n_clusters == 12
    content = path.read_bytes()
    path.write_bytes(content[:-50])
    with pytest.raises(InputError, match=r"football\.npz is damaged"):
        datasets.load("football", folder=tmp_path)
    with np.load(real_data / "football.npz") as stored:
        arrays = dict(stored)
    arrays["y"][0] += 1
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"is not the expected football\.npz"):
        datasets.load("football", folder=tmp_path)


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(InputError, match="'football'"):
        datasets.load("fotball")
    with pytest.raises(InputError, match="weighting"):
        datasets.load("newsgroups", weighting="tf")


@pytest.mark.parametrize(
    ("kind", "mean"), [("gaussian", np.sqrt(2 / np.pi)), ("uniform", 0.5), ("lognormal", np.e**0.5)]
)
def test_synthetic_noise_is_mirrored_and_keeps_its_distribution(kind, mean):
    X, U = datasets.synthetic(400, 5, 0.3, noise_kind=kind, random_state=0)
    np.testing.assert_array_equal(X, X.T)
    noise = (X - U @ U.T) / 0.3
    assert noise.min() > -1e-9
    for part in (np.diag(noise), noise[np.triu_indices(400, 1)]):
        assert part.mean() == pytest.approx(mean, abs=5 * part.std() / np.sqrt(part.size))


def test_synthetic_without_noise_is_exactly_of_its_rank():
    X, U = datasets.synthetic(50, 4, random_state=1)
    assert U.min() >= 0
    np.testing.assert_allclose(X, U @ U.T, atol=1e-12)
    assert np.linalg.matrix_rank(X) == 4
    again, _ = datasets.synthetic(50, 4, random_state=1)
    np.testing.assert_array_equal(X, again)


@pytest.mark.parametrize(
    "arguments", [{"n": 0}, {"rank": 2.5}, {"noise": -0.1}, {"noise_kind": "cauchy"}]
)
def test_synthetic_names_a_bad_argument(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        datasets.synthetic(**{"n": 10, "rank": 2, **arguments})

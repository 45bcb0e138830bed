"""Loaders against what is known of the data, and against files that are missing or damaged."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf import datasets
from symnmf.datasets import loading, sources
from symnmf.errors import InputError

ENTRIES = {entry.name: entry for entry in datasets.available()}
SMALL = [name for name in ENTRIES if name not in ("mnist_full", "com_dblp")]


def need(name):
    if not ENTRIES[name].present:
        pytest.skip(f"the {name} file is absent: set SYMNMF_DATA")


@pytest.mark.parametrize("name", SMALL)
def test_data_are_what_the_catalogue_says(name):
    need(name)
    data = datasets.load(name)
    entry = ENTRIES[name]
    assert (data.name, data.kind, data.n_clusters) == (name, entry.kind, entry.n_clusters)
    assert data.data.shape[0] == entry.n
    values = data.data.data if sp.issparse(data.data) else data.data
    assert values.min() >= 0
    assert values.max() <= 1 + 1e-12
    if data.target is not None:
        assert data.target.shape == (entry.n,)
        assert np.unique(data.target[data.target >= 0]).size == entry.n_clusters
    if data.kind == "graph":
        assert data.data.shape == (entry.n, entry.n)
        assert (data.data != data.data.T).nnz == 0
        assert (data.data.diagonal() == 0).all()
        assert len(data.node_names) == entry.n
    if data.kind == "images":
        assert data.data.shape[1] == np.prod(data.image_shape)


@pytest.mark.parametrize("name", ["orl", "coil20"])
def test_images_stored_by_columns_come_out_upright(name):
    need(name)
    data = datasets.load(name)
    path = sources.find(name, None)
    raw = np.load(path)["X"][5].reshape(data.image_shape, order="F")
    shown = data.data[5].reshape(data.image_shape)
    np.testing.assert_allclose(shown * {"orl": 255, "coil20": 4080}[name], raw, atol=1e-9)


def test_digits_are_upright():
    """A 1 has its ink in the middle columns; lying on its side it would not."""
    data = datasets.load_digits()
    one = data.data[data.target == 1].mean(axis=0).reshape(data.image_shape)
    assert one[:, 3:5].sum() > one[:, :2].sum() + one[:, 6:].sum()


def test_mnist_subsets_are_cut_from_the_full_set():
    need("mnist_full")
    path = sources.find("mnist_full", None)
    full = np.load(path)
    train = datasets.load_mnist(subset="train3147")
    np.testing.assert_array_equal(np.rint(train.data * 255), full["X_train"][:3147])
    test = datasets.load("mnist", subset="test3147")
    np.testing.assert_array_equal(test.target, full["y_test"][:3147])
    ordered = datasets.load_mnist(subset="test_sorted3147")
    np.testing.assert_array_equal(ordered.target, np.sort(full["y_test"], kind="stable")[:3147])
    assert np.unique(ordered.target).tolist() == [0, 1, 2]


def test_fetched_mnist_is_cut_like_the_files(monkeypatch):
    need("mnist_full")
    full = np.load(sources.find("mnist_full", None))
    X = np.concatenate([full["X_train"], full["X_test"]])
    y = np.concatenate([full["y_train"], full["y_test"]]).astype(str)

    class Fetched:
        data, target = X, y

    monkeypatch.setattr(loading.sklearn.datasets, "fetch_openml", lambda *a, **k: Fetched)
    for subset in ("train3147", "test3147", "test_sorted3147"):
        fetched, stored = (datasets.load_mnist(subset=subset, fetch=f) for f in (True, False))
        np.testing.assert_array_equal(fetched.data, stored.data)
        np.testing.assert_array_equal(fetched.target, stored.target)


def test_fetched_faces_do_not_pass_for_orl(monkeypatch):
    class Faces:
        data, target = np.zeros((400, 4096), dtype=np.float32), np.repeat(np.arange(40), 10)

    monkeypatch.setattr(loading.sklearn.datasets, "fetch_olivetti_faces", lambda: Faces)
    faces = datasets.load_orl(fetch=True)
    assert (faces.name, faces.image_shape, faces.n_clusters) == ("olivetti", (64, 64), 40)
    assert "not the paper's ORL" in faces.description


def test_tdt2_rows_have_unit_length():
    need("tdt2")
    data = datasets.load_tdt2().data
    assert isinstance(data, sp.csr_array)
    np.testing.assert_allclose(data.multiply(data).sum(axis=1), 1)


def test_karate_is_the_unweighted_graph_everybody_uses():
    data = datasets.load_karate()
    assert data.data.nnz == 2 * 78
    assert set(data.data.data) == {1.0}
    assert np.bincount(data.target).tolist() == [17, 17]
    assert data.target[0] != data.target[33]


def test_circles_of_facebook_may_overlap():
    need("ego_facebook")
    circles = datasets.load_ego_facebook().communities
    members = np.concatenate(circles)
    assert len(circles) == 193
    assert np.unique(members).size == 2884 < members.size


def test_communities_of_dblp():
    need("com_dblp")
    data = datasets.load_com_dblp()
    assert data.data.shape == (317080, 317080)
    assert data.data.nnz == 2 * 1049866
    assert len(data.communities) == data.n_clusters == 13477
    sizes = [c.size for c in data.communities]
    assert (min(sizes), max(sizes)) == (6, 7556)
    assert datasets.load_com_dblp(top5000=True).n_clusters == 5000


def test_a_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"needs the file ORL.npz, which is not in .*SYMNMF_DATA"):
        datasets.load_orl(folder=tmp_path)
    monkeypatch.setenv("SYMNMF_DATA", str(tmp_path))
    with pytest.raises(InputError, match=str(tmp_path)):
        datasets.load("coil20")
    present = {entry.name for entry in datasets.available() if entry.present}
    assert present == {"digits", "karate"}


def test_a_damaged_file_is_refused(tmp_path):
    need("football")
    path = tmp_path / "football.npz"
    shutil.copyfile(sources.find("football", None), path)
    assert datasets.load_football(folder=tmp_path).n_clusters == 12
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is not the expected football\.npz: its SHA-256 begins"):
        datasets.load_football(folder=tmp_path)


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(InputError, match="'football'"):
        datasets.load("fotball")
    with pytest.raises(InputError, match="subset 'trian' is unknown; choose one of train3147"):
        datasets.load_mnist(subset="trian")


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

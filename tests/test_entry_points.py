"""The entry points that cluster are faces of one pipeline, and answer alike.

Each test gives the same data, seed and settings to several of them. What may differ is how
arguments are spelt.
"""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from extras import optional
from shell import command
from symnmf import InputError, SymNMF, communities, storage
from symnmf.storage import LowRank

anndata = optional("anndata")
dask_array = optional("dask.array")
pd = optional("pandas")


def planted(groups=3, size=16, inside=0.55, across=0.06, seed=3, alone=2):
    """A weighted graph with groups of decreasing size, and nodes without edges."""
    rng = np.random.default_rng(seed)
    sizes = [size - 2 * group for group in range(groups)]
    labels = np.repeat(np.arange(groups), sizes)
    labels = rng.permutation(labels)
    n = len(labels)
    odds = np.where(labels[:, None] == labels, inside, across)
    A = np.zeros((n + alone, n + alone))
    A[:n, :n] = np.triu((rng.random((n, n)) < odds) * rng.uniform(0.5, 1.5, (n, n)), 1)
    return A + A.T


GRAPH = planted()


def by_estimator(A, k, *, normalize=True, **options):
    model = SymNMF(k, affinity="precomputed", normalize=normalize, **options).fit(A)
    return model.labels_, model.embedding_, model.quality_


def by_communities(A, k, **options):
    found = communities(A, k, **options)
    return found.labels, found._fitted.U, found.quality


def by_scanpy(A, k, **options):
    adata = anndata.AnnData(np.zeros((A.shape[0], 1)))
    adata.obsp["graph"] = sp.csr_matrix(A)
    symnmf.scanpy.cluster(adata, k, obsp="graph", **options)
    return adata.obs["symnmf"].astype(int).to_numpy(), adata.obsm["X_symnmf"], None


FLAGS = ("allow_negative", "ignore_diagonal", "overlapping")


def by_command(A, k, *, normalize=True, tmp_path, order=2, **options):
    """Run ``symnmf cluster``; options go by their names in the shell."""
    name = "graph.npy" if isinstance(A, np.ndarray) else "graph.npz"
    if name.endswith("npz"):
        sp.save_npz(tmp_path / name, sp.csr_matrix(A))
    else:
        np.save(tmp_path / name, A)
    told = ["cluster", str(tmp_path / name), "-k", str(k), "--affinity", "precomputed", "--json"]
    told += ["--normalize" if normalize else "--no-normalize"]
    told += ["--order", str(order)] if order == 3 else []
    names = {"random_state": "seed", "n_init": "starts"}
    for option, value in options.items():
        spelt = "--" + names.get(option, option).replace("_", "-")
        told += [spelt] if option in FLAGS else [spelt, str(value)]
    answer = command(*told)
    if answer.exit_code == 2:
        raise InputError(answer.stderr.removeprefix("symnmf: ").strip())
    for line in answer.stderr.splitlines():
        if line.startswith("symnmf: warning: "):
            warnings.warn(line.removeprefix("symnmf: warning: "), UserWarning, stacklevel=1)
    found = json.loads(answer.stdout)
    return np.array(found["table"]["cluster"]), None, None


FACES = {
    "SymNMF": by_estimator,
    "communities": by_communities,
    "scanpy": by_scanpy,
    "cluster": by_command,
}

#: Options of a Problem and of lambda, which SymNMF does not take.
NOT_OF_POINTS = {"ignore_diagonal", "ridge", "coupling", "allow_negative", "missing", "order"}


def faces_for(options):
    return [name for name in FACES if name != "SymNMF" or not NOT_OF_POINTS & set(options)]


SETTINGS = {
    "as they are": {},
    "not normalized": {"normalize": False},
    "a given offset": {"degree_offset": 0.5},
    "the largest component": {"components": "largest"},
    "without the diagonal": {"ignore_diagonal": True},
    "with terms": {"l1": 0.02, "ridge": 0.05},
    "random starts": {"init": "scaled-random", "n_init": 3},
    "another solver": {"solver": "symhals", "coupling": "adaptive", "tol": 1e-3},
    "few iterations": {"max_iter": 3, "init": "scaled-random", "n_init": 2},
}


@pytest.fixture
def faces(tmp_path):
    def call(name, A, k, **options):
        face = FACES[name]
        more = {"tmp_path": tmp_path} if face is by_command else {}
        return face(A, k, **options, **more)

    return call


def said(call):
    """Return the warnings of a call but for how arguments are spelt, and what it returns."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        answer = call()
    ours = [str(w.message) for w in seen if not issubclass(w.category, DeprecationWarning)]
    # how a run ended is said by the command in its summary
    return answer, [plainly(text) for text in ours if "did not converge" not in text]


def plainly(text):
    """Return a sentence without the spelling of its arguments."""
    text = re.sub(r"--components largest|components='largest'", "COMPONENTS", text)
    text = re.sub(r"--normalize|normalize=True", "NORMALIZE", text)
    return text.replace("--degree-offset", "degree_offset")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_labels_numbers_and_warnings_are_the_same(faces, settings, kind):
    options = {"random_state": 5, **SETTINGS[settings]}
    first, *others = faces_for(options)
    (labels, U, quality), warned = said(lambda: faces(first, kind(GRAPH), 3, **options))
    assert (labels[-2:] == -1).all()  # nodes without edges
    sizes = np.bincount(labels[labels >= 0])
    assert (np.diff(sizes) <= 0).all()
    assert (labels >= 0).sum() == len(labels) - 2
    for name in others:
        (same, factor, judged), told = said(
            lambda name=name: faces(name, kind(GRAPH), 3, **options)
        )
        np.testing.assert_array_equal(same, labels, err_msg=name)
        assert told == warned, name
        if factor is not None:
            np.testing.assert_allclose(factor, U, atol=1e-9, err_msg=name)
        if isinstance(judged, dict):
            assert judged["modularity"] == pytest.approx(quality.modularity, rel=1e-12)


def test_missing_entries_are_the_same(faces):
    A = GRAPH.copy()
    rng = np.random.default_rng(0)
    hidden = np.triu(rng.random(A.shape) < 0.1)
    A[hidden | hidden.T] = np.nan
    options = {"missing": "nan", "random_state": 0, "normalize": False}
    labels, U, _ = faces("communities", A, 3, **options)
    mask = ~np.isnan(A)
    filled = np.where(mask, A, 7.0)
    np.testing.assert_array_equal(faces("cluster", A, 3, **options)[0], labels)
    masked = communities(filled, 3, mask=mask, random_state=0, normalize=False)
    np.testing.assert_array_equal(masked.result.U, U)
    weighed = communities(filled, 3, weights=1.0 * mask, random_state=0, normalize=False)
    np.testing.assert_array_equal(weighed.result.U, U)
    problem = symnmf.Problem(filled, mask=mask)
    for again in (
        communities(problem, 3, random_state=0, normalize=False),
        SymNMF(3, affinity="precomputed", random_state=0).fit(problem),
    ):
        np.testing.assert_array_equal(
            getattr(again, "labels", getattr(again, "labels_", 0)), labels
        )
        quality = getattr(again, "quality", getattr(again, "quality_", None))
        assert quality.modularity == pytest.approx(masked.quality.modularity)
    with pytest.raises(InputError, match=r"l1 cannot be combined with a Problem"):
        SymNMF(3, affinity="precomputed", l1=1.0).fit(problem)
    by_name = communities(A, 3, missing="nan", random_state=0)  # degrees of what was observed
    assert by_name.degree_offset is not None
    np.testing.assert_array_equal(
        by_name.labels, communities(filled, 3, mask=mask, random_state=0).labels
    )


def test_a_number_that_is_looked_for_is_the_same(faces):
    options = {"random_state": 0}
    labels, U, _ = faces("SymNMF", GRAPH, "auto", **options)
    assert U.shape[1] == 3
    for name in ("communities", "cluster"):
        np.testing.assert_array_equal(faces(name, GRAPH, "auto", **options)[0], labels, name)
    assert faces("communities", GRAPH, "auto", order=3, **options)[1].shape[1] == 3
    for hiding in ({"mask": GRAPH >= 0}, {"missing": "nan"}):
        with pytest.raises(InputError, match="cannot be combined with n_clusters='auto'"):
            communities(GRAPH, "auto", **hiding)


# Asymmetry ------------------------------------------------------------------------------------


def lopsided(by):
    A = GRAPH.copy()
    i, j = np.unravel_index(A.argmax(), A.shape)
    A[i, j] += by * A.max()
    return A


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("by", [1e-12, 1e-9, 9e-7])
def test_a_little_asymmetry_passes_everywhere_and_the_mean_is_taken(faces, by, kind):
    A = lopsided(by)
    mean = (A + A.T) / 2 if by > 1e-10 else A
    options = {"normalize": False, "random_state": 0}
    expected = faces("SymNMF", kind(mean), 3, **options)[0]
    for name in FACES:
        np.testing.assert_array_equal(faces(name, kind(A), 3, **options)[0], expected, name)
    one, other = (symnmf.factorize(kind(X), 3, random_state=0).U for X in (A, mean))
    np.testing.assert_array_equal(one, other)


# Refusals -------------------------------------------------------------------------------------


def broken(kind):
    A = GRAPH.copy()
    if kind == "nan":
        A[0, 1] = A[1, 0] = np.nan
    elif kind == "negative":
        A[0, 1] = A[1, 0] = -1.0
    elif kind == "lopsided":
        A[0, 1] += 1.0
    return A


@pytest.mark.parametrize(
    ("kind", "k", "options"),
    [
        ("nan", 3, {}),
        ("negative", 3, {}),
        ("lopsided", 3, {}),
        ("whole", 45, {}),
        ("whole", 43, {}),
        ("whole", 0, {}),
        ("whole", 3, {"components": "big"}),
        ("whole", 3, {"degree_offset": -1.5}),
        ("whole", 3, {"solver": "hal"}),
        ("whole", 3, {"l1": -1.0}),
        ("whole", 3, {"init": "spectrl"}),
        ("whole", 3, {"missing": "nan", "degree_offset": -1.5}),
    ],
)
def test_refusals_name_the_same_fault(faces, kind, k, options):
    faults = {}
    for name in faces_for(options):
        if name == "cluster" and kind == "nan":  # the reader says where in the file it is
            continue
        with pytest.raises(InputError) as refused:
            faces(name, broken(kind), k, **options)
        fault = str(refused.value).removeprefix("Negative values in data: ").partition(";")[0]
        for spelt, plain in (
            (r"^(X|G|graph\.npy)(?= )", "DATA"),
            (r"(samples|nodes|rows) of (X|G|graph\.npy)", "ROWS"),
            (r"-k (?=\d)|n_clusters=", "K="),
            (r"-k |n_clusters ", "K "),
            (r"--degree-offset|degree_offset", "OFFSET"),
            (r"--components|components", "COMPONENTS"),
            (r"--(l1|solver|init)", r"\1"),
            (r" \(the nearest.*", ""),
            (r" or None", ""),
        ):
            fault = re.sub(spelt, plain, fault)
        faults[name] = fault
    assert len(set(faults.values())) == 1, faults


# Storages -------------------------------------------------------------------------------------


def low_rank():
    rng = np.random.default_rng(1)
    B = np.kron(np.eye(3), np.ones((14, 1))) + 0.1 * rng.random((42, 3))
    return np.hstack([B, 0.3 * rng.random((42, 3))])  # of more than three groups' rank


STORED = {
    "dense": lambda X, path: storage.as_symmetric(X),
    "csr": lambda X, path: storage.as_symmetric(sp.csr_array(X)),
    "Blocks": lambda X, path: storage.Blocks(X, memory=1e6),
    "path": lambda X, path: str(path),
    "LowRank": lambda X, path: LowRank(low_rank()),
    "Dask": lambda X, path: dask_array.from_array(X, chunks=20),
    "Problem": lambda X, path: symnmf.Problem(X),
    "frame": lambda X, path: pd.DataFrame(X),
}


@pytest.mark.parametrize("kind", STORED)
def test_every_storage_reaches_every_entry_point(tmp_path, kind):
    B = low_rank()
    X = B @ B.T
    np.save(tmp_path / "X.npy", X)
    data = STORED[kind](np.load(tmp_path / "X.npy", mmap_mode="r+"), tmp_path / "X.npy")
    run = {"random_state": 0, "init": "scaled-random", "n_init": 1, "tol": 0.0, "max_iter": 12}
    run["solver"] = "symhals"  # the same steps wherever X is
    options = {"normalize": False, **run}
    plain = communities(X, 3, **options)
    assert np.bincount(plain.labels).tolist() == [14, 14, 14]
    found = communities(data, 3, **options)
    np.testing.assert_allclose(found.result.U, plain.result.U, atol=1e-6)
    np.testing.assert_array_equal(found.labels, plain.labels)
    assert found.quality.modularity == pytest.approx(plain.quality.modularity, rel=1e-9)
    model = SymNMF(3, affinity="precomputed", **options).fit(data)
    np.testing.assert_allclose(model.embedding_, found.result.U, atol=1e-12)
    assert model.certificate_.certified == plain.certificate.certified
    np.testing.assert_array_equal(model.predict(X[:5] * 1.01), plain.labels[:5])
    best = symnmf.factorize(data, 3, **{**run, "n_init": 2})
    assert best.error == pytest.approx(plain.result.error, rel=0.05)


# Communities ----------------------------------------------------------------------------------

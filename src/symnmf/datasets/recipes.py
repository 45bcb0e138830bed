"""How the files of data sets are made from what their public sources hold."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp

from symnmf.datasets.loading import Array, Arrays
from symnmf.errors import imported


def _simple(pairs: Array) -> Array:
    """Edges u < v, each once, sorted, without loops."""
    pairs = np.sort(pairs, axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).astype(np.int32)


def from_gml(content: bytes) -> Arrays:
    """A graph whose nodes have the attribute ``gt``, their class."""
    graph = imported("networkx", "graphs", "this dataset").parse_gml(
        content.decode("utf-8").splitlines(), label="id"
    )
    ids = list(graph)
    place = {node: row for row, node in enumerate(ids)}
    pairs = np.array([(place[u], place[v]) for u, v in graph.edges()], dtype=np.int64)
    classes, y = np.unique([str(graph.nodes[node]["gt"]) for node in ids], return_inverse=True)
    names = [str(graph.nodes[node].get("name", graph.nodes[node].get("label"))) for node in ids]
    return {
        "edges": _simple(pairs),
        "n": np.array(len(ids)),
        "orig_id": np.array(ids, dtype=np.int32),
        "label_names": classes,
        "node_names": np.array(names),
        "y": y.astype(np.int8),
    }


def from_email(edges: bytes, departments: bytes) -> Arrays:
    """email-Eu-core: who wrote to whom, and the department of each."""
    directed = np.loadtxt(io.BytesIO(edges), dtype=np.int64)
    labels = np.loadtxt(io.BytesIO(departments), dtype=np.int64)
    n = len(labels)
    y = np.empty(n, dtype=np.int8)
    y[labels[:, 0]] = labels[:, 1]
    return {
        "edges": _simple(directed),
        "n": np.array(n),
        "orig_id": np.arange(n, dtype=np.int32),
        "directed_edges": directed.astype(np.int16),
        "y": y,
    }


def from_coil(content: bytes) -> Arrays:
    """COIL-20 as Deng Cai's 32 x 32 images: block means, kept as sums."""
    from scipy.io import loadmat

    stored = loadmat(io.BytesIO(content))
    return {
        "X": np.rint(stored["fea"] * 4080).astype(np.uint16),
        "scale_denominator": np.array(4080),
        "y": stored["gnd"].ravel().astype(np.uint8),
        "img_shape": np.array([32, 32]),
        "img_order": np.array("F"),
    }


def from_newsgroups(content: bytes) -> Arrays:
    """20 newsgroups as counts of words."""
    from scipy.io import loadmat

    stored = loadmat(io.BytesIO(content))
    counts = sp.csr_array(stored["A"])
    counts.sort_indices()
    return {
        "format": np.array(b"csr"),
        "data": counts.data.astype(np.uint16),
        "indices": counts.indices.astype(np.int32),
        "indptr": counts.indptr.astype(np.int32),
        "shape": np.array(counts.shape),
        "y": stored["gnd3"].ravel().astype(np.uint8),
        "y6": stored["gnd1"].ravel().astype(np.uint8),
        "y18": stored["gnd2"].ravel().astype(np.uint8),
        "vocab": np.array([str(np.asarray(word).ravel()[0]) for word in stored["vocab"].ravel()]),
    }


def from_orl(content: bytes) -> Arrays:
    """ORL faces from the zip file of the paper's code."""
    import zipfile

    from scipy.io import loadmat

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        stored = loadmat(io.BytesIO(archive.read("SNMFcode/ORL.mat")))
    X = stored["data"]
    return {
        "X": (X if X.shape[0] == 400 else X.T).astype(np.uint8),
        "y": stored["label"].ravel().astype(np.uint8),
        "img_shape": np.array([112, 92]),
        "img_order": np.array("F"),
    }


def from_openml(subset: str) -> Arrays:
    """MNIST as scikit-learn downloads it from OpenML: training images first, as they come."""
    import sklearn.datasets

    fetched = sklearn.datasets.fetch_openml("mnist_784", version=1, as_frame=False)
    X, y = fetched.data.astype(np.uint8), fetched.target.astype(np.uint8)
    if subset == "full":
        return {
            "X_train": X[:60000],
            "y_train": y[:60000],
            "X_test": X[60000:],
            "y_test": y[60000:],
        }
    more: Arrays = {}
    rows = np.arange(3147)
    if subset != "train3147":
        X, y = X[60000:], y[60000:]
    if subset == "test_sorted3147":
        rows = np.argsort(y, kind="stable")[:3147]
        more = {"orig_index": rows.astype(np.int16)}
    shape = {"img_shape": np.array([28, 28]), "img_order": np.array("C")}
    return {"X": X[rows], "y": y[rows], **more, **shape}


#: What is made of the files that sources.csv lists; of none where scikit-learn downloads the data.
RECIPES: dict[str, Callable[..., Arrays]] = {
    "football": from_gml,
    "polbooks": from_gml,
    "dolphins": from_gml,
    "email_eu_core": from_email,
    "coil20": from_coil,
    "newsgroups": from_newsgroups,
    "orl": from_orl,
    "mnist_train3147": partial(from_openml, "train3147"),
    "mnist_test3147": partial(from_openml, "test3147"),
    "mnist_test_sorted3147": partial(from_openml, "test_sorted3147"),
    "mnist_full": partial(from_openml, "full"),
}

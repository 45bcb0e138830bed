"""The data sets that everybody can have, and files of the same form."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer

from symnmf.archives import digest, read_arrays
from symnmf.arguments import checked
from symnmf.errors import InputError, imported
from symnmf.graphs import from_graph
from symnmf.naming import lookup

Array = NDArray[Any]
Arrays = dict[str, Array]
Folder = str | os.PathLike[str] | None
Kind = Literal["images", "text", "graph"]
Weighting = Literal["tfidf", "counts"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data with what is known of its clusters.

    Attributes
    ----------
    name : str
    data : ndarray or csr_array
        One image or document per row, or the symmetric adjacency matrix of a graph.
    target : ndarray of shape (n,), optional
        Known class of each row, -1 where it is not known; None where only overlapping
        communities are known.
    kind : {"images", "text", "graph"}
    image_shape : (height, width), optional
        ``data[i].reshape(image_shape)`` is upright.
    communities : tuple of integer arrays, optional
        Known communities, which may overlap and need not cover every node.
    node_names : tuple, optional
    description : str
    n_clusters : int
        Number of classes or communities: the rank to ask for.
    feature_names : ndarray of str, optional
        What the columns of ``data`` are called, such as the words of a text collection.
    """

    name: str
    data: Any
    target: Array | None
    kind: Kind
    image_shape: tuple[int, int] | None
    communities: tuple[Array, ...] | None
    node_names: tuple[Any, ...] | None
    description: str
    n_clusters: int
    feature_names: Array | None = None


class Stored(NamedTuple):
    """A data set that is kept in a file, and the digest of the arrays in it."""

    kind: Kind
    n: int
    n_clusters: int
    filename: str
    content: str
    description: str


class Entry(NamedTuple):
    """One line of :func:`symnmf.datasets.available`."""

    name: str
    kind: Kind
    n: int
    n_clusters: int
    present: bool


def table(name: str) -> list[list[str]]:
    """The rows of a table beside this file."""
    with files("symnmf.datasets").joinpath(name).open(encoding="utf-8") as lines:
        return list(csv.reader(lines))[1:]


STORED = {
    name: Stored(cast(Kind, kind), int(n), int(n_clusters), *others)
    for name, kind, n, n_clusters, *others in table("stored.csv")
}

#: What needs no file of ours.
BUNDLED: dict[str, tuple[Kind, int, int]] = {
    "digits": ("images", 1797, 10),
    "karate": ("graph", 34, 2),
}


@checked(name=("path",))
def load(
    name: str | os.PathLike[str], folder: Folder = None, *, weighting: Weighting = "tfidf"
) -> Dataset:
    """Return a data set by its name, or one in a file of the same form.

    Parameters
    ----------
    name : str or path
        A name that :func:`symnmf.datasets.available` lists (hyphens and capitals do not
        matter), or an npz file, by its path or by its name in one of the folders: images
        (``X``, ``y`` and perhaps ``img_shape``, ``img_order``), counts of words (``data``,
        ``indices``, ``indptr``, ``shape``, ``y``) or a graph (``edges``, ``n`` and ``y``, or
        communities as ``comm_members`` and ``comm_indptr``).
    folder : path, optional
        Where the file is; by default the module's places.
    weighting : {"tfidf", "counts"}
        Rows of documents: tf-idf with unit l2 norm, or the counts of words.
    """
    lookup(weighting, {"tfidf": True, "counts": True}, "weighting")
    key = os.fspath(name).lower().replace("-", "_")
    if key not in (*STORED, *BUNDLED) and (path := find(os.fspath(name), folder)) is not None:
        return _dataset(path.stem, read_arrays(path), f"the file {path.name}", weighting)
    known: dict[str, Any] = {**STORED, "digits": _digits, "karate": _karate}
    entry = lookup(key, known, "dataset")
    if not isinstance(entry, Stored):
        return entry()
    path = find(key, folder)
    if path is None:
        places = " or ".join(dict.fromkeys(map(str, folders(folder))))
        raise InputError(
            f"dataset {key!r} needs the file {entry.filename}, which is not in {places}; call "
            f"symnmf datasets fetch {key}, or set SYMNMF_DATA or pass folder= to where it is."
        )
    stored = read_arrays(path)
    if digest(stored) != entry.content:
        raise InputError(
            f"{path} is not the expected {entry.filename}: its arrays are others; replace "
            f"it with an undamaged copy."
        )
    return _dataset(key, stored, entry.description, weighting)


@checked()
def available(folder: Folder = None) -> list[Entry]:
    """Return every dataset with its kind, size, number of clusters and whether it is present."""
    entries = [
        Entry(name, *entry[:3], present=find(name, folder) is not None)
        for name, entry in STORED.items()
    ]
    return [*entries, *(Entry(name, *facts, present=True) for name, facts in BUNDLED.items())]


@checked(n=("count",), rank=("count",))
def synthetic(
    n: int,
    rank: int,
    noise: float = 0.0,
    *,
    noise_kind: str = "gaussian",
    random_state: int | np.random.Generator | None = None,
) -> tuple[Array, Array]:
    r"""The paper's random problem :math:`X = U^\star U^{\star T} + \sigma |N|`.

    Parameters
    ----------
    n, rank : int
        :math:`U^\star = |G|` is n x rank with G standard Gaussian.
    noise : float, default 0
        :math:`\sigma`.
    noise_kind : {"gaussian", "uniform", "lognormal"}
        Distribution of N's entries: N(0, 1), U(0, 1), or exp N(0, 1); the paper names these
        families without their parameters.  The upper triangle is drawn and mirrored, so that X
        is symmetric and every entry keeps the distribution.
    random_state : int or Generator, optional

    Returns
    -------
    X : ndarray of shape (n, n)
    U_true : ndarray of shape (n, rank)
    """
    if not (np.isfinite(noise) and noise >= 0):
        raise InputError(f"noise must be a nonnegative number, not {noise!r}.")
    rng = np.random.default_rng(random_state)
    draws: dict[str, Callable[..., Any]] = {
        "gaussian": rng.standard_normal,
        "uniform": rng.random,
        "lognormal": partial(rng.lognormal, 0.0, 1.0),
    }
    draw = lookup(noise_kind, draws, "noise_kind")
    U_true = np.abs(rng.standard_normal((n, rank)))
    X = U_true @ U_true.T
    X = (X + X.T) / 2  # BLAS need not round the two triangles alike
    if noise > 0:
        drawn = np.triu(np.abs(draw((n, n))))
        X += noise * (drawn + np.triu(drawn, 1).T)
    return X, U_true


# Files ---------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where fetched data sets are kept: ``$SYMNMF_CACHE``, else the user's folder for caches."""
    if os.environ.get("SYMNMF_CACHE"):
        return Path(os.environ["SYMNMF_CACHE"])
    root = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "symnmf"


def folders(folder: Folder) -> list[Path]:
    """Return where files are looked for."""
    if folder is not None:
        return [Path(folder)]
    if os.environ.get("SYMNMF_DATA"):
        return [Path(os.environ["SYMNMF_DATA"]), cache_folder()]
    beside = [Path.cwd().parent, Path(__file__).resolve().parents[3].parent]
    return [*(place / "shared" / "data" for place in beside), cache_folder()]


def find(name: str, folder: Folder = None) -> Path | None:
    """Return the file of a data set, or another npz file by its path or name; None if absent."""
    filename = STORED[name].filename if name in STORED else f"{name.removesuffix('.npz')}.npz"
    paths = (place / filename for place in (Path(), *folders(folder)))
    return next((path for path in paths if path.is_file()), None)


# From arrays to data sets ------------------------------------------------------------------------


def _dataset(name: str, stored: Arrays, description: str, weighting: str) -> Dataset:
    if "edges" in stored:
        return _graph(name, stored, description)
    if "indptr" in stored:
        counts = sp.csr_array(
            (stored["data"].astype(np.float64), stored["indices"], stored["indptr"]),
            shape=tuple(stored["shape"]),
        )
        counts.check_format(full_check=True)
        rows = counts
        if weighting == "tfidf":
            rows = sp.csr_array(TfidfTransformer(norm="l2").fit_transform(counts))
        y, words = stored["y"], stored.get("vocab")
        k = np.unique(y).size
        return Dataset(name, rows, y, "text", None, None, None, description, k, words)
    if "X_train" in stored:
        stored = {
            key: np.concatenate([stored[f"{key}_train"], stored[f"{key}_test"]]) for key in "Xy"
        }
    return _images(name, stored, description)


def _images(name: str, stored: Arrays, description: str) -> Dataset:
    X, y = stored["X"], stored["y"]
    height, width = stored.get("img_shape", np.array([28, 28])).tolist()
    if str(stored.get("img_order", "C")) == "F":  # column by column, as MATLAB stores images
        X = X.reshape(-1, width, height).transpose(0, 2, 1).reshape(X.shape)
    X = X / stored.get("scale_denominator", 255)
    k = np.unique(y).size
    return Dataset(name, X, y, "images", (height, width), None, None, description, k)


def _graph(name: str, stored: Arrays, description: str) -> Dataset:
    n, (low, high) = int(stored["n"]), stored["edges"].T
    ends = (np.concatenate([low, high]), np.concatenate([high, low]))
    A = sp.csr_array(sp.coo_array((np.ones(ends[0].size), ends), shape=(n, n)))
    held = [stored[key] for key in ("node_names", "orig_id") if key in stored]
    names = tuple(held[0].tolist() if held else range(n))
    if "comm_members" in stored:
        groups = tuple(np.split(stored["comm_members"], stored["comm_indptr"][1:-1]))
        return Dataset(name, A, None, "graph", None, groups, names, description, len(groups))
    y = stored["y"].astype(np.int64)
    k = np.unique(y[y >= 0]).size
    return Dataset(name, A, y, "graph", None, None, names, description, k)


def _digits() -> Dataset:
    digits = sklearn.datasets.load_digits()
    text = "1797 handwritten digits, 8 x 8, in [0, 1]; ships with scikit-learn."
    return Dataset(
        "digits", digits.data / 16, digits.target, "images", (8, 8), None, None, text, 10
    )


def _karate() -> Dataset:
    """Zachary's karate club; the classes are the clubs that members joined, 17 each.

    Copies that give the faction instead have 16 and 18, since one member sided with the officers
    but joined Mr. Hi.
    """
    networkx = imported("networkx", "graphs", "dataset 'karate'")
    graph = networkx.karate_club_graph()
    adjacency, names = from_graph(graph, weight=None)
    clubs = [graph.nodes[node]["club"] for node in names]
    target = np.unique(clubs, return_inverse=True)[1]
    text = "Friendships of 34 members of a karate club that split in two."
    return Dataset("karate", adjacency, target, "graph", None, None, tuple(names), text, 2)

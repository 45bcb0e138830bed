"""One loader per data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
from sklearn.feature_extraction.text import TfidfTransformer

from symnmf.arguments import checked
from symnmf.datasets.sources import FILES, Array, Folder, find, read
from symnmf.errors import InputError
from symnmf.graphs import from_graph
from symnmf.naming import lookup

Kind = Literal["images", "text", "graph"]


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


class Entry(NamedTuple):
    """One line of :func:`available`."""

    name: str
    kind: Kind
    n: int
    n_clusters: int
    present: bool


def load_orl(folder: Folder = None, *, fetch: bool = False) -> Dataset:
    """ORL (AT&T) faces: 400 images of 40 people, 112 x 92, scaled to [0, 1].

    The rows are in the order of the paper's code, where labels run 1..40, 1..40, and so on.
    The label numbers follow a folder listing, so they differ from other copies by a permutation,
    which no clustering score sees.

    ``fetch=True`` downloads scikit-learn's Olivetti faces instead.  These are the same people
    and photographs, but cropped and reduced to 64 x 64, so results differ from ORL's.
    """
    if fetch:
        faces = sklearn.datasets.fetch_olivetti_faces()
        text = "Olivetti faces, 64 x 64: cropped and reduced from ORL, and not the paper's ORL."
        return _images("olivetti", faces.data.astype(np.float64), faces.target, (64, 64), text)
    stored = read("orl", folder)
    text = "400 faces of 40 people, 112 x 92, grey levels / 255, in the paper's row order."
    return _images("orl", _upright(stored["X"], (112, 92)) / 255, stored["y"], (112, 92), text)


def load_coil20(folder: Folder = None) -> Dataset:
    """COIL-20: 20 objects from 72 angles, 32 x 32, scaled to [0, 1].

    The paper does not state the image size; 32 x 32 is the usual one.  The stored integers are
    sums of 4 x 4 blocks of grey levels, so dividing by 4080 = 16 * 255 gives block means.
    """
    stored = read("coil20", folder)
    text = "1440 images of 20 objects, 32 x 32 block means of the 128 x 128 originals, in [0, 1]."
    return _images("coil20", _upright(stored["X"], (32, 32)) / 4080, stored["y"], (32, 32), text)


def load_mnist(
    folder: Folder = None,
    *,
    subset: str = "train3147",
    fetch: bool = False,
) -> Dataset:
    """MNIST digits, 28 x 28, scaled to [0, 1].

    Parameters
    ----------
    folder : path, optional
    subset : {"train3147", "test3147", "test_sorted3147", "full"}
        The paper uses "the first 3147" images of the training and of the test set.
        3147 = 980 + 1135 + 1032 is exactly the number of test digits 0, 1 and 2, so its test
        file was very likely sorted by class: ``"test_sorted3147"`` has these 3 classes.  That is
        an inference, not the authors' word; ``"test3147"`` is the original order with 10
        classes.  The training subset cannot have been sorted, or it would be all zeros.
        ``"full"`` is the 60 000 training images followed by the 10 000 test ones (439 MB).
    fetch : bool, default False
        Download the images through scikit-learn (OpenML's ``mnist_784``, which has the original
        order, training images first) and cut the subset from them.
    """
    subsets = ["train3147", "test3147", "test_sorted3147", "full"]
    if subset not in subsets:
        raise InputError(f"subset {subset!r} is unknown; choose one of {', '.join(subsets)}.")
    name = f"mnist_{subset}"
    if fetch:
        X, y = _fetched_mnist(subset)
    elif subset == "full":
        stored = read(name, folder)
        X = np.concatenate([stored["X_train"], stored["X_test"]])
        y = np.concatenate([stored["y_train"], stored["y_test"]])
    else:
        stored = read(name, folder)
        X, y = stored["X"], stored["y"]
    text = f"{X.shape[0]} handwritten digits ({subset}), 28 x 28, grey levels / 255."
    return _images(name, X / 255, y, (28, 28), text)


def load_tdt2(folder: Folder = None) -> Dataset:
    """TDT2 news: the first 3147 documents, which are its two largest topics, as tf-idf rows.

    The paper does not state the term weighting.  Tf-idf with rows of unit l2 norm comes near
    its accuracies and raw counts do not, so that is what ``data`` holds (a csr_array).
    """
    stored = read("tdt2", folder)
    text = "3147 news documents of 2 topics over 36 771 terms, tf-idf with unit l2 rows."
    return Dataset("tdt2", _tfidf(_counts(stored)), stored["y"], "text", None, None, None, text, 2)


def load_newsgroups(folder: Folder = None, *, weighting: str = "tfidf") -> Dataset:
    """20 newsgroups: 18 221 messages over 36 568 words, whose names come along.

    ``weighting="tfidf"`` gives tf-idf rows of unit l2 norm, ``"counts"`` the raw word counts.
    """
    known: dict[str, Callable[[sp.csr_array], sp.csr_array]] = {
        "tfidf": _tfidf,
        "counts": sp.csr_array,
    }
    weigh = lookup(weighting, known, "weighting")
    stored = read("newsgroups", folder)
    text = f"18 221 messages to 20 newsgroups over 36 568 words, {weighting}."
    name, words = "newsgroups", stored["vocab"]
    rows = weigh(_counts(stored))
    return Dataset(name, rows, stored["y"], "text", None, None, None, text, 20, words)


def load_digits() -> Dataset:
    """scikit-learn's handwritten digits: 1797 images, 8 x 8, scaled to [0, 1]; needs no file."""
    digits = sklearn.datasets.load_digits()
    text = "1797 handwritten digits, 8 x 8, in [0, 1]; ships with scikit-learn."
    return _images("digits", digits.data / 16, digits.target, (8, 8), text)


def load_karate() -> Dataset:
    """Zachary's karate club: 34 members, 78 unweighted ties; ships with networkx.

    The classes are the clubs the members joined after the split, 17 each.  Copies that give the
    faction instead have 16 and 18, since one member sided with the officers but joined Mr. Hi.
    """
    try:
        import networkx
    except ImportError:
        raise InputError("load_karate needs networkx: pip install 'symnmf[graphs]'.") from None
    graph = networkx.karate_club_graph()
    adjacency, names = from_graph(graph, weight=None)
    clubs = [graph.nodes[node]["club"] for node in names]
    target = np.unique(clubs, return_inverse=True)[1]
    text = "Friendships of 34 members of a karate club that split in two."
    return Dataset("karate", adjacency, target, "graph", None, None, tuple(names), text, 2)


def load_email_eu_core(folder: Folder = None) -> Dataset:
    """E-mail between 1005 members of a European research institute; 42 departments.

    An edge joins two people if either wrote to the other; directions are dropped.
    """
    return _labelled_graph("email_eu_core", folder, "Who e-mailed whom among 1005 people.")


def load_football(folder: Folder = None) -> Dataset:
    """American college football, autumn 2000: 115 teams, 613 games, 12 conferences."""
    return _labelled_graph("football", folder, "Games between 115 college football teams.")


def load_polbooks(folder: Folder = None) -> Dataset:
    """Books on US politics often bought together: 105 books, 3 political leanings."""
    return _labelled_graph("polbooks", folder, "105 books on US politics bought together.")


def load_cora(folder: Folder = None) -> Dataset:
    """Cora citations (Planetoid's copy): 2708 papers of 7 subjects; the graph without features."""
    return _labelled_graph("cora", folder, "Citations between 2708 machine-learning papers.")


def load_citeseer(folder: Folder = None) -> Dataset:
    """CiteSeer citations (Planetoid's copy): 3327 papers of 6 subjects, 15 of none (-1)."""
    return _labelled_graph("citeseer", folder, "Citations between 3327 computer-science papers.")


def load_dolphins(folder: Folder = None) -> Dataset:
    """Frequent companions among 62 bottlenose dolphins, which split into two groups."""
    return _labelled_graph("dolphins", folder, "Companions among 62 dolphins.")


def load_ego_facebook(folder: Folder = None) -> Dataset:
    """Facebook friendships of 10 people's networks: 4039 nodes, 193 overlapping circles.

    The circles are the owners' own lists; they cover 2884 nodes.
    """
    text = "Friendships of 4039 Facebook users; 193 overlapping circles cover 2884 of them."
    return _community_graph("ego_facebook", folder, "comm", text)


def load_ego_circles(folder: Folder = None, *, ego: str = "414") -> Dataset:
    """The friends of one Facebook user, without the user; the circles they were put in overlap.

    ``ego`` is "348" (227 nodes, 14 circles), "414" (159, 7) or "686" (170, 14). Some nodes are in
    no circle.
    """
    lookup(str(ego), dict.fromkeys(("348", "414", "686")), "ego")
    text = f"Friendships among the friends of Facebook user {ego}, with overlapping circles."
    return _community_graph(f"ego_circles_{ego}", folder, "comm", text)


def load_com_dblp(folder: Folder = None, *, top5000: bool = False) -> Dataset:
    """DBLP co-authorship: 317 080 authors, 13 477 overlapping communities (publication venues).

    ``top5000=True`` gives SNAP's 5000 communities of best quality instead.
    """
    text = "Co-authorship of 317 080 computer scientists; the communities are venues."
    return _community_graph("com_dblp", folder, "top5000" if top5000 else "comm", text)


@checked()
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
    for name, value in (("n", n), ("rank", rank)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must be an integer of at least 1, not {value!r}.")
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


class _Known(NamedTuple):
    kind: Kind
    n: int
    n_clusters: int
    load: Callable[..., Dataset]


_CATALOGUE = {
    "orl": _Known("images", 400, 40, load_orl),
    "coil20": _Known("images", 1440, 20, load_coil20),
    "mnist_train3147": _Known("images", 3147, 10, partial(load_mnist, subset="train3147")),
    "mnist_test3147": _Known("images", 3147, 10, partial(load_mnist, subset="test3147")),
    "mnist_test_sorted3147": _Known(
        "images", 3147, 3, partial(load_mnist, subset="test_sorted3147")
    ),
    "mnist_full": _Known("images", 70000, 10, partial(load_mnist, subset="full")),
    "tdt2": _Known("text", 3147, 2, load_tdt2),
    "newsgroups": _Known("text", 18221, 20, load_newsgroups),
    "digits": _Known("images", 1797, 10, load_digits),
    "karate": _Known("graph", 34, 2, load_karate),
    "email_eu_core": _Known("graph", 1005, 42, load_email_eu_core),
    "football": _Known("graph", 115, 12, load_football),
    "polbooks": _Known("graph", 105, 3, load_polbooks),
    "dolphins": _Known("graph", 62, 2, load_dolphins),
    "cora": _Known("graph", 2708, 7, load_cora),
    "citeseer": _Known("graph", 3327, 6, load_citeseer),
    "ego_facebook": _Known("graph", 4039, 193, load_ego_facebook),
    "ego_circles_348": _Known("graph", 227, 14, partial(load_ego_circles, ego="348")),
    "ego_circles_414": _Known("graph", 159, 7, partial(load_ego_circles, ego="414")),
    "ego_circles_686": _Known("graph", 170, 14, partial(load_ego_circles, ego="686")),
    "com_dblp": _Known("graph", 317080, 13477, load_com_dblp),
}


@checked(name=("text",))
def load(name: str, folder: Folder = None, **options: Any) -> Dataset:
    """The dataset called ``name`` (hyphens and capitals do not matter).

    Parameters
    ----------
    name : str
        A name :func:`available` lists, or ``"mnist"`` with a ``subset`` option.
    folder : path, optional
        Where the files are; see the module's text for the default.
    **options
        Further arguments of the dataset's own ``load_`` function.
    """
    key = name.lower().replace("-", "_")
    if key == "mnist":
        return load_mnist(folder, **options)
    known = lookup(key, _CATALOGUE, "dataset")
    return known.load(folder, **options) if key in FILES else known.load(**options)


@checked()
def available(folder: Folder = None) -> list[Entry]:
    """Every dataset with its kind, size, number of clusters and whether its file is present."""
    return [
        Entry(name, *known[:3], present=name not in FILES or find(name, folder) is not None)
        for name, known in _CATALOGUE.items()
    ]


# Shared by the loaders -------------------------------------------------------------------------


def _fetched_mnist(subset: str) -> tuple[Array, Array]:
    fetched = sklearn.datasets.fetch_openml("mnist_784", version=1, as_frame=False)
    X, y = fetched.data, fetched.target.astype(np.int64)
    if subset == "train3147":
        return X[:3147], y[:3147]
    if subset == "full":
        return X, y
    X, y = X[60000:], y[60000:]
    order = np.argsort(y, kind="stable") if subset == "test_sorted3147" else np.arange(y.size)
    return X[order[:3147]], y[order[:3147]]


def _upright(X: Array, shape: tuple[int, int]) -> Array:
    """Images stored column by column, as MATLAB does, turned into rows of upright images."""
    height, width = shape
    return X.reshape(-1, width, height).transpose(0, 2, 1).reshape(X.shape)


def _images(name: str, X: Array, y: Array, shape: tuple[int, int], text: str) -> Dataset:
    return Dataset(name, X, y, "images", shape, None, None, text, np.unique(y).size)


def _counts(stored: dict[str, Array]) -> sp.csr_array:
    parts = (stored["data"].astype(np.float64), stored["indices"], stored["indptr"])
    return sp.csr_array(parts, shape=tuple(stored["shape"]))


def _tfidf(counts: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(TfidfTransformer(norm="l2").fit_transform(counts))


def _adjacency(stored: dict[str, Array]) -> sp.csr_array:
    n, (low, high) = int(stored["n"]), stored["edges"].T
    ends = (np.concatenate([low, high]), np.concatenate([high, low]))
    return sp.csr_array(sp.coo_array((np.ones(ends[0].size), ends), shape=(n, n)))


def _names(stored: dict[str, Array]) -> tuple[Any, ...]:
    known = [stored[key] for key in ("node_names", "orig_id") if key in stored]
    return tuple(known[0].tolist() if known else range(int(stored["n"])))


def _labelled_graph(name: str, folder: Folder, text: str) -> Dataset:
    stored = read(name, folder)
    y = stored["y"].astype(np.int64)
    classes = np.unique(y[y >= 0]).size
    graph = _adjacency(stored)
    return Dataset(name, graph, y, "graph", None, None, _names(stored), text, classes)


def _community_graph(name: str, folder: Folder, which: str, text: str) -> Dataset:
    stored = read(name, folder)
    groups = tuple(np.split(stored[f"{which}_members"], stored[f"{which}_indptr"][1:-1]))
    graph = _adjacency(stored)
    return Dataset(name, graph, None, "graph", None, groups, _names(stored), text, len(groups))

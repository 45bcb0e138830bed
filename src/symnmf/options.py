"""Every option of the entry points, declared once.

From here come the checks of values and their sentences, the parameters in docstrings, the defaults
and the options of the command. An option means the same, and has the same default, wherever it is
taken.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

import numpy as np

from symnmf.kinds import (
    COUPLING,
    DEVICE,
    FLAG,
    FUNCTION,
    JOBS,
    MAPPING,
    MATRIX,
    NONE,
    PATH,
    RESULT,
    SEED,
    SEQUENCE,
    SOLVER,
    TABLE,
    TEXT,
    Kind,
    Kinds,
    choice,
    number,
    whole,
)

T = TypeVar("T", bound=Callable[..., Any])

AUTO = "auto"
REQUIRED = object()


@dataclass(frozen=True)
class Option:
    """One option: its name, kinds of values, default and meaning, and its name in the shell."""

    name: str
    kinds: Kinds
    default: Any
    text: str
    shell: str

    @property
    def entry(self) -> str:
        """The option as an entry of a docstring's parameters."""
        types = " or ".join(dict.fromkeys(kind.type for kind in self.kinds))
        default = "" if self.default is REQUIRED else f", default {self.default!r}"
        return f"{self.name} : {types}{default}\n    {self.text}"


ORDER = Kind(
    "2 (edges) or 3 (triangles)", "{2, 3}", lambda value: whole(2).holds(value) and value < 4
)

OPTIONS: dict[str, Option] = {}


def _option(name: str, *kinds: Kind, text: str, default: Any = None, shell: str = "") -> None:
    shell = shell or "--" + name.replace("_", "-")
    OPTIONS[name] = Option(name, kinds, default, " ".join(text.split()), shell)


# fmt: off
# What is factorized and what is minimised ---------------------------------------------------------

_option("mask", TABLE, NONE, text="""
    True for observed entries of X; all others are left out of the fit.""")
_option("weights", TABLE, NONE, text="""
    The weight of each entry of X in the fit, symmetric and at least 0. They are divided by the
    largest, so only their ratios count, beside l1, ridge and links too.""")
_option("missing", choice("nan", "unstored"), NONE, text="""
    "nan": NaN entries of a dense X were not observed. "unstored": entries that a sparse X does not
    store were not observed; by default they are zeros, which are data.""")
_option("ignore_diagonal", FLAG, default=False, text="""
    Leave the diagonal of X out of the fit.""")
_option("allow_negative", FLAG, default=False, text="""
    Accept negative entries of X: a negative edge keeps its two nodes apart.""")
_option("l1", number(0, np.inf), default=0.0, text="""
    Weight of the sum of all entries of U; a larger weight makes U sparser.""")
_option("ridge", number(0, np.inf), default=0.0, text="""
    Weight of half the sum of squares of U, which keeps U small.""")
_option("links", MATRIX, NONE, text="""
    Pairs of rows to pull together (positive entries) or to push apart (negative ones).""")
_option("loss", choice("frobenius", "poisson", "bernoulli"), default="frobenius", text="""
    The squared misfit, or the negative log-likelihood of counts ("poisson") or edges
    ("bernoulli"), where degrees are part of the model.""")
_option("attributes", TABLE, MATRIX, NONE, text="""
    A table with a row for each row of X, such as words of documents, which is explained along with
    X.""")
_option("attribute_weight", choice(AUTO), number(0, np.inf, above=True), default=AUTO, text="""
    How much attributes count beside X; with 1 both count the same. "auto" chooses, for clusters,
    what predicts held-out entries of both best, and is 1 otherwise.""")
_option("layer_weights", choice(AUTO), SEQUENCE, NONE, default=AUTO, text="""
    How much each of several layers counts; None for equal weights. "auto" chooses, for clusters,
    what predicts held-out edges best, and is the same as None otherwise.""")

# Tables in files ----------------------------------------------------------------------------------

_option("columns", TEXT, SEQUENCE, NONE, text="""
    The columns of a table to read, as in "a,b": names of the header, or numbers from 1. For edges:
    the two ends, and maybe the weights.""")
_option("name_column", TEXT, whole(1), NONE, text="""
    The column of a table that names its rows, by name or number. By default a first column without
    a name in the header, as pandas writes it; no other is taken for names.""")
_option("header", FLAG, NONE, text="""
    Whether the first line of a .csv or .tsv table is a header; by default a line of words is one,
    a line of numbers is none, and any other is refused.""")
_option("decimal", choice(".", ","), default=".", text="""
    The decimal separator in a .csv or .tsv table.""")

# From data to a graph -----------------------------------------------------------------------------

_option("affinity", TEXT, FUNCTION, default="self-tuning", text="""
    "self-tuning", "nearest_neighbors", "rbf" and "cosine" build a sparse graph of the rows of X;
    "precomputed" takes X as similarities and "precomputed_nearest_neighbors" as distances; any
    other kernel of :mod:`sklearn.metrics.pairwise` gives a dense graph. A callable gets X, or two
    rows of it, and returns similarities.""")
_option("n_neighbors", whole(1), choice("all"), NONE, shell="--neighbors", text="""
    Neighbours per sample; None for the default of the affinity, mostly floor(log2 n) + 1.""")
_option("gamma", number(), NONE, text="""
    The coefficient of a kernel; None for its default.""")
_option("degree", number(), default=3, text="""
    The degree of the kernel "polynomial".""")
_option("coef0", number(), default=1, text="""
    The constant of the kernels "polynomial" and "sigmoid".""")
_option("kernel_params", MAPPING, NONE, text="""
    Further arguments of a kernel or a callable affinity.""")
_option("weight", TEXT, NONE, default="weight", text="""
    The edge attribute, or the column of a table, that holds weights. Edges without it have the
    weight 1; with None, all edges do.""")
_option("normalize", FLAG, choice(AUTO), default=AUTO, text="""
    Whether similarities are divided by the roots of their degrees, so that hubs do not dominate.
    "auto" does so unless a sparse matrix has been divided by them already.""")
_option("degree_offset", number(0, np.inf), NONE, text="""
    Added to the degrees first, in mean degrees, so that small components and tails do not become
    the clusters. None adds the mean degree where one cluster would hold almost everything.""")
_option("components", choice("all", "largest"), default="all", text="""
    "largest" clusters only the largest component; the other rows are in no cluster.""")
_option("negative_weight", choice(AUTO), number(0, np.inf), default=AUTO, text="""
    How much negative edges count in a normalised graph, from 0 to as much as positive ones, 1;
    "auto" chooses.""")
_option("attribute_scaling", choice(AUTO, "tfidf", "columns", "none"), default=AUTO, text="""
    How attributes are scaled first, see :func:`symnmf.graphs.scale_attributes`.""")

# From a graph to clusters -------------------------------------------------------------------------

_option("n_clusters", whole(1), choice(AUTO), default=8, shell="-k", text="""
    The number of clusters; "auto" chooses it, and ``rank_selection`` says how.""")
_option("order", ORDER, default=2, text="""
    2 clusters by edges, 3 by triangles (docs/howto/hypergraphs.md).""")
_option("overlapping", FLAG, default=False, text="""
    Whether a node may belong to several communities.""")
_option("threshold", choice("background"), number(0, 1), default="background", text="""
    Where communities overlap: "background" takes nodes whose strength is above what the density
    explains (docs/howto/overlap.md), a number those with a larger share of their row of U.""")
_option("row_sparse", FLAG, NONE, text="""
    Whether a row of U holds at most 16 entries, fitted with the Poisson loss, for tens of thousands
    of communities; None decides by the size, with a warning.""")
_option("assign_labels", choice("likelihood", "largest"), default="likelihood", text="""
    "largest" takes the largest entry in each row of U; "likelihood" starts from there and moves
    samples to where their similarities are most likely.""")

# The run ------------------------------------------------------------------------------------------

_option("rank", whole(1), choice(AUTO), default=REQUIRED, shell="-r", text="""
    The number of columns of U, from 1 to the number of rows of X. "auto", in factorize, chooses it
    for a dense X by entries that are held out.""")
_option("solver", TEXT, SOLVER, default=AUTO, text="""
    A name from ``symnmf.solvers.available()`` or an object; the methods of the paper are "symanls",
    "symhals" and "a-symhals".""")
_option("coupling", TEXT, number(), COUPLING, NONE, text="""
    lambda for methods that split U into U and V: "rising", "adaptive" (the paper's), "shrinking",
    "theory", "theory-paper", "geometric", "kuang-fixed", a number (fixed) or an object; None for
    the default of the solver.""")
_option("init", TEXT, FUNCTION, TABLE, RESULT, default=AUTO, text="""
    The start: "spectral" (leading eigenvectors, rotated), "sketch" (a run on a sketch of X),
    "scaled-random", "random" (the paper's), "neighborhoods", U_0 itself, a Result or a function of
    X, rank and random_state. "auto" chooses by X and the method.""")
_option("n_init", whole(1), default=1, shell="--starts", text="""
    The largest number of starts; the best is kept. From eigenvectors, further starts are left out
    where the first reaches 97% of the best possible fit.""")
_option("n_runs", whole(2), default=50, shell="--runs", text="""
    The number of runs, each from a random start of its own.""")
_option("tol", number(0, np.inf), default=1e-4, text="""
    The run has converged when the stationarity is at most this; 0 runs to the limits.""")
_option("max_iter", whole(0), default=1000, text="""
    The largest number of iterations of each start.""")
_option("max_time", number(0), NONE, text="""
    The largest number of seconds from the call to its return.""")
_option("record_every", whole(1), default=1, text="""
    Evaluate, record and check for convergence only in every so many iterations.""")
_option("random_state", SEED, NONE, shell="--seed", text="""
    The seed. The same seed, settings and machine give the same result, bit for bit.""")
_option("n_jobs", JOBS, NONE, shell="--jobs", text="""
    The number of threads; None for all cores.""")
_option("device", DEVICE, NONE, text="""
    "cuda" for a GPU (needs torch), "cpu", or None for the device of X.""")
_option("callback", FUNCTION, NONE, text="""
    Called with a :class:`~symnmf.run.result.Snapshot` for every recorded iteration of every start,
    possibly from another thread; a true return value ends the call with the best U so far.""")
_option("progress", FLAG, default=False, text="""
    Show a progress bar (needs the extra ``progress``).""")
_option("verbose", whole(0), FLAG, default=0, text="""
    Print the error every 100 iterations (1), every 10 (2) or always (3).""")
_option("checkpoint", PATH, NONE, text="""
    Save the run to this .npz file (and one more per start) every minute. The same call resumes it;
    limits may change, other data or settings are refused.""")

# fmt: on


# The same for the type checker --------------------------------------------------------------------


class ProblemOptions(TypedDict, total=False):
    """Which entries of X count and what is minimised: what :class:`symnmf.Problem` takes."""

    mask: Any
    weights: Any
    missing: str | None
    ignore_diagonal: bool
    allow_negative: bool
    l1: float
    ridge: float
    links: Any
    loss: str
    attributes: Any
    attribute_weight: float | str
    layer_weights: Any


class RunOptions(TypedDict, total=False):
    """How a run is done: what every function that factorizes takes."""

    solver: Any
    coupling: Any
    init: Any
    tol: float
    max_iter: int
    max_time: float | None
    record_every: int
    random_state: int | np.random.Generator | np.random.RandomState | None
    n_jobs: int | None
    device: Any


class SearchOptions(RunOptions, total=False):
    """How a search over several starts is done."""

    n_init: int
    callback: Callable[[Any], Any] | None
    progress: bool
    checkpoint: str | os.PathLike[str] | None


class ClusterOptions(SearchOptions, ProblemOptions, total=False):
    """What all functions that cluster a graph take."""

    normalize: bool | str
    degree_offset: float | None
    components: str
    assign_labels: str


class CommunityOptions(ClusterOptions, total=False):
    """What :func:`symnmf.communities` takes besides the graph and the number of communities."""

    order: int
    overlapping: bool
    threshold: float | str
    weight: str | None
    negative_weight: float | str
    row_sparse: bool | None
    attribute_scaling: str


def names_in(options: type) -> tuple[str, ...]:
    """Return the names of the options in a ``TypedDict``, in their order."""
    return tuple(options.__annotations__)


def defaults(names: Iterable[str]) -> dict[str, Any]:
    """Return the defaults of options by their names."""
    return {name: OPTIONS[name].default for name in names}


def changed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not at their defaults."""

    def is_default(name: str, value: Any) -> bool:
        default = OPTIONS[name].default
        return value is default or (np.isscalar(value) and bool(value == default))

    return {name: value for name, value in options.items() if not is_default(name, value)}


# In docstrings and in the shell -------------------------------------------------------------------

_LISTED = re.compile(r"^( *)\{([a-z0-9_, \n]+)\}$", re.MULTILINE)


def documented(function: T) -> T:
    """Put the options that a docstring names as ``{tol, max_iter}`` in their place."""
    parameters = inspect.signature(function).parameters
    needed = {name for name, p in parameters.items() if p.default is p.empty}

    def entries(match: re.Match[str]) -> str:
        names = match[2].replace("\n", " ").split(",")
        options = [OPTIONS[name.strip()] for name in names]
        text = "\n".join(
            (replace(option, default=REQUIRED) if option.name in needed else option).entry
            for option in options
        )
        return "\n".join(match[1] + line for line in text.split("\n"))

    if function.__doc__:
        function.__doc__ = _LISTED.sub(entries, function.__doc__)
    return function


def in_shell(sentence: str) -> str:
    """Return a sentence about options as the command line spells them."""
    for name, option in OPTIONS.items():
        plain = "_" not in name  # an English word too, so only where a value follows, or first
        sentence = re.sub(rf"\b{name}=True\b", option.shell, sentence)
        sentence = re.sub(rf"\b{name}=False\b", f"--no-{option.shell[2:]}", sentence)
        sentence = re.sub(rf"\b{name}=(['\"]?)([^\s'\";)]+)\1", rf"{option.shell} \2", sentence)
        sentence = re.sub(rf"^{name}\b" if plain else rf"\b{name}\b", option.shell, sentence)
    return sentence

"""``SymNMF``: symmetric NMF as a scikit-learn clusterer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from symnmf import errors, graphs
from symnmf.bars import bar, together
from symnmf.coupling import Coupling
from symnmf.errors import InputError
from symnmf.graphs.adjacency import check_order, refuse_foreign
from symnmf.graphs.components import restrict
from symnmf.graphs.constraints import known_classes, numbered_by_class
from symnmf.placing import Places, top_features
from symnmf.quality import Quality, assess, warn_of
from symnmf.run.certificate import Certificate
from symnmf.run.loop import Callback, Snapshot, warn_unless_converged
from symnmf.run.multistart import DEFAULT_INIT, DEFAULT_STARTS, SPECTRAL, Plan
from symnmf.run.problem import Problem
from symnmf.run.result import Result, cluster_labels
from symnmf.run.settings import Settings
from symnmf.run.spectral import SpectralStarts
from symnmf.run.start import RandomState
from symnmf.selection import select_rank
from symnmf.solvers import Solver
from symnmf.storage import SymmetricMatrix
from symnmf.storage.border import check_missing
from symnmf.storage.indices import check_indices

PRECOMPUTED = "precomputed"


class SymNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""Cluster points or a graph by symmetric nonnegative matrix factorization.

    A similarity matrix A of the samples is built (or given) and factorized,

    .. math:: \min_{U \ge 0} \tfrac12 \|A - U U^T\|_F^2,

    and a sample belongs to the cluster whose column of U is largest in its row. The class takes
    the place of :class:`sklearn.cluster.SpectralClustering`: ``n_clusters``, ``affinity``,
    ``n_neighbors``, ``n_init``, ``random_state``, ``n_jobs`` and ``verbose`` mean the same. See
    the notes for the rest.

    Parameters
    ----------
    n_clusters : int or "auto", default 8
        Clusters, and columns of U. "auto" asks :func:`symnmf.select_rank` for a number from 2 to
        20, see ``rank_selection_``; where none is clear the criterion that has one is followed,
        or everything is one cluster, with a warning.
    affinity : str or callable, default "self-tuning"
        "self-tuning", "nearest_neighbors", "rbf" and "cosine" build a sparse normalised graph of
        the rows of X, see :mod:`symnmf.graphs`; "precomputed" takes X itself as A, unchanged; a
        callable gets X (and ``n_neighbors`` where given) and returns A.
    n_neighbors : int or None
        Neighbours kept per sample; None for the kind's own rule, floor(log2 n) + 1 for most.
    missing : "nan", "unstored" or None
        Which entries of a precomputed affinity were not observed, as in
        :func:`symnmf.factorize`.
    must_link, cannot_link : array-like of shape (m, 2) or None
        Pairs of samples, by row number, that belong together, or do not.
    labels : array-like of shape (n_samples,) or None
        Known classes of a few samples, -1 for the others; each two known ones are a pair of one
        kind or the other. Where classes are numbered from 0 and below ``n_clusters``, clusters get
        the numbers of the classes they have most of.
    constraint_strength : float, default 1
        How much such a pair counts, see :func:`symnmf.graphs.constrained`.
    solver, coupling, init
        As in :func:`symnmf.factorize`.
    init : str, array or callable, default "spectral"
        As in :func:`symnmf.factorize`. "spectral" sets out from the leading eigenvectors, turned
        until they are as good as nonnegative; further starts turn them by other rows, drawn at
        random. On ORL, COIL-20, MNIST, email-Eu-core and cora such a start ends lower than the
        best of five random ones, after half the iterations of one of them.
    n_init : int, default 5
        Starts, at most; the one with the smallest fitting error is kept. With init="spectral" the
        others are left out where the first has 97% of what no U can better, and are given up once
        they can be seen to end above it. A given U_0 and "nndsvd" are run once, since they always
        end in the same place.
    tol : float, default 1e-4
        As in :func:`symnmf.factorize`, but ten times larger: on the data sets of the user guide
        accuracies were the same at 1e-5.
    max_iter : int, default 1000
        Most iterations of each start.
    max_time : float or None
        Most seconds in the solver for the whole fit, shared out equally over the starts.
    random_state : int, Generator, RandomState or None
        For the starts. The first is that of ``factorize`` with the same seed, and a larger
        ``n_init`` adds starts to the same ones, so the fitting error can only fall.
    n_jobs : int or None
        Threads; None for all cores. Where there is a start for each of them, or one iteration is
        too small to be shared out, the starts run at the same time, each on one thread, unless
        the factors exceed 32 MB. On a dense affinity of at least 2000 samples and up to 4
        clusters several starts share one reading of it, which is most of an iteration there
        (not with a checkpoint); all others run one after another.
    device : str, torch.device or None
        "cuda" to look for neighbours and factorize on a GPU, see :func:`symnmf.factorize`.
        Several starts are then one wide product.
    warm_start : bool, default False
        Set out from the previous ``embedding_`` (a single start; n_init and init do not matter).
        ``tol`` then refers to that start, so a fit that had converged is refined.
    components : {"all", "largest"}, default "all"
        "largest" clusters the largest component of the graph alone; all other samples get the
        label -1. Samples without any similarity get it always.
    callback : callable or None
        Called with a :class:`symnmf.Snapshot` for every iteration of every start, which may run in
        a thread of its own; a true return value ends the fit with what was reached.
    progress : bool, default False
        Show a bar, in a terminal or a notebook (needs the extra ``progress``).
    verbose : int, default 0
        Print the error every 100 iterations (1), every 10 (2) or always (3).
    checkpoint : path or None
        Keep the fit on disk, in this file and one per start beside it (``fit.npz`` and
        ``fit.<drawn for this fit>.start-0.npz``, ...). A fit that was killed and is called again
        with the same data and settings goes on where it was, bit for bit; ``max_iter``, ``tol``,
        ``max_time`` and ``n_init`` may be raised. The files stay when the fit is done: to start
        afresh remove them or name another. Other data or settings are refused.
    checkpoint_every : float, default 60
        Seconds between checkpoints.

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters of the fit.
    rank_selection_ : RankSelection
        How it was found, with ``n_clusters="auto"``.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each sample: the column of the largest entry in its row of U. A sample
        without any similarity to others has a row of zeros and the label -1.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        U.
    membership_ : ndarray of shape (n_samples, n_clusters)
        U with rows scaled to sum 1; a row of zeros stays zero.
    affinity_matrix_ : ndarray or csr_array of shape (n_samples, n_samples)
        A, as it was factorized.
    n_iter_ : int
        Iterations of the start that was kept.
    reconstruction_err_ : float
        :math:`E = \|A - U U^T\|_F^2 / \|A\|_F^2`, the relative squared error (scikit-learn's NMF
        gives the root of the numerator instead).
    history_ : History
        One row per iteration of the start that was kept.
    status_ : str
        How it ended: "converged", "max_iter", "max_time", "diverged", or "stopped" where the fit
        was interrupted, by Ctrl-C say.
    certificate_ : Certificate
        What the theorems say of it, computed when first asked for. It speaks of the optimiser, not
        of the clusters.
    quality_ : Quality
        How the clusters look: sizes, modularity, conductance, agreement of the starts. A warning
        is given where one holds more than 90% of the samples or some are empty.
    seed_ : int, Generator or RandomState
        ``random_state``, or the seed that was drawn where it is None.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X is a frame with names.

    Notes
    -----
    Coming from ``SpectralClustering``: its ``eigen_solver``, ``n_components``, ``eigen_tol`` and
    ``assign_labels`` have no counterpart, since eigenvectors are a start only and the labels are
    read off U. ``gamma`` and other kernel parameters go into a callable, as in
    ``affinity=functools.partial(symnmf.graphs.rbf, gamma=0.1)``. It normalises a precomputed
    affinity inside; here ``symnmf.graphs.normalize(A, n_clusters)`` does.

    Unlike it, the estimator has ``predict`` and ``transform`` for new samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from symnmf import SymNMF
    >>> model = SymNMF(3, random_state=0).fit(load_iris().data)
    >>> model.membership_.shape
    (150, 3)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        affinity: str | Callable[..., Any] = "self-tuning",
        n_neighbors: int | None = None,
        missing: str | None = None,
        must_link: Any = None,
        cannot_link: Any = None,
        labels: Any = None,
        constraint_strength: float = 1.0,
        solver: str | Solver = "auto",
        coupling: str | float | Coupling | None = None,
        init: Any = DEFAULT_INIT,
        n_init: int = DEFAULT_STARTS,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_time: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: Any = None,
        warm_start: bool = False,
        components: str = "all",
        callback: Callback | None = None,
        progress: bool = False,
        verbose: int = 0,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 60.0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.missing = missing
        self.must_link = must_link
        self.cannot_link = cannot_link
        self.labels = labels
        self.constraint_strength = constraint_strength
        self.solver = solver
        self.coupling = coupling
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.warm_start = warm_start
        self.components = components
        self.callback = callback
        self.progress = progress
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def fit(self, X: Any, y: Any = None) -> SymNMF:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            The samples; with ``affinity="precomputed"`` their symmetric nonnegative similarities.
        y : ignored
        """
        if not self._automatic:
            check_cluster_count(self.n_clusters, "n_clusters", or_else=", or 'auto'")
        given = 0 if self._automatic else int(self.n_clusters)
        self._check_verbose()
        self._check_missing()
        if self.callback is not None and not callable(self.callback):
            raise InputError(f"callback must be a function of one snapshot, got {self.callback!r}.")
        plan = self._plan(given or 1)
        samples = self._samples(X, reset=True)
        n = samples.shape[0]
        if given > n:
            raise InputError(
                f"n_clusters={self.n_clusters} is more than the {n} samples of X; choose at most "
                f"n_clusters={n}."
            )
        if self.warm_start and hasattr(self, "embedding_"):
            self._check_same_shape(n)
        if self.labels is not None:
            known_classes(self.labels, n, given or None)
        A = self._affinities(samples)
        if not given:
            given = self._choose_clusters(A)
        self.n_clusters_ = given
        plan = replace(plan, rank=self.n_clusters_)
        free = A
        A = self._constrain(A) if self._has_constraints else A
        self._problem = plan.problem(A, missing=self.missing, allow_negative=self._has_constraints)
        with bar(bool(self.progress), plan.starts) as shown:
            plan = replace(plan, progress=together(shown, self._watcher(), self._printer()))
            if self._has_constraints:
                plan = _from_attraction(plan, A)
            search = plan.search(self._problem)
        result = search.best
        if self.labels is not None:
            result = _by_class(result, np.asarray(self.labels))
        warn_unless_converged(result, plan.settings.limits, plan.starts)
        self.affinity_matrix_ = A
        self._places = Places(samples, self.affinity, self.n_neighbors)
        self._result = result
        self._certificate: Certificate | None = None
        self.labels_ = result.labels
        self.embedding_ = result.U
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.error
        self.history_ = result.history
        self.status_ = result.status
        self.seed_ = search.seed
        known = np.nan_to_num(free) if self.missing == "nan" else free
        self.quality_: Quality = assess(known, self.labels_, search)
        self._n_features_out = self.n_clusters_
        warn_of(self.quality_, self._advice())
        return self

    def _samples(self, X: Any, *, reset: bool) -> Any:
        refuse_foreign(X, "X")
        if sp.issparse(X):
            check_indices(X, "X")
        if self._precomputed and reset:
            check_order(X, "X")
        # what is said of NaN in similarities that are fitted is said by _affinities
        ours = self._precomputed and (reset or self.missing == "nan")
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32] if self._precomputed else np.float64,
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite="allow-nan" if ours else True,
        )

    def _advice(self) -> str:
        if self._precomputed:
            return (
                "for a graph as it comes pass symnmf.graphs.normalize(A, n_clusters), which adds "
                "to small degrees, or set components='largest'"
            )
        return "try another affinity or n_neighbors, or fewer clusters"

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Cluster the rows of X and return ``embedding_``, U."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the row of U that fits each sample best, given those of the fit.

        The similarities of a new sample to the fitted ones come from the same kernel, with the
        widths and degrees of the fit; a nonnegative least squares then gives its row. A sample
        equal to a fitted one has the row it had.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            New samples; with ``affinity="precomputed"`` their similarities to the fitted ones, in
            the scale of the matrix that was fitted.
        """
        check_is_fitted(self)
        new = self._samples(X, reset=False)
        if self._precomputed and new.min() < 0:
            raise InputError("X holds negative similarities; they must be at least 0.")
        return self._places.of(new, self.embedding_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each new sample, see :meth:`transform`; -1 for none."""
        return cluster_labels(self.transform(X))

    def top_features(self, X: Any, names: Any = None, k: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the columns of X, such as words or genes, that tell each cluster from the rest.

        See :func:`symnmf.top_features`; X need not be what was fitted, but has its rows.
        """
        check_is_fitted(self)
        if names is None:
            names = getattr(X, "columns", getattr(self, "feature_names_in_", None))
        return top_features(X, self.membership_, names, k)

    @property
    def membership_(self) -> np.ndarray:
        """U with rows scaled to sum 1."""
        check_is_fitted(self)
        return self._result.membership

    @property
    def certificate_(self) -> Certificate:
        """What the theorems say of the fit, see :class:`symnmf.Certificate`."""
        check_is_fitted(self)
        if self._certificate is None:
            problem = getattr(self, "_problem", None)  # not kept in a pickle
            if problem is None:
                problem = Problem.of(
                    self.affinity_matrix_,
                    missing=self.missing,
                    allow_negative=self._has_constraints,
                )
            self._certificate = self._result.certificate(problem)
        return self._certificate

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_problem"}

    @property
    def _has_constraints(self) -> bool:
        told = (self.must_link, self.cannot_link, self.labels)
        return any(part is not None for part in told)

    def _constrain(self, A: Any) -> Any:
        if self.missing is not None:
            raise InputError("missing and constraints were both given; leave one of them out.")
        return graphs.constrained(
            A,
            self.must_link,
            self.cannot_link,
            self.labels,
            strength=self.constraint_strength,
        )

    @property
    def _automatic(self) -> bool:
        return isinstance(self.n_clusters, str) and self.n_clusters == "auto"

    def _choose_clusters(self, A: Any) -> int:
        """Ask how many clusters there are; a warm start has as many as before."""
        if self.warm_start and hasattr(self, "embedding_"):
            return int(self.embedding_.shape[1])
        n = A.shape[0]
        self.rank_selection_ = found = select_rank(
            A,
            range(2, min(20, n - 1) + 1),
            n_init=1,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        if found.recommendation is not None:
            return found.recommendation
        if found.status == "stopped":
            raise KeyboardInterrupt(found.reason)
        heldout = found.choices["heldout"].rank
        others = [found.choices[name].rank for name in ("stability", "eigengap")]
        chosen = next((rank for rank in others if rank is not None), heldout) if heldout else 1
        errors.warn(
            f"No clear number of clusters. {found.reason} {chosen or 1} is taken; see "
            f"rank_selection_, or set n_clusters.",
            UserWarning,
        )
        return chosen or 1

    def _check_missing(self) -> None:
        if self.missing is None:
            return
        check_missing(self.missing)
        if not self._precomputed:
            raise InputError(
                f"missing={self.missing!r} is for affinity='precomputed'; fill in missing features "
                f"first, for instance with sklearn.impute."
            )
        if self._automatic:
            raise InputError(
                f"n_clusters='auto' needs an X without missing entries, since it hides entries "
                f"itself; with missing={self.missing!r} give the number of clusters."
            )

    def _nan_error(self, samples: Any) -> InputError:
        """Refuse NaN among given similarities in words that fit them."""
        if sp.issparse(samples):
            advice = "leave such entries out"
            if self.missing is None:
                advice += ", and set missing='unstored' where what is not stored was not observed"
        elif self._automatic:
            advice = "fill them in, since n_clusters='auto' needs every entry"
        else:
            advice = "fill them in, or set missing='nan' where NaN stands for what was not observed"
        return InputError(f"X has NaN entries; {advice}.")

    def _plan(self, clusters: int) -> Plan:
        warm = self.warm_start and hasattr(self, "embedding_")
        return Plan(
            clusters,
            Settings.of(
                self.solver,
                self.coupling,
                tol=self.tol,
                max_iter=self.max_iter,
                max_time=self.max_time,
            ),
            n_init=self.n_init,
            init=self.embedding_ if warm else self.init,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            device=self.device,
            checkpoint=self.checkpoint,
            checkpoint_every=self.checkpoint_every,
        )

    def _watcher(self) -> Callable[[int, Snapshot], Any] | None:
        callback = self.callback
        return None if callback is None else lambda _, now: callback(now)

    def _printer(self) -> Callable[[int, Snapshot], None] | None:
        return _printer(int(self.verbose)) if self.verbose else None

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.affinity, str) and self.affinity == PRECOMPUTED

    def _affinities(self, samples: Any) -> Any:
        k = 1 if self._automatic else int(self.n_clusters)
        if not self._precomputed:
            A = graphs.build(
                samples,
                self.affinity,
                n_neighbors=self.n_neighbors,
                n_jobs=self.n_jobs,
                device=self.device,
                n_clusters=k,
            )
            # the builder has warned of components already
            return A if self.components == "all" else restrict(A, self.components, k, "")
        dense = not sp.issparse(samples)
        smallest = np.nanmin(samples) if dense and self.missing == "nan" else samples.min()
        if np.isnan(smallest) and self.missing != "nan":
            raise self._nan_error(samples)
        n, columns = samples.shape
        if n != columns:
            edges = ", or pass symnmf.graphs.from_edges(X) if it lists edges" * (columns in (2, 3))
            raise InputError(
                f"X must be square for affinity='precomputed', got {n} x {columns}; choose "
                f"affinity='self-tuning' or another named kind for samples x features{edges}."
            )
        if smallest < 0:
            raise InputError(
                f"Negative values in data passed to SymNMF: affinities must be at least 0 and the "
                f"smallest in X is {smallest:.6g}; clip them, for instance with np.maximum(X, 0)."
            )
        if self.missing is not None:
            return samples
        A = graphs.build(samples, PRECOMPUTED)
        # with a number of clusters that is still to be found no count of components is a surprise
        return restrict(A, self.components, n if self._automatic else k, "components='largest'")

    def _check_verbose(self) -> None:
        if not isinstance(self.verbose, int | np.integer | np.bool_) or self.verbose < 0:
            raise InputError(
                f"verbose must be 0, 1, 2 or 3, the larger the more is printed, got "
                f"{self.verbose!r}."
            )

    def _check_same_shape(self, n: int) -> None:
        before, clusters = self.embedding_.shape
        if self._automatic and before == n:
            return
        if (before, clusters) != (n, self.n_clusters):
            raise InputError(
                f"warm_start=True needs the {before} samples and {clusters} clusters of the "
                f"previous fit, got {n} and {self.n_clusters}; set warm_start=False to start "
                f"afresh."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.positive_only = self._precomputed
        return tags


def _from_attraction(plan: Plan, A: Any) -> Plan:
    """Start from the eigenvectors of what is positive in A, where eigenvectors are asked for.

    Pairs that must be apart say little about where their ends belong, and are noise there.
    """
    if not (isinstance(plan.init, str) and plan.init == SPECTRAL):
        return plan
    attracting = plan.problem(A.maximum(0) if sp.issparse(A) else np.maximum(A, 0)).X
    spectral = SpectralStarts()

    def attraction(X: SymmetricMatrix, rank: int, random_state: np.random.Generator) -> np.ndarray:
        return spectral.prepare(attracting, rank).start(X, random_state)

    return replace(plan, init=attraction)


def _by_class(result: Result, known: np.ndarray) -> Result:
    """Number the clusters as the known classes are numbered."""
    order = numbered_by_class(result.U, known)
    U = np.ascontiguousarray(result.U[:, order])
    V = U if result.V is result.U else np.ascontiguousarray(result.V[:, order])
    return replace(result, U=U, V=V)


def check_cluster_count(count: Any, name: str, or_else: str = "") -> None:
    """Refuse anything but a whole number of at least 1, and say what else is taken."""
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or count < 1:
        raise InputError(f"{name} must be a whole number of at least 1{or_else}, got {count!r}.")


def _printer(verbose: int) -> Callable[[int, Snapshot], None]:
    every = {1: 100, 2: 10}.get(verbose, 1)

    def show(start: int, now: Snapshot) -> None:
        if now.iteration % every == 0:
            print(
                f"start {start + 1}: iteration {now.iteration}, error {now.error:.6g}, "
                f"stationarity {now.stationarity:.2e}"
            )

    return show

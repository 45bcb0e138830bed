"""``SymNMF``: symmetric NMF as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from symnmf import graphs
from symnmf.errors import InputError
from symnmf.matrices.observing import MISSING
from symnmf.penalty import Penalty
from symnmf.run.certificate import Certificate
from symnmf.run.loop import Snapshot
from symnmf.run.multistart import DEFAULT_STARTS, Plan, warn_unless_converged
from symnmf.run.result import Result
from symnmf.run.start import RandomState
from symnmf.selection import select_rank
from symnmf.solvers import Solver

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
        kind or the other.
    constraint_strength : float, default 1
        How much such a pair counts, see :func:`symnmf.graphs.constrained`.
    solver, penalty, init
        As in :func:`symnmf.factorize`.
    n_init : int, default 5
        Starts; the one with the smallest fitting error is kept. A given U_0 and "nndsvd" are run
        once, since they always end in the same place. The problem is not convex and single
        starts go wrong: ten starts on COIL-20 gave accuracies from 0.61 to 0.76, and on ORL from
        0.74 to 0.79. The best of five by error was at or above the median start on both, and the
        best of ten no better than that by more than 0.01, for twice the time. Several starts
        need not cost as many times one, see ``n_jobs``.
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
        without any similarity to others has a row of zeros and goes to cluster 0.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        U.
    membership_ : ndarray of shape (n_samples, n_clusters)
        U with rows scaled to sum 1; a row of zeros becomes uniform.
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
        What the theorems say of it, computed when first asked for.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X is a frame with names.

    Notes
    -----
    Coming from ``SpectralClustering``: its ``eigen_solver``, ``n_components``, ``eigen_tol`` and
    ``assign_labels`` have no counterpart, since no eigenvectors are computed and the labels are
    read off U. ``gamma`` and other kernel parameters go into a callable, as in
    ``affinity=functools.partial(symnmf.graphs.rbf, gamma=0.1)``. It normalises a precomputed
    affinity inside; here ``symnmf.graphs.normalize(A)`` does.

    Like it, the estimator labels the samples it was fitted on and has no ``predict`` for others.

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
        penalty: str | float | Penalty | None = None,
        init: Any = "scaled-random",
        n_init: int = DEFAULT_STARTS,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_time: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: Any = None,
        warm_start: bool = False,
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
        self.penalty = penalty
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.warm_start = warm_start
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
            check_cluster_count(self.n_clusters, "n_clusters")
        given = 0 if self._automatic else int(self.n_clusters)
        self._check_verbose()
        self._check_missing()
        self._plan(given or 1).check()
        samples = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32] if self._precomputed else np.float64,
            ensure_min_samples=2,
            ensure_all_finite="allow-nan" if self.missing == "nan" else True,
        )
        n = samples.shape[0]
        if given > n:
            raise InputError(
                f"n_clusters={self.n_clusters} is more than the {n} samples of X; choose at most "
                f"n_clusters={n}."
            )
        if self.warm_start and hasattr(self, "embedding_"):
            self._check_same_shape(n)
        A = self._affinities(samples)
        if not given:
            given = self._choose_clusters(A)
        self.n_clusters_ = given
        plan = self._plan(self.n_clusters_)
        if self._has_constraints:
            free, A = A, self._constrain(A)
            result = _best_under_constraints(plan, free, A)
        else:
            result = plan.best(A)
        warn_unless_converged(result, self.tol, plan.starts, stacklevel=2)
        self.affinity_matrix_ = A
        self._result = result
        self._certificate: Certificate | None = None
        self.labels_ = result.labels
        self.embedding_ = result.U
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.error
        self.history_ = result.history
        self.status_ = result.status
        self._n_features_out = self.n_clusters_
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Cluster the rows of X and return ``embedding_``, U."""
        return self.fit(X).embedding_

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
            self._certificate = self._result.certificate(
                self.affinity_matrix_,
                missing=self.missing,
                allow_negative=self._has_constraints,
            )
        return self._certificate

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
        heldout = found.choices["heldout"].rank
        others = [found.choices[name].rank for name in ("stability", "eigengap")]
        chosen = next((rank for rank in others if rank is not None), heldout) if heldout else 1
        warnings.warn(
            f"{found.reason} {chosen or 1} is taken; see rank_selection_, or set n_clusters.",
            UserWarning,
            stacklevel=3,
        )
        return chosen or 1

    def _check_missing(self) -> None:
        if self.missing is None:
            return
        if self.missing not in MISSING:
            raise InputError(f"missing must be None, 'nan' or 'unstored', got {self.missing!r}.")
        if not self._precomputed or self._automatic:
            raise InputError(
                f"missing={self.missing!r} is for affinity='precomputed' with a given n_clusters; "
                f"fill in missing features first, for instance with sklearn.impute."
            )

    def _plan(self, clusters: int) -> Plan:
        warm = self.warm_start and hasattr(self, "embedding_")
        return Plan(
            clusters,
            n_init=self.n_init,
            init=self.embedding_ if warm else self.init,
            random_state=self.random_state,
            max_time=self.max_time,
            n_jobs=self.n_jobs,
            device=self.device,
            checkpoint=self.checkpoint,
            checkpoint_every=self.checkpoint_every,
            progress=_printer(int(self.verbose)) if self.verbose else None,
            options={
                "solver": self.solver,
                "penalty": self.penalty,
                "tol": self.tol,
                "max_iter": self.max_iter,
                "missing": self.missing,
            },
        )

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.affinity, str) and self.affinity == PRECOMPUTED

    def _affinities(self, samples: Any) -> Any:
        if not self._precomputed:
            return graphs.build(
                samples,
                self.affinity,
                n_neighbors=self.n_neighbors,
                n_jobs=self.n_jobs,
                device=self.device,
                n_clusters=1 if self._automatic else int(self.n_clusters),
            )
        n, columns = samples.shape
        if n != columns:
            raise InputError(
                f"X must be square for affinity='precomputed', got {n} x {columns}; choose "
                f"affinity='self-tuning' or another named kind for samples x features."
            )
        smallest = np.nanmin(samples) if self.missing == "nan" else samples.min()
        if smallest < 0:
            raise InputError(
                f"Negative values in data passed to SymNMF: affinities must be at least 0 and the "
                f"smallest in X is {smallest:.6g}; clip them, for instance with np.maximum(X, 0)."
            )
        return samples

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


def _best_under_constraints(plan: Plan, free: Any, A: Any) -> Result:
    """Return the better of the fresh starts and one from the best fit without constraints.

    Constraints make many poor minima; few of them leave the best one near that of the data alone.
    """
    bound = replace(plan, options={**plan.options, "allow_negative": True})
    fresh = bound.best(A)
    before = replace(plan, checkpoint=None).best(free)
    # entries at zero would hardly move
    start = before.U + 1e-3 * before.U.mean()
    moved = replace(bound, init=start, checkpoint=None).best(A)
    return fresh if fresh.error <= moved.error else moved


def check_cluster_count(count: Any, name: str) -> None:
    """Refuse anything but a whole number of at least 1."""
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or count < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {count!r}.")


def _printer(verbose: int) -> Callable[[int, Snapshot], None]:
    every = {1: 100, 2: 10}.get(verbose, 1)

    def show(start: int, now: Snapshot) -> None:
        if now.iteration % every == 0:
            print(
                f"start {start + 1}: iteration {now.iteration}, error {now.error:.6g}, "
                f"stationarity {now.stationarity:.2e}"
            )

    return show

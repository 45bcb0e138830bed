"""``SymNMF``: symmetric NMF as a scikit-learn clusterer."""

from __future__ import annotations

import functools
from collections.abc import Callable
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

from symnmf.arguments import check_options, checked_names
from symnmf.cluster.fitted import Fitted
from symnmf.cluster.outside import outlier_scores
from symnmf.cluster.pipeline import find_clusters
from symnmf.cluster.task import PRECOMPUTED, Task
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import check_order, refuse_foreign
from symnmf.graphs.attributes import refuse_text
from symnmf.graphs.pairwise import DISTANCES
from symnmf.interchange import is_dlpack, received, to_host
from symnmf.options import documented
from symnmf.placing import Places, top_features
from symnmf.run.problem import Problem
from symnmf.run.result import Callback, Snapshot
from symnmf.run.start import RandomState
from symnmf.storage.indices import check_indices
from symnmf.storage.layers import is_layers
from symnmf.storage.wrapping import is_storage


def _of_fit(name: str, text: str) -> Any:
    """Return an attribute that is computed when it is first read."""

    def read(self: SymNMF) -> Any:
        check_is_fitted(self)
        return getattr(self._fitted, name)

    return property(read, doc=text)


@documented
class SymNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""Cluster points or a graph by symmetric nonnegative matrix factorization.

    A similarity matrix A of the samples is built (or passed) and factorized,

    .. math:: \min_{U \ge 0} \tfrac12 \|A - U U^T\|_F^2.

    The rows of U say how strongly each sample belongs to each cluster, and its similarities decide
    between them, see ``assign_labels``. The class can take the place of
    :class:`sklearn.cluster.SpectralClustering`: ``n_clusters``, ``affinity``, ``n_neighbors``,
    ``n_init``, ``random_state``, ``n_jobs`` and ``verbose`` mean the same. The notes list the
    differences.

    Parameters
    ----------
    {n_clusters, affinity, n_neighbors, gamma, degree, coef0, kernel_params, normalize,
    degree_offset, components, l1, assign_labels, solver, init, n_init, max_iter, tol, max_time,
    random_state, n_jobs, device, callback, verbose, checkpoint}

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters of the fit.
    rank_selection_ : RankSelection
        How the number was chosen, with ``n_clusters="auto"``.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each sample, see ``assign_labels``. Clusters are numbered from the largest
        to the smallest, and by their first sample if sizes are equal, unless classes are passed to
        ``fit``. A sample without any similarity to others has a row of zeros and the label -1.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        U. Where ``assign_labels`` moved a sample to another cluster than that of its largest entry,
        the entry of its cluster is raised to a hair above that.
    membership_ : ndarray of shape (n_samples, n_clusters)
        The share of each row of ``embedding_`` in the clusters that the sample belongs to, and
        zeros elsewhere. A sample belongs to the cluster of its label, which has its largest share,
        and to all others where ``strength_`` is above 1.
    strength_ : ndarray of shape (n_samples, n_clusters) or None
        How strongly each sample belongs to each cluster, in units of what chance explains, see
        docs/howto/overlap.md. None with negative similarities, and if X is not in memory; a sample
        then belongs to its own cluster and to every other that holds more than a quarter of its
        row.
    affinity_matrix_ : ndarray or csr_array of shape (n_samples, n_samples)
        A, as it was factorized.
    n_iter_ : int
        Number of iterations of the best start.
    reconstruction_err_ : float
        :math:`E = \|A - U U^T\|_F^2 / \|A\|_F^2`, the relative squared error (scikit-learn's NMF
        gives the square root of the numerator instead).
    history_ : History
        One row per iteration of the best start.
    status_ : str
        How the fit ended: "converged", "max_iter", "max_time", "diverged", or "stopped" if it was
        interrupted, for example by Ctrl-C.
    certificate_ : Certificate
        Whether U is a critical point, and on what grounds; computed on first access. It is about
        the optimization, not about the clusters.
    quality_ : Quality
        The quality of the clusters: sizes, modularity, conductance, agreement of the starts, and
        whether they are real, in one word, ``quality_.verdict.word``; computed on first access.
    probabilities_ : ndarray of shape (n_samples,)
        The share of each sample's row of U in its own cluster, from 0 to 1; 0 for a sample in no
        cluster. As for HDBSCAN, it says how strongly a sample belongs to its cluster.
    outlier_score_ : ndarray of shape (n_samples,)
        How badly each sample fits its cluster, from 0 to 1; computed on first access. High if the
        sample is far from its neighbours, compared with how close they are to theirs, or if its
        similarities lead to other clusters. 1 for a sample in no cluster. Not available for a
        matrix on disk.
    seed_ : int, Generator or RandomState
        ``random_state``, or the seed that was drawn if it is None.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns, if X is a frame with names.

    Notes
    -----
    Differences from ``SpectralClustering``: ``eigen_solver``, ``n_components`` and ``eigen_tol``
    have no counterpart, because eigenvectors are only a start, and ``assign_labels`` has other
    values. "rbf" and "cosine" are sparse here; ``n_neighbors="all"`` gives the full "rbf" kernel.
    ``SpectralClustering`` always normalizes a precomputed affinity; here ``normalize`` decides.

    Unlike ``SpectralClustering``, this class has ``predict`` and ``transform`` for new samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from symnmf import SymNMF
    >>> model = SymNMF(3, random_state=0).fit(load_iris().data)
    >>> model.membership_.shape
    (150, 3)
    """

    @checked_names
    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        affinity: str | Callable[..., Any] = "self-tuning",
        n_neighbors: int | str | None = None,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        normalize: bool | str = "auto",
        degree_offset: float | None = None,
        components: str = "all",
        l1: float = 0.0,
        assign_labels: str = "likelihood",
        solver: Any = "auto",
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_time: float | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: Any = None,
        callback: Callback | None = None,
        verbose: int = 0,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.normalize = normalize
        self.degree_offset = degree_offset
        self.components = components
        self.l1 = l1
        self.assign_labels = assign_labels
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        labels: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> SymNMF:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            The samples; with ``affinity="precomputed"`` their symmetric nonnegative similarities,
            as an array, a sparse matrix, a matrix of :mod:`symnmf.storage`, a Dask array or a
            :class:`symnmf.Problem`, which may hide entries by a mask or weight them. A list of
            similarities of the same samples will do too; how much each counts is chosen by
            held-out entries, as by :func:`symnmf.communities`.
        y : ignored
            Classes that a grid search uses for scoring do not influence the fit.
        labels : array-like of int of shape (n_samples,) or None
            Known classes of some samples, -1 for the others. Two samples with known classes should
            be together or apart. If the classes are numbered from 0 to ``n_clusters`` - 1, each
            cluster gets the number of its most frequent class.
        must_link : array-like of int of shape (n_samples,) or None
            Group of each sample, -1 for none: samples of the same group belong together.
        cannot_link : array-like of int of shape (n_samples,) or None
            Group of each sample, -1 for none: no two samples of the same group belong together.

        Notes
        -----
        ``labels``, ``must_link`` and ``cannot_link`` have an entry for each sample, so
        scikit-learn splits them with X in cross-validation; ``set_fit_request(labels=True)``
        routes them if metadata routing is enabled. For single pairs use
        :func:`symnmf.graphs.constrained`.
        """
        task = self._task(labels=labels, must_link=must_link, cannot_link=cannot_link)
        whole = self._precomputed and (is_storage(X) or isinstance(X, Problem) or is_layers(X))
        data = X if whole else self._samples(X, reset=True)
        task.column_names = getattr(self, "feature_names_in_", None)
        try:
            fitted = find_clusters(task, data, _printer(int(self.verbose)))
        except InputError as error:
            if "has negative entries" not in str(error):
                raise
            # scikit-learn's checks look for these words
            raise InputError(f"Negative values in data: {error}") from None
        self._fitted: Fitted = fitted
        self._outlier_score: np.ndarray | None = None
        self._places = Places(data, self.affinity, fitted.similarities.compare)
        result = fitted.result
        if whole:
            self.n_features_in_ = result.U.shape[0]
        self.n_clusters_ = self._n_features_out = result.U.shape[1]
        if fitted.selection is not None:
            self.rank_selection_ = fitted.selection
        self.affinity_matrix_ = fitted.similarities.A
        self.labels_ = fitted.labels
        self.embedding_ = fitted.embedding
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.error
        self.history_ = result.history
        self.status_ = result.status
        self.seed_ = fitted.seed
        return self

    def _task(self, **known: Any) -> Task:
        options = {name: getattr(self, name) for name in _parameters()}
        check_options(options)
        return Task(**options, **known)

    def _samples(self, X: Any, *, reset: bool) -> Any:
        """Return a table of samples, or of similarities, checked as scikit-learn does."""
        X = to_host(X) if is_dlpack(X) else received(X)
        refuse_foreign(X, "X")
        if sp.issparse(X):
            check_indices(X, "X")
        if self._precomputed and reset:
            check_order(X, "X")
        with said_as_input_errors("X"):
            shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
            # NaN in similarities that are fitted gets its own message when they are checked
            ours = self._precomputed and reset and len(set(shape)) == 1
            try:
                return validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=[np.float64, np.float32] if self._precomputed else np.float64,
                    ensure_min_samples=2 if reset else 1,
                    ensure_all_finite="allow-nan" if ours else True,
                )
            except (ValueError, TypeError) as error:
                refuse_text(X if hasattr(X, "dtypes") else np.asarray(X), "X")
                if len(shape) == 1:
                    raise InputError(
                        "X must be a table, got 1 dimension. Reshape your data: X.reshape(-1, 1) "
                        "is a table of one column, X.reshape(1, -1) of one row."
                    ) from None
                if "NaN" in str(error) or "infinity" in str(error):
                    raise InputError(
                        "X has NaN or infinite entries; fill them, as sklearn.impute.SimpleImputer "
                        "does, or leave out their rows or columns."
                    ) from None
                raise

    def fit_transform(self, X: Any, y: Any = None, **told: Any) -> np.ndarray:
        """Cluster the rows of X and return ``embedding_``; other arguments as for :meth:`fit`."""
        return self.fit(X, **told).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the best row of U for each sample, with the fitted rows unchanged.

        The similarities of a new sample to the fitted ones come from the same kernel, with the
        widths and degrees of the fit. Nonnegative least squares then gives its row. A sample equal
        to a fitted one gets the same row.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            New samples; with ``affinity="precomputed"`` their similarities to the fitted ones, on
            the scale of the matrix that was passed to ``fit``.
        """
        return self._places.of(self._new_samples(X), self.embedding_, self._fitted.rows_of)

    def _new_samples(self, X: Any) -> Any:
        check_is_fitted(self)
        new = self._samples(X, reset=False)
        if self._precomputed and new.min() < 0:
            raise InputError("X has negative similarities; they must be at least 0.")
        return new

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each new sample, -1 for none.

        A sample equal to a fitted one gets its label. The others are assigned as
        ``assign_labels`` says, from their similarities to the fitted ones.
        """
        new = self._new_samples(X)
        return self._places.of(new, to_host(self.labels_), self._fitted.labels_of)

    def top_features(self, X: Any, names: Any = None, k: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the columns of X, such as words or genes, that distinguish each cluster.

        See :func:`symnmf.top_features`. X may differ from the fitted data, but must have its rows.
        """
        check_is_fitted(self)
        if names is None:
            names = getattr(X, "columns", getattr(self, "feature_names_in_", None))
        return top_features(X, self.membership_, names, k)

    membership_ = _of_fit("membership", "Shares of U in the clusters that a sample belongs to.")
    strength_ = _of_fit("strengths", "U in units of the background; above 1 a sample belongs.")
    probabilities_ = _of_fit("probabilities", "The share of each sample in its own cluster.")
    quality_ = _of_fit("quality", "Sizes, separation, and whether the clusters are real.")
    certificate_ = _of_fit("certificate", "Whether U is a critical point.")

    @property
    def outlier_score_(self) -> np.ndarray:
        """How badly each sample fits its cluster, from 0 to 1; computed on first access."""
        check_is_fitted(self)
        if self._outlier_score is None:
            named = isinstance(self.affinity, str) and not self._precomputed
            points = self._places.points if named else None
            graph = self._fitted.similarities.graph
            self._outlier_score = outlier_scores(graph, self.labels_, points)
        return self._outlier_score

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.affinity, str) and self.affinity == PRECOMPUTED

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._precomputed or self.affinity == DISTANCES
        tags.input_tags.positive_only = self._precomputed
        return tags


@functools.cache
def _parameters() -> tuple[str, ...]:
    """Return the names of the parameters, which a subclass need not all take."""
    return tuple(SymNMF._get_param_names())


def _printer(verbose: int) -> Callable[[int, Snapshot], None] | None:
    if not verbose:
        return None
    every = {1: 100, 2: 10}.get(verbose, 1)

    def show(start: int, now: Snapshot) -> None:
        if now.iteration % every == 0:
            print(
                f"start {start + 1}: iteration {now.iteration}, error {now.error:.6g}, "
                f"stationarity {now.stationarity:.2e}"
            )

    return show

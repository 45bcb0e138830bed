"""What is to be factorized: X, what counts of it and what is added, checked once."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.interchange import column_names, received
from symnmf.naming import lookup
from symnmf.objectives import (
    L1,
    Links,
    MatrixObjective,
    Objective,
    Ridge,
    Term,
)
from symnmf.objectives.losses import FROBENIUS, LOSSES
from symnmf.objectives.observing import observed
from symnmf.options import AUTO, ProblemOptions, changed, names_in
from symnmf.parallel import Threads, one_blas_thread
from symnmf.run.result import Attached
from symnmf.state import Point
from symnmf.storage import SymmetricArray, SymmetricMatrix, as_symmetric, on_device
from symnmf.storage.indices import check_indices
from symnmf.storage.layers import is_layers


class Problem:
    r"""The problem to solve: the misfit to the observed entries of X, and terms on U.

    .. math:: f(U) = \tfrac12 \sum_{ij} w_{ij} (x_{ij} - \langle u_i, u_j\rangle)^2
        + l_1 \sum_{ij} u_{ij} + \tfrac{\rho}{2} \|U\|_F^2 - \sum_{ij} c_{ij}\langle u_i, u_j\rangle
        + \tfrac{a}{2} \frac{\|X\|^2}{\|F\|^2} \|F - UW^\top\|_F^2

    Every function that accepts X accepts a Problem, and then does not check or scan X again.

    Parameters
    ----------
    X : array-like, scipy sparse, torch tensor, a matrix of symnmf.storage or on disk, n x n
        As for :func:`symnmf.factorize`.
    mask : array-like or sparse of bool, n x n, or None
        True for observed entries of X; all other entries are ignored.
    weights : array-like or sparse, n x n, or None
        The weight of each entry, symmetric and at least 0, relative to the largest weight.
    missing : "nan", "unstored" or None
        "nan": NaN entries of a dense X were not observed. "unstored": entries that a sparse X does
        not store were not observed; by default they are zeros, which are data.
    ignore_diagonal : bool
        Leave the diagonal of X out of the fit.
    allow_negative : bool
        Accept negative entries of X, for methods that do not need X >= 0.
    l1 : float
        Weight of the sum of all entries of U. A larger weight makes U sparser.
    ridge : float
        Weight of 1/2 ||U||_F^2, which keeps U small.
    links : array-like or sparse, n x n, or None
        c: a positive entry pulls a pair of rows together, a negative one pushes it apart.
    loss : {"frobenius", "poisson", "bernoulli"}
        The misfit above, or the likelihood of counts or edges; see :func:`symnmf.factorize`. With
        a likelihood, ``mask``, ``missing="nan"`` and ``ignore_diagonal`` are supported, and
        weights and terms are not.
    attributes : array-like, scipy sparse or DataFrame, n x m, or None
        F, a table of attributes of the rows: words of documents, answers of people. W >= 0, with
        one row for each column of F, is computed together with U. ``W`` of a result shows which
        attributes belong to each cluster. Names of columns are kept.
    attribute_weight : float
        a: how much F counts compared with X. With 1 both count the same, whatever their units.
    layer_weights : sequence of float or None
        For a list of matrices X with the same rows, the layers: the misfit is the weighted sum over
        the layers, with these weights scaled to sum 1; None for equal weights. ``mask`` may then be
        a list with a mask or None for each layer. See :class:`symnmf.storage.Layers`.
    n_jobs : int or None
        Threads; None for all cores.
    device : str, torch.device or None
        The device of the runs: "cuda", "cpu", or None for the device of X.

    Attributes
    ----------
    objective : Objective
        f.

    Notes
    -----
    The terms are in the units of the misfit: if X is multiplied by c, then U is multiplied by
    :math:`c^{1/2}`, ``ridge`` and ``links`` keep their effect if multiplied by c, and ``l1`` if
    multiplied by :math:`c^{3/2}`. In a split method each factor has half of the ``l1`` term, and
    the quadratic ones are :math:`\tfrac{\rho}{2}\langle U, V\rangle`: the same at U = V.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((30, 3))
    >>> problem = symnmf.Problem(B @ B.T, ignore_diagonal=True, ridge=0.01)
    >>> symnmf.factorize(problem, 3, random_state=0).status
    'converged'
    """

    @checked()
    def __init__(
        self,
        X: Any,
        *,
        mask: Any = None,
        weights: Any = None,
        missing: str | None = None,
        ignore_diagonal: bool = False,
        allow_negative: bool = False,
        l1: float = 0.0,
        ridge: float = 0.0,
        links: Any = None,
        loss: str = "frobenius",
        attributes: Any = None,
        attribute_weight: float | str = AUTO,
        layer_weights: Any = AUTO,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        lookup(loss, dict.fromkeys(LOSSES, loss), "loss")
        attribute_weight = 1.0 if attribute_weight == AUTO else attribute_weight
        layer_weights = None if isinstance(layer_weights, str) else layer_weights
        given, X = X, received(X)
        if loss != FROBENIUS:
            self._set(_likelihood(X, loss, locals()), given)
            return
        l1, ridge = check_weight(l1, "l1"), check_weight(ridge, "ridge")
        own = X.own_objective() if isinstance(X, SymmetricArray) else None
        if own is not None:
            self._set(_with_no_options(own, locals()), X)
            return
        told: dict[str, Any] = {
            "mask": mask,
            "missing": missing,
            "ignore_diagonal": ignore_diagonal,
            "allow_negative": allow_negative,
            "n_jobs": n_jobs,
            "device": device,
        }
        f: MatrixObjective
        if is_layers(X):
            if weights is not None:
                raise InputError(
                    "weights is for one X and X has layers; use layer_weights or mask."
                )
            from symnmf.objectives.layering import layered

            f = layered(X, layer_weights, **told)
        elif layer_weights is not None:
            raise InputError("layer_weights is for a list of layers and X is one matrix.")
        else:
            f = observed(X, weights=weights, **told)
        terms: list[Term] = [term for term in (L1(l1), Ridge(ridge)) if term.weight > 0.0]
        if links is not None:
            terms.append(_links(links, f, n_jobs))
        whole = f.with_terms(*terms) if terms else f
        if attributes is not None:
            from symnmf.objectives.attributed import with_table

            whole = with_table(whole, attributes, attribute_weight)
        self._set(whole, given, column_names(attributes))

    def _set(self, f: Objective, given: Any, names: list[Any] | None = None) -> None:
        self.objective, self.given = f, given
        self.rank: int | None = None
        self.attribute_names = names

    @classmethod
    def of(cls, X: Any, **options: Any) -> Problem:
        """Return X as a Problem with these options; a Problem knows its own."""
        if not isinstance(X, Problem):
            if isinstance(X, Objective):
                return cls.around(X)
            return cls(X, **options)
        n_jobs = options.pop("n_jobs", None)
        named = sorted(changed(options))
        if named:
            raise InputError(
                f"X is a Problem, which knows its {', '.join(named)}; say that when it is made."
            )
        return X if n_jobs is None else X.with_threads(Threads(n_jobs))

    @classmethod
    def around(cls, f: Objective, given: Any = None) -> Problem:
        """Return the problem of minimising an objective of one's own."""
        problem = cls.__new__(cls)
        problem._set(f, f.storage if given is None else given)
        return problem

    @property
    def X(self) -> SymmetricArray:
        """The storage of X; where entries have weights, of W o X or X."""
        return self.objective.storage

    def must_be_plain(self, what: str, *others: str) -> None:
        """Refuse hidden entries, weights and terms, which ``what`` would have to leave out."""
        f = self.objective
        if not f.offers & {"plain", *others} or getattr(f, "hidden", None) is not None:
            raise InputError(
                f"{what} needs every entry of X and no terms, and the Problem is to minimise "
                f"{f.describe()}; pass X alone."
            )

    @functools.cached_property
    def digest(self) -> str:
        """A fingerprint of all there is to the problem."""
        return self.objective.digest()

    def elsewhere(self, rank: int) -> float:
        """Return f at a random U of the size of X.

        It tells problems apart whatever holds X: two that agree at the U of a result may differ
        in entries that U explains.
        """
        f = self.for_rank(rank, warn=False).objective
        U = np.random.default_rng(0).random((f.shape[0], int(rank)))
        U *= f.factor_norm / np.linalg.norm(U)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return float(f.value(Point(f.ops, f.ops.put(U.astype(f.dtype)))))

    def __repr__(self) -> str:
        n = self.objective.shape[0]
        storage = type(self.objective.storage).__name__
        return f"Problem({n} x {n} {storage}, minimise {self.objective.describe()})"

    def for_rank(self, rank: int, *, warn: bool = True) -> Problem:
        """Return it ready for factors of ``rank`` columns; warn of rows that are hardly seen."""
        if self.rank == rank:
            return self
        check_rank(rank, self.objective.shape[0])
        f = self.objective.for_rank(int(rank), warn=warn)
        ready = copy.copy(self)
        if f is not self.objective:
            ready = Problem.around(f, self.given)
            ready.attribute_names = self.attribute_names
        ready.rank = int(rank)
        return ready

    def attached(self, U: np.ndarray, V: np.ndarray) -> Attached | None:
        """Return what stands below the factors of a run; None where nothing does."""
        f = self.objective
        if f.rows == f.shape[0]:
            return None
        from symnmf.objectives.attributed import Attributed

        assert isinstance(f, Attributed)
        return Attached(U, V, f.weight, self.attribute_names)

    def with_threads(self, threads: Threads) -> Problem:
        """Return it for use on these threads."""
        other = copy.copy(self)
        other.objective = self.objective.with_threads(threads)
        return other

    def with_storage(self, storage: SymmetricArray) -> Problem:
        """Return it with another storage of the X of its runs, which several starts share, say."""
        other = copy.copy(self)
        other.objective = self.objective.with_storage(storage)
        return other


def _likelihood(X: Any, loss: str, told: dict[str, Any]) -> Objective:
    """Return the likelihood of X, and refuse what only a misfit has."""
    refused = ("weights", "allow_negative", "l1", "ridge", "links", "device", "attributes")
    for name in refused:
        if says(told[name]):
            raise InputError(
                f"{name} cannot be combined with loss={loss!r}; leave one of them out."
            )
    if isinstance(X, SymmetricArray) and not isinstance(X, SymmetricMatrix):
        raise InputError(
            f"loss={loss!r} is for matrices and X is a {type(X).__name__}; leave it out."
        )
    from symnmf.objectives.likelihood import likelihood_of

    names = ("mask", "missing", "ignore_diagonal", "n_jobs")
    return likelihood_of(X, loss, **{name: told[name] for name in names})


def says(value: Any) -> bool:
    """Whether an option says anything: arrays do, None, False and 0 do not."""
    return value is not None and (not isinstance(value, bool | int | float) or bool(value))


def _with_no_options(f: Objective, told: dict[str, Any]) -> Objective:
    """Return the objective that X brings on the threads asked for; refuse options of matrices."""
    for name in changed({name: told[name] for name in names_in(ProblemOptions)}):
        if name not in ("loss", "attribute_weight", "layer_weights"):
            raise InputError(
                f"{name} is for matrices and X is a {type(f.storage).__name__}; leave it out."
            )
    n_jobs = told["n_jobs"]
    return f if n_jobs is None else f.with_threads(Threads(n_jobs))


def check_weight(value: Any, name: str) -> float:
    """Return the weight of a term, or say what is wrong with it."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and np.isfinite(value) and value >= 0):
        raise InputError(f"{name} must be a number of at least 0, got {value!r}.")
    return float(value)


def _links(links: Any, f: MatrixObjective, n_jobs: int | None) -> Links:
    """Return -sum c_ij <u_i, u_j> as a term 1/2 <Q U, U>, Q = -2 C, on their device."""
    dtype = f.dtype
    if sp.issparse(links):
        check_indices(links, "links")
    with said_as_input_errors("links"):
        Q = sp.csr_array(links, dtype=dtype) if sp.issparse(links) else np.array(links, dtype=dtype)
    if Q.shape != f.shape:
        raise InputError(
            f"links must have the shape of X, {f.shape[0]} x {f.shape[0]}, got "
            f"{' x '.join(map(str, Q.shape))}."
        )
    matrix = as_symmetric(-2.0 * Q, n_jobs=n_jobs, allow_negative=True, name="links")
    place = getattr(f.ops, "device", None)  # of the factors; None for the host
    return Links(matrix if place is None else on_device(matrix, place))


def check_rank(rank: int, n: int) -> None:
    """Refuse a rank outside 1..n."""
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
    if not whole or not 1 <= rank <= n:
        raise InputError(
            f"rank must be a whole number from 1 to the {n} row(s) of X, got {rank!r}."
        )

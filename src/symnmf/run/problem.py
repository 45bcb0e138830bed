"""What is to be factorized: X, what counts of it and what is added, checked once."""

from __future__ import annotations

import copy
import functools
from typing import Any, Unpack

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.interchange import column_names, received
from symnmf.objectives import MatrixObjective, Objective
from symnmf.objectives.losses import FROBENIUS
from symnmf.objectives.observing import observed
from symnmf.objectives.terms import TERMS
from symnmf.options import ProblemOptions, changed, documented
from symnmf.parallel import Threads
from symnmf.run.result import Attached
from symnmf.storage import SymmetricArray
from symnmf.storage.layers import is_layers

#: The options that a likelihood takes.
LIKELIHOOD_TAKES = ("mask", "missing", "ignore_diagonal")


@documented
class Problem:
    r"""The problem to solve: the misfit to the observed entries of X, and terms on U.

    .. math:: f(U) = \tfrac12 \sum_{ij} w_{ij} (x_{ij} - \langle u_i, u_j\rangle)^2
        + l_1 \sum_{ij} u_{ij} + \tfrac{\rho}{2} \|U\|_F^2 - \sum_{ij} c_{ij}\langle u_i, u_j\rangle
        + \tfrac{a}{2} \frac{\|X\|^2}{\|F\|^2} \|F - UW^\top\|_F^2

    Every function that accepts X accepts a Problem, and then does not check or scan X again.

    Parameters
    ----------
    X : array-like, scipy sparse, torch tensor, a matrix of symnmf.storage or on disk, n x n
        As for :func:`symnmf.factorize`; or a list of such matrices with the same rows, the layers.
    {mask, weights, missing, ignore_diagonal, allow_negative, l1, ridge, links, loss, attributes,
    attribute_weight, layer_weights, n_jobs, device}

    Attributes
    ----------
    objective : Objective
        f.

    Notes
    -----
    w are ``weights`` over the largest of them, so W and 2 W are one problem; c is ``links``, F is
    ``attributes`` and a their weight. W >= 0 has a row for each column of F, and ``W`` of a result
    shows which attributes belong to each cluster. Several layers are the weighted sum of their
    misfits, with weights of sum 1; ``mask`` may then be a list with a mask or None for each.

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

    @checked(ProblemOptions)
    def __init__(
        self,
        X: Any,
        *,
        n_jobs: int | None = None,
        device: Any = None,
        **options: Unpack[ProblemOptions],
    ) -> None:
        given, X = X, received(X)
        f = _objective(X, changed(options), n_jobs, device)
        self._set(f, given, column_names(options.get("attributes")))

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

    def must_be_plain(self, what: str) -> None:
        """Refuse hidden entries, weights and terms, which ``what`` would have to leave out."""
        f = self.objective
        if not f.plain_misfit or getattr(f, "hidden", None) is not None:
            raise InputError(
                f"{what} needs every entry of X and no terms, and the Problem is to minimise "
                f"{f.describe()}; pass X alone."
            )

    @functools.cached_property
    def digest(self) -> str:
        """A fingerprint of all there is to the problem."""
        return self.objective.digest()

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
        f: Any = self.objective
        if f.rows == f.shape[0]:
            return None
        return Attached(U, V, f.weight, self.attribute_names)

    def with_threads(self, threads: Threads) -> Problem:
        """Return it for use on these threads."""
        other = copy.copy(self)
        other.objective = self.objective.with_threads(threads)
        return other


def _objective(X: Any, options: dict[str, Any], n_jobs: int | None, device: Any) -> Objective:
    """Return what is minimised for X with the options that are not at their defaults."""
    options = {name: value for name, value in options.items() if value is not None}
    loss = options.pop("loss", FROBENIUS)
    own = X.own_objective() if isinstance(X, SymmetricArray) else None
    if own is not None:
        what = f"is for matrices and X is a {type(X).__name__}"
        for name in options if loss == FROBENIUS else ("loss",):
            raise InputError(f"{name} {what}; leave it out.")
        return own if n_jobs is None else own.with_threads(Threads(n_jobs))
    if loss != FROBENIUS:
        from symnmf.objectives.likelihood import likelihood_of

        seen = {name: options.pop(name) for name in LIKELIHOOD_TAKES if name in options}
        for name in (*options, *(["device"] if device is not None else [])):
            raise InputError(
                f"{name} cannot be combined with loss={loss!r}; leave one of them out."
            )
        return likelihood_of(X, loss, n_jobs=n_jobs, **seen)
    terms = {name: options.pop(name) for name in TERMS if name in options}
    table, share = options.pop("attributes", None), options.pop("attribute_weight", 1.0)
    shares = options.pop("layer_weights", None)
    place = {"n_jobs": n_jobs, "device": device}
    f: MatrixObjective
    if is_layers(X):
        if "weights" in options:
            raise InputError("weights is for one X and X has layers; use layer_weights or mask.")
        from symnmf.objectives.layering import layered

        f = layered(X, shares, **options, **place)
    elif shares is not None:
        raise InputError("layer_weights is for a list of layers and X is one matrix.")
    else:
        f = observed(X, **options, **place)
    if terms:
        f = f.with_terms(*(TERMS[name].of(value, f, n_jobs) for name, value in terms.items()))
    if table is not None:
        from symnmf.objectives.attributed import with_table

        f = with_table(f, table, share)
    return f


def check_rank(rank: int, n: int) -> None:
    """Refuse a rank outside 1..n."""
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool)
    if not whole or not 1 <= rank <= n:
        raise InputError(
            f"rank must be a whole number from 1 to the {n} row(s) of X, got {rank!r}."
        )

"""The result of a run: always of the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.calls import Call, Seconds
from symnmf.errors import InputError
from symnmf.interchange import as_given, is_dlpack, is_tensor, to_host
from symnmf.naming import lookup
from symnmf.storage.indices import check_indices

if TYPE_CHECKING:
    from symnmf.bounds import Bound
    from symnmf.run.problem import Problem

Status = Literal["converged", "max_iter", "max_time", "stopped", "diverged"]

RESULT = "symnmf-result-5"
OTHER = "other_"  # in archives: the third factor and the fourth

#: The label of a row that belongs to no cluster, as in scikit-learn's DBSCAN.
OUTSIDE = -1


@dataclass(frozen=True)
class Snapshot:
    """The argument of a callback: the latest row of the history, and read-only factors."""

    iteration: int
    seconds: float
    objective: float
    value: float
    error: float
    coupling: float
    consensus: float
    stationarity: float
    _U: Callable[[], np.ndarray] = field(repr=False)
    _V: Callable[[], np.ndarray] = field(repr=False)

    @property
    def U(self) -> np.ndarray:
        """The factor, as a read-only view that the next iteration overwrites."""
        return self._U()

    @property
    def V(self) -> np.ndarray:
        """The second factor, likewise."""
        return self._V()


#: The columns of a history.
COLUMNS = tuple(each.name for each in fields(Snapshot) if not each.name.startswith("_"))


class History:
    """One row per recorded iteration; ``history["error"]`` is a column as an array.

    ``len(history)`` is the number of rows, but iteration goes over the names of the columns, so
    this is not a ``Mapping``; ``dict(history)`` maps names to arrays, as pandas takes them.

    The columns are ``iteration``; ``seconds`` in the solver, without evaluation; ``objective``,
    that of the split problem with lambda/2 ||U - V||^2; ``value``, the minimised f(U); ``error``,
    E = ||X - U U^T||^2 / ||X||^2, the misfit to the data alone; ``coupling``, lambda;
    ``consensus``, ||U - V||_F; and ``stationarity``, the natural residual of the original problem
    relative to a tenth of ||X||_F ||U||_F.
    """

    columns = COLUMNS

    def __init__(self, rows: Sequence[Sequence[float]] = ()) -> None:
        self._rows = [tuple(row) for row in rows]

    @classmethod
    def of(cls, rows: np.ndarray) -> History:
        """Return the history that a file holds as :meth:`to_array` gave it, or a ValueError."""
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or rows.dtype != np.float64:
            raise ValueError("its history has another shape or type")
        if not np.isfinite(rows[:, 0]).all() or (np.diff(rows[:, 0], prepend=-1.0) <= 0).any():
            raise ValueError("the iterations of its history do not increase")
        return cls(rows.tolist())

    def record(self, row: tuple[float, ...]) -> bool:
        """Add a row, in place of one of the same iteration; return whether it is a new one."""
        new = self.last_iteration != row[0]
        if not new:
            self.drop_last()
        self._rows.append(row)
        return new

    def drop_last(self) -> None:
        """Leave out the last row."""
        del self._rows[-1]

    @property
    def last_iteration(self) -> int:
        """The iteration of the last row; -1 without one."""
        return int(self._rows[-1][0]) if self._rows else -1

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns; with them ``dict(history)`` and ``**history`` work."""
        return COLUMNS

    def __getitem__(self, column: str) -> np.ndarray:
        index = lookup(column, {name: i for i, name in enumerate(COLUMNS)}, "history column")
        kind = np.int64 if COLUMNS[index] == "iteration" else np.float64
        return np.array([row[index] for row in self._rows], dtype=kind)

    def __repr__(self) -> str:
        if not len(self):
            return "History(empty)"
        return (
            f"History({len(self)} rows, iterations {self['iteration'][0]} to "
            f"{self['iteration'][-1]}, error {self['error'][0]:.4g} to {self['error'][-1]:.4g})"
        )

    def to_array(self) -> np.ndarray:
        """Return all rows as one array, columns in the order of ``History.columns``."""
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))


def membership_shares(U: Any) -> Any:
    """Return U with rows scaled to sum to 1; a row of zeros stays zero."""
    if sp.issparse(U):
        totals = np.repeat(np.asarray(U.sum(axis=1)).ravel(), np.diff(U.indptr))
        return sp.csr_array((U.data / totals, U.indices, U.indptr), U.shape)
    totals = U.sum(axis=1, keepdims=True)
    return U / np.where(totals > 0, totals, 1)


def cluster_labels(U: Any) -> np.ndarray:
    """Return the column of the largest entry of each row; -1 for a row of zeros."""
    if sp.issparse(U):
        filled = np.diff(U.indptr) > 0
        return np.where(filled, np.asarray(U.argmax(axis=1)).ravel() if U.nnz else 0, OUTSIDE)
    return np.where(U.any(axis=1), np.argmax(U, axis=1), OUTSIDE)


#: Called with the latest snapshot; a true return value stops the run.
Callback = Callable[[Snapshot], Any]


@dataclass(frozen=True, eq=False)
class Attached:
    """What was fitted below U: the factor of a table of attributes.

    ``U`` and ``V`` are the rows of the two factors that belong to the columns of the table, and
    ``scale`` times W; ``names`` is what the columns are called.
    """

    U: np.ndarray
    V: np.ndarray
    scale: float
    names: list[Any] | None = None

    def in_order(self, order: np.ndarray) -> Attached:
        """Return it with its columns in this order."""
        U, V = (np.ascontiguousarray(factor[:, order]) for factor in (self.U, self.V))
        return replace(self, U=U, V=V)


#: The numbers and words of a result that a file holds, and what they are.
SAVED = {
    "value": float,
    "error": float,
    "n_iter": int,
    "status": str,
    "coupling": float,
    "solver": str,
    "tol": float,
    "start_misfit": float,
    "passes": int,
    "background": float,
}


@dataclass(frozen=True, eq=False)
class Result:
    """A finished factorization X ~ U U^T.

    Attributes
    ----------
    U, V : ndarray of shape (n, r), torch tensor if X is one, or csr_array if U is row-sparse
        The factors. V equals U for methods on the original problem, and up to ``tol`` once a split
        method has converged.
    value : float
        f(U), the value that was minimised: half the squared misfit plus the added terms.
    error : float
        E = ||X - U U^T||_F^2 / ||X||_F^2, the misfit to the data alone, over observed entries.
    n_iter : int
        The number of iterations.
    status : str
        "converged", "max_iter", "max_time", "stopped" (by a callback or an interrupt) or
        "diverged".
    coupling : float
        The last lambda; 0 for methods without one.
    history : History
        One row per recorded iteration.
    solver : str
        The name of the method.
    tol : float
        The tolerance of the run.
    others : tuple of ndarray
        The third and fourth factor of a split method for tensors, else empty.
    seconds : Seconds
        Wall-clock time of the call, in total and by part: ``check``, ``start``, ``solve``,
        ``evaluate``; see :class:`symnmf.calls.Seconds`.
    passes : int
        How often X was read: by its check, by every product with a factor, and by every misfit or
        sweep over its entries.
    attached : Attached or None
        The factor of a table of attributes, scaled as in the run; ``W`` is in the table's units.
    background : float
        The rate of an edge that no community explains, where U is row-sparse; else NaN.
    """

    U: Any
    V: Any
    value: float
    error: float
    n_iter: int
    status: Status
    coupling: float
    history: History = field(repr=False)
    solver: str = ""
    tol: float = field(default=0.0, repr=False)
    others: tuple[np.ndarray, ...] = field(default=(), repr=False)
    #: the root of 2 f(U_0), which a certificate refers to
    start_misfit: float = field(default=float("nan"), repr=False)
    seconds: Seconds = field(default=Seconds(float("nan")), repr=False)
    passes: int = field(default=0, repr=False)
    attached: Attached | None = field(default=None, repr=False)
    background: float = field(default=float("nan"), repr=False)
    #: what a run of a row-sparse U measured at its end
    measured: Any = field(default=None, repr=False)
    #: what was factorized; a result that was saved or pickled has left it behind
    problem: Problem | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.U.shape) != 2 or self.V.shape != self.U.shape:
            raise InputError(
                f"U and V must be two factors of one shape n x r, got {self.U.shape} and "
                f"{self.V.shape}."
            )

    def __repr__(self) -> str:
        n, r = self.U.shape
        return (
            f"Result({self.solver}, {n} x {r}, {self.status} after {self.n_iter} iterations, "
            f"error={self.error:.6g})"
        )

    @property
    def elapsed(self) -> np.ndarray:
        """Seconds from the call to each row of the history; the last row is the return.

        Time outside the iterations, such as the evaluation of the error, is distributed over them
        in proportion to their time. The start comes before the first row.
        """
        solved = self.history["seconds"]
        if not len(solved) or not self.seconds.total > 0 or not solved[-1] > 0:
            return solved
        start = min(self.seconds.start, self.seconds.total)
        return start + solved * ((self.seconds.total - start) / solved[-1])

    @property
    def W(self) -> np.ndarray | None:
        """What each cluster is about: F ~ U W^T, m x r; None without a table of attributes."""
        found = self.attached
        return None if found is None else found.U / found.scale

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """The factors of the run as a whole: U and V, on top of W if there is a table."""
        U, V, below = to_host(self.U), to_host(self.V), self.attached
        if below is None:
            return U, V
        whole = np.vstack([U, below.U])
        return whole, whole if self.V is self.U else np.vstack([V, below.V])

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each row: the column of its largest entry (the paper's rule).

        -1 for a row of zeros, which belongs to no cluster.
        """
        return as_given(cluster_labels(to_host(self.U)), self.U)

    @property
    def membership(self) -> Any:
        """U with rows scaled to sum 1; a row of zeros stays zero."""
        return as_given(membership_shares(to_host(self.U)), self.U)

    def as_given(self, X: Any) -> Result:
        """Return the result with factors of the kind that X is: tensors where it is a tensor."""
        if not is_tensor(X) and not is_dlpack(X):
            return self
        U = as_given(self.U, X)
        return replace(self, U=U, V=U if self.V is self.U else as_given(self.V, X))

    def of_call(self, call: Call) -> Result:
        """Return the result with the seconds and the readings of X of a call so far."""
        return replace(self, seconds=call.seconds, passes=call.passes)

    @property
    def dead_columns(self) -> np.ndarray:
        """The columns of U that are zero: a cluster asked for and not found."""
        if sp.issparse(self.U):
            return np.flatnonzero(np.bincount(self.U.indices, minlength=self.U.shape[1]) == 0)
        return np.flatnonzero(~to_host(self.U).any(axis=0))

    def certificate(self, problem: Any = None, *, tol: float | None = None) -> Any:
        """Check this result against the theorems; see :class:`symnmf.run.certificate.Certificate`.

        Parameters
        ----------
        problem : Problem or X, optional
            What was factorized. Needed only for a result that was loaded or unpickled; pass a
            :class:`symnmf.Problem` if it had options besides X.
        tol : float, optional
            The tolerance to meet; by default that of the run, or 1e-5 if it had none.
        """
        if sp.issparse(self.U):
            if self.measured is None:
                raise InputError("this result was read from a file, which keeps no certificate.")
            return self.measured if tol is None else replace(self.measured, tol=float(tol))
        from symnmf.run.certificate import certify

        return certify(problem, self, tol=tol if tol is not None else self.tol or 1e-5)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"problem": None}

    @checked()
    def bound(
        self, problem: Any = None, *, max_time: float | None = 10.0, tol: float = 1e-6
    ) -> Bound:
        """Bound the error that any U >= 0 with as many columns can have.

        It is a :class:`symnmf.bounds.Bound`.

        Parameters
        ----------
        problem : Problem or X, optional
            What was factorized; as for :meth:`certificate`.
        max_time : float or None
            Seconds for the search that raises the bound; 0 for the eigenvalues of X alone, None for
            no limit.
        tol : float
            The result counts as a global minimum if the gap is at most this.
        """
        from symnmf.run.bounding import bound_result
        from symnmf.run.certificate import problem_of

        return bound_result(problem_of(problem, self), self, max_time=max_time, tol=tol)

    @checked()
    def save(self, path: str | Path, *, names: Sequence[Any] | None = None) -> None:
        """Write to an npz archive (no pickle), atomically.

        ``names`` of the rows, if given, are stored with the factors as ``names``.
        """
        n = self.U.shape[0]
        if names is not None and len(names) != n:
            raise InputError(
                f"names must have one entry for each of the {n} rows, got {len(names)}."
            )
        from symnmf.archives import write_archive

        arrays: dict[str, Any] = {"format": RESULT, "history": self.history.to_array()}
        arrays |= {name: getattr(self, name) for name in SAVED}
        arrays["seconds"] = astuple(self.seconds)
        arrays |= {f"{OTHER}{number}": factor for number, factor in enumerate(self.others)}
        U = to_host(self.U)
        if sp.issparse(U):
            arrays |= {"U_data": U.data, "U_indices": U.indices, "U_indptr": U.indptr}
            arrays["U_columns"] = U.shape[1]
        else:
            arrays |= {"U": U, "V": to_host(self.V)}
        if names is not None:
            arrays["names"] = _name_array(names)
        below = self.attached
        if below is not None:
            arrays |= {"below_U": below.U, "below_V": below.V, "below_scale": below.scale}
            if below.names is not None:
                arrays["below_names"] = _name_array(below.names)
        write_archive(path, {name: np.asarray(array) for name, array in arrays.items()})

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read what :meth:`save` wrote; a file that is not that or is damaged is an InputError."""
        from symnmf.archives import read_archive

        stored = read_archive(path, RESULT)
        try:
            U, V = _read_factors(stored)
            loaded = cls(
                U=U,
                V=V,
                **{name: kind(stored[name][()]) for name, kind in SAVED.items()},
                history=History.of(stored["history"]),
                others=tuple(stored[name] for name in sorted(stored) if name.startswith(OTHER)),
                attached=_read_below(stored),
                seconds=Seconds(*map(float, stored["seconds"])),
            )
            loaded._check()
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"{path} is not a whole symnmf result ({error}).") from error
        return loaded

    def _check(self) -> None:
        """Refuse what compiled code or a reader could not go on with."""
        U, below = self.U, self.attached
        factors = [U.data] if sp.issparse(U) else [U, self.V, *self.others]
        if not sp.issparse(U) and any(factor.shape != U.shape for factor in factors):
            raise ValueError("its factors have different shapes")
        if below is not None:
            factors += [below.U, below.V]
            if below.U.shape != below.V.shape or below.U.shape[1:] != U.shape[1:]:
                raise ValueError("the factor of its attributes has another shape")
        if self.status not in get_args(Status):
            raise ValueError(f"the status is {self.status[:20]!r}")
        for factor in factors:
            if factor.dtype not in (np.float32, np.float64) or factor.dtype != U.dtype:
                raise ValueError(f"a factor has the type {factor.dtype}")
            if self.status != "diverged" and not np.isfinite(factor).all():
                raise ValueError("a factor has infinite or NaN entries")
        if (factors[0] < 0).any():  # the second factor of a multiplier method may be
            raise ValueError("U has negative entries")


def _name_array(names: Sequence[Any]) -> np.ndarray:
    whole = all(isinstance(name, int | np.integer) for name in names)
    return np.array([int(name) if whole else str(name) for name in names])


def _read_factors(stored: dict[str, np.ndarray]) -> tuple[Any, Any]:
    if "U_indptr" not in stored:
        return stored["U"], stored["V"]
    indptr, columns = stored["U_indptr"], int(stored["U_columns"])
    parts = (stored["U_data"], stored["U_indices"], indptr)
    U = sp.csr_array(parts, shape=(len(indptr) - 1, columns))
    check_indices(U, "U")  # SciPy's own check overlooks some
    return U, U


def _read_below(stored: dict[str, np.ndarray]) -> Attached | None:
    if "below_U" not in stored:
        return None
    names = stored["below_names"].tolist() if "below_names" in stored else None
    return Attached(stored["below_U"], stored["below_V"], float(stored["below_scale"]), names)

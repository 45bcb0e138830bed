"""The result of a run: always of the same form."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.calls import Call, Seconds
from symnmf.errors import InputError
from symnmf.interchange import as_given, is_dlpack, is_tensor, to_host
from symnmf.naming import lookup
from symnmf.notebook import card
from symnmf.storage import SymmetricArray
from symnmf.storage.indices import check_indices
from symnmf.storage.wrapping import in_memory

if TYPE_CHECKING:
    import pandas as pd

    from symnmf.bounds import Bound
    from symnmf.run.problem import Problem

Status = Literal["converged", "max_iter", "max_time", "stopped", "diverged"]

RESULT = "symnmf-result-4"
OTHER = "other_"  # in archives: the third factor and the fourth

#: The label of a row that belongs to no cluster, as in scikit-learn's DBSCAN.
OUTSIDE = -1

COLUMNS = (
    "iteration",
    "seconds",
    "objective",
    "value",
    "error",
    "coupling",
    "consensus",
    "stationarity",
)


class History:
    """One row per recorded iteration; ``history["error"]`` is a column as an array.

    ``len(history)`` is the number of rows, but iteration goes over the names of the columns, so
    this is not a ``Mapping``; ``dict(history)`` maps names to arrays.

    The columns are ``iteration``; ``seconds`` in the solver, without evaluation; ``objective``,
    that of the split problem with lambda/2 ||U - V||^2; ``value``, the minimised f(U); ``error``,
    E = ||X - U U^T||^2 / ||X||^2, the misfit to the data alone; ``coupling``, lambda;
    ``consensus``, ||U - V||_F; and ``stationarity``, the natural residual of the original problem
    relative to a tenth of ||X||_F ||U||_F.
    """

    columns = COLUMNS

    def __init__(self, rows: np.ndarray | None = None) -> None:
        #: row by row
        self._numbers = array("d")
        if rows is not None:
            self._numbers.frombytes(np.asarray(rows, float).tobytes())

    @classmethod
    def of(cls, rows: np.ndarray) -> History:
        """Return the history that a file holds as :meth:`to_array` gave it, or a ValueError."""
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or rows.dtype != np.float64:
            raise ValueError("its history has another shape or type")
        iteration = rows[:, 0]
        if not ((iteration >= 0) & (iteration == np.floor(iteration)) & (iteration < 2**53)).all():
            raise ValueError("its history counts iterations by something else than whole numbers")
        if (np.diff(iteration) <= 0).any():
            raise ValueError("the iterations of its history do not increase")
        return cls(rows)

    def append(self, row: tuple[float, ...]) -> None:
        self._numbers.extend(row)

    def drop_last(self) -> None:
        """Leave out the last row."""
        del self._numbers[-len(COLUMNS) :]

    @property
    def last_iteration(self) -> int:
        """The iteration of the last row."""
        return int(self._numbers[-len(COLUMNS)])

    def __len__(self) -> int:
        return len(self._numbers) // len(COLUMNS)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns; with them ``dict(history)`` and ``**history`` work."""
        return COLUMNS

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Iterate over the columns as pairs of name and array."""
        return ((column, self[column]) for column in COLUMNS)

    def __getitem__(self, column: str) -> np.ndarray:
        index = lookup(column, {name: i for i, name in enumerate(COLUMNS)}, "history column")
        values = np.array(self._numbers[index :: len(COLUMNS)])
        return values.astype(np.int64) if COLUMNS[index] == "iteration" else values

    def __repr__(self) -> str:
        if not len(self):
            return "History(empty)"
        return (
            f"History({len(self)} rows, iterations {self['iteration'][0]} to "
            f"{self['iteration'][-1]}, error {self['error'][0]:.4g} to {self['error'][-1]:.4g})"
        )

    def to_array(self) -> np.ndarray:
        """Return all rows as one array, columns in the order of ``History.columns``."""
        return np.array(self._numbers).reshape(-1, len(COLUMNS))

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame (needs the extra ``pandas``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "History.to_pandas needs pandas: pip install 'symnmf[pandas]'."
            ) from error
        return pd.DataFrame(dict(self))


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
        return _read_only(self._U())

    @property
    def V(self) -> np.ndarray:
        """The second factor, likewise."""
        return _read_only(self._V())


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


#: Called with the latest snapshot; a true return value stops the run.
Callback = Callable[[Snapshot], Any]


@dataclass(frozen=True, eq=False)
class Attached:
    """What was fitted below U: the factor of a table of attributes.

    Attributes
    ----------
    U, V : ndarray of shape (m, r)
        Rows of the two factors of a run that belong to the columns of the table.
    scale : float
        They are this times W.
    names : list or None
        What the columns of the table are called.
    """

    U: np.ndarray
    V: np.ndarray
    scale: float
    names: list[Any] | None = None

    def in_order(self, order: np.ndarray) -> Attached:
        """Return it with its columns in this order."""
        U, V = (np.ascontiguousarray(factor[:, order]) for factor in (self.U, self.V))
        return replace(self, U=U, V=V)


def _name_array(names: Sequence[Any]) -> np.ndarray:
    whole = all(isinstance(name, int | np.integer) for name in names)
    return np.array([int(name) if whole else str(name) for name in names])


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
        ``evaluate``; see :class:`symnmf.Seconds`.
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
    seconds: Seconds = field(default_factory=lambda: Seconds(float("nan")), repr=False)
    passes: int = field(default=0, repr=False)
    attached: Attached | None = field(default=None, repr=False)
    background: float = field(default=float("nan"), repr=False)
    #: what a run of a row-sparse U measured at its end
    measured: Any = field(default=None, repr=False)
    #: what was factorized; a result that was saved or pickled has left it behind
    problem: Problem | None = field(default=None, repr=False)
    #: the fingerprint of that, where it was left behind
    problem_digest: str = field(default="", repr=False)
    #: and what it was at a random U; see :meth:`symnmf.Problem.elsewhere`
    problem_elsewhere: float = field(default=float("nan"), repr=False)

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

    def _repr_html_(self) -> str:
        n, r = self.U.shape
        rows = [
            ("U", f"{n} x {r}"),
            ("relative squared error", f"{self.error:.6g}"),
            ("ended", f"{self.status} after {self.n_iter} iterations"),
            ("solver", self.solver),
            ("seconds", f"{self.seconds.total:.3g}"),
        ]
        return card("Result", "X ≈ U Uᵀ, U ≥ 0", rows)

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
        """Check this result against the theorems; see :class:`symnmf.Certificate`.

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

    def digest(self) -> str:
        """Return the digest of the problem."""
        return self.problem_digest if self.problem is None else self.problem.digest

    def elsewhere(self) -> float:
        """Return the value of the problem at a random U; NaN if that is not known.

        It takes a product with X, which is not asked for where X is not in memory: a result can be
        saved after its file or its cluster has gone.
        """
        if self.problem is None:
            return self.problem_elsewhere
        if isinstance(in_memory(self.problem.X), SymmetricArray):
            return float("nan")
        return self.problem.elsewhere(self.U.shape[1])

    def __getstate__(self) -> dict[str, Any]:
        left = {"problem_digest": self.digest(), "problem_elsewhere": self.elsewhere()}
        return self.__dict__ | left | {"problem": None}

    @checked()
    def bound(
        self, problem: Any = None, *, max_time: float | None = 10.0, tol: float = 1e-6
    ) -> Bound:
        """Bound the error that any U >= 0 with as many columns can have; see :class:`symnmf.Bound`.

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
        labels = {} if names is None else {"names": _name_array(names)}
        from symnmf.archives import write_archive

        write_archive(
            path,
            {
                **labels,
                "format": np.array(RESULT),
                "problem": np.array(self.digest()),
                "elsewhere": np.array(self.elsewhere()),
                "value": np.array(self.value),
                **_kept_factors(to_host(self.U), to_host(self.V)),
                "background": np.array(self.background),
                "error": np.array(self.error),
                "n_iter": np.array(self.n_iter),
                "status": np.array(self.status),
                "coupling": np.array(self.coupling),
                "solver": np.array(self.solver),
                "tol": np.array(self.tol),
                "start_misfit": np.array(self.start_misfit),
                **{f"{OTHER}{number}": factor for number, factor in enumerate(self.others)},
                **_kept_below(self.attached),
                "history": self.history.to_array(),
                "seconds": np.array(astuple(self.seconds)),
                "passes": np.array(self.passes),
            },
        )

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
                background=float(stored["background"]),
                value=float(stored["value"]),
                error=float(stored["error"]),
                n_iter=int(stored["n_iter"]),
                status=str(stored["status"]),  # type: ignore[arg-type]
                coupling=float(stored["coupling"]),
                history=History.of(stored["history"]),
                solver=str(stored["solver"]),
                tol=float(stored["tol"]),
                start_misfit=float(stored["start_misfit"]),
                others=tuple(stored[n] for n in sorted(stored) if n.startswith(OTHER)),
                attached=_read_below(stored),
                seconds=Seconds(*map(float, stored["seconds"])),
                passes=int(stored["passes"]),
                problem_digest=str(stored["problem"]),
                problem_elsewhere=float(stored["elsewhere"]),
            )
            loaded._check()
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"{path} is not a whole symnmf result ({error}).") from error
        return loaded

    def _check(self) -> None:
        """Refuse what no run gives back: the fields of a file, not of a run."""
        numbers = [self.error, self.value, self.coupling]
        others = ((f"{OTHER}{number}", factor) for number, factor in enumerate(self.others))
        for name, factor in (("U", self.U), ("V", self.V), *others):
            if factor.dtype not in (np.float32, np.float64) or factor.dtype != self.U.dtype:
                raise ValueError(f"{name} has the type {factor.dtype}")
            entries = factor.data if sp.issparse(factor) else factor
            if self.status != "diverged" and not np.isfinite(entries).all():
                raise ValueError(f"{name} has infinite or NaN entries")
            if factor.shape != self.U.shape:
                raise ValueError(f"{name} has the shape {factor.shape}")
        entries = self.U.data if sp.issparse(self.U) else self.U
        if (entries < 0).any():  # the second factor of a multiplier method may be
            raise ValueError("U has negative entries")
        if self.status not in get_args(Status):
            raise ValueError(f"the status is {self.status[:20]!r}")
        if self.status != "diverged" and not all(np.isfinite(numbers)):
            raise ValueError("its numbers are not finite")
        if self.n_iter < 0 or not self.coupling >= 0 or not self.tol >= 0:
            raise ValueError("a number that cannot be negative is")


def _kept_factors(U: Any, V: Any) -> dict[str, np.ndarray]:
    if not sp.issparse(U):
        return {"U": U, "V": V}
    parts = {"data": U.data, "indices": U.indices, "indptr": U.indptr}
    return {"U_columns": np.array(U.shape[1])} | {f"U_{k}": part for k, part in parts.items()}


def _read_factors(stored: dict[str, np.ndarray]) -> tuple[Any, Any]:
    if "U_indptr" not in stored:
        return stored["U"], stored["V"]
    indptr, columns = stored["U_indptr"], int(stored["U_columns"])
    parts = (stored["U_data"], stored["U_indices"], indptr)
    U = sp.csr_array(parts, shape=(len(indptr) - 1, columns))
    check_indices(U, "U")  # SciPy's own check overlooks some
    return U, U


def _kept_below(attached: Attached | None) -> dict[str, np.ndarray]:
    """Return what an archive holds of a table's factor."""
    if attached is None:
        return {}
    named = {} if attached.names is None else {"attribute_names": _name_array(attached.names)}
    parts = {"below_U": attached.U, "below_V": attached.V, "below_scale": np.array(attached.scale)}
    return parts | named


def _read_below(stored: Any) -> Attached | None:
    """Return what :func:`_kept_below` wrote."""
    if "below_U" not in stored:
        return None
    names = stored["attribute_names"].tolist() if "attribute_names" in stored else None
    U, V, scale = stored["below_U"], stored["below_V"], float(stored["below_scale"])
    columns = stored["U"].shape[1]
    right = U.ndim == 2 and U.shape == V.shape and U.shape[1] == columns and scale > 0.0
    if not (right and np.isfinite(U).all() and np.isfinite(V).all() and U.min(initial=0.0) >= 0):
        raise ValueError("the factor of its attributes is damaged")
    return Attached(U, V, scale, names)

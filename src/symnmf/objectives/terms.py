"""Terms that can be added to an objective: one class each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
from symnmf.ops import Factor, Ops
from symnmf.storage import as_symmetric, on_device
from symnmf.storage.indices import check_indices
from symnmf.storage.symmetric import as_float32

if TYPE_CHECKING:
    from symnmf.objectives.objective import Objective


class Term(ABC):
    r"""A term 1/2 <Q U, U> + c sum(U) with a symmetric matrix Q and a number c >= 0.

    In a split problem it is 1/2 <Q U, V> + c/2 sum(U) + c/2 sum(V), which is the same at U = V.
    A subclass says what Q or c is.
    """

    @classmethod
    def of(cls, value: Any, f: Objective, n_jobs: int | None) -> Term:
        """Return the term for the value of its option; ``f`` is what it will be added to."""
        return cls(float(value))  # type: ignore[call-arg]

    def times(self, ops: Ops, V: Factor) -> tuple[float, Factor] | None:
        """Return Q V, as a number times a factor; None where Q is 0."""
        return None

    @property
    def size(self) -> float:
        """||Q||_2, or a bound on it."""
        return 0.0

    @property
    def slope(self) -> float:
        """c: how fast an entry of U that leaves 0 raises the term."""
        return 0.0

    @property
    def nonnegative(self) -> bool:
        """Whether the term is at least 0 for all factors that are."""
        return True

    @abstractmethod
    def describe(self) -> str:
        """Return the term in a formula, for people; it is part of the fingerprint of a problem."""


def check_quadratic(term: Term, ops: Ops, n: int, dtype: np.dtype) -> None:
    """Refuse a term whose Q is not one symmetric matrix, which no line search could follow."""
    rng = np.random.default_rng(0)
    A, B = (rng.random((n, 2)).astype(dtype) for _ in range(2))
    images = []
    for T in (A, B, A + 2 * B):
        image = term.times(ops, ops.put(T))
        if image is None:
            return
        images.append(image[0] * ops.get(image[1]).astype(np.float64))
    of_A, of_B, of_sum = images
    rounding = 1e3 * float(np.finfo(dtype).eps) * float(np.linalg.norm(of_sum))
    bent = np.linalg.norm(of_sum - of_A - 2 * of_B)
    skew = abs(np.vdot(of_A, B) - np.vdot(of_B, A)) / np.linalg.norm(B)
    if max(bent, skew) > rounding:
        raise InputError(
            f"the term {term.describe()} is not quadratic: times(ops, V) must be Q V with one "
            f"symmetric matrix Q; leave it out."
        )


@dataclass(frozen=True)
class L1(Term):
    """weight * sum_ij u_ij: fewer and sharper memberships."""

    weight: float

    @property
    def slope(self) -> float:
        return self.weight

    def describe(self) -> str:
        return f"{self.weight:.12g} sum(U)"


@dataclass(frozen=True, eq=False)
class Ridge(Term):
    """weight/2 ||U||_F^2, or of some rows only.

    ``rows`` are 1 for the rows that it holds; None for all of them.
    """

    weight: float
    rows: np.ndarray | None = None

    def times(self, ops: Ops, V: Factor) -> tuple[float, Factor]:
        return self.weight, V if self.rows is None else ops.weigh_rows(V, self.rows)

    @property
    def size(self) -> float:
        return self.weight

    def describe(self) -> str:
        if self.rows is None:
            return f"{self.weight:.12g}/2 ||U||^2"
        return f"{self.weight:.12g}/2 ||U_S||^2 over {int(self.rows.sum())} hardly observed rows S"


@dataclass(frozen=True, eq=False)
class Links(Term):
    """1/2 <Q U, U> for a sparse symmetric Q: positive entries keep two rows apart."""

    matrix: Any  # a sparse storage of Q, which lives where X does

    @classmethod
    def of(cls, value: Any, f: Objective, n_jobs: int | None) -> Links:
        """Return -sum c_ij <u_i, u_j> as 1/2 <Q U, U>, Q = -2 C."""
        if sp.issparse(value):
            check_indices(value, "links")
        with said_as_input_errors("links"):
            C = sp.csr_array(
                value if sp.issparse(value) else np.array(value, f.dtype), dtype=f.dtype
            )
        if C.shape != f.shape:
            raise InputError(
                f"links must have the shape of X, {f.shape[0]} x {f.shape[0]}, got "
                f"{' x '.join(map(str, C.shape))}."
            )
        matrix = as_symmetric(-2.0 * C, n_jobs=n_jobs, allow_negative=True, name="links")
        place = getattr(f.ops, "device", None)  # of the factors; None for the host
        return cls(matrix if place is None else on_device(matrix, place))

    def times(self, ops: Ops, V: Factor) -> tuple[float, Factor]:
        matrix: Any = as_float32(self.matrix) if ops.dtype(V) == np.float32 else self.matrix
        return 1.0, matrix.matmul(V)

    @property
    def size(self) -> float:
        return float(self.matrix.norm)

    @property
    def nonnegative(self) -> bool:
        return not self.matrix.signed

    def describe(self) -> str:
        return f"1/2 <Q U, U> with Q {self.matrix.digest()}"


#: The terms that :class:`symnmf.Problem` takes, by the names of their options.
TERMS: dict[str, type[Term]] = {"l1": L1, "ridge": Ridge, "links": Links}

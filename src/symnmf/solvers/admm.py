"""ADMM for symmetric NMF (Lu, Hong and Wang, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import TINY_TO_HUGE, check_ranges
from symnmf.errors import InputError
from symnmf.objectives import Objective
from symnmf.ops import Factor, Nnls
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, Point, State

MULTIPLIER, RHO, APART = "admm_multiplier", "admm_rho", "admm_apart"
FIRST_RHO = "admm_first_rho"
#: The authors' rule: rho grows by about CREEP per iteration up to RHO_LIMIT times its first value.
CREEP, RHO_LIMIT = 1e-3, 6.1
#: Rows that are too long are brought to their bound by projected gradients, to this share of it.
BOUND_TOL, BOUND_STEPS = 1e-12, 1000


@dataclass(frozen=True)
class ADMM(Solver):
    """Minimise 1/2 ||X - A Y^T||^2 subject to Y = A and Y >= 0, with a multiplier L.

    Y = argmin over Y >= 0 of the augmented Lagrangian (exact, row by row); A = (X Y + rho Y + L)
    (Y^T Y + rho I)^-1; L += rho (Y - A). U is Y. V is A, which agrees with it only in the limit
    and may dip below zero until then, so ``consensus`` is the primal residual ||Y - A||_F. rho is
    not the lambda of the paper's theorems: ``coupling`` is 0 and the schedules play no part.

    The theory asks for rho > 6 n tau, with tau a bound on the squared rows of Y, and a proximal
    term (beta/2) ||Y - Y_old||^2 with beta = (6/rho) ||X - A Y^T||^2; :meth:`published` gives its
    authors' rule, under which little moves in an iteration. Chosen here, for the paper's synthetic
    data and for graphs: the defaults below, in which rho grows whenever ||Y - A|| has not fallen
    between two looks; no bound on the rows.

    Parameters
    ----------
    first, limit : float
        The first and the largest rho, in units of ||X||_F.
    growth : float
        Factor by which rho grows.
    every : int
        Iterations between looks at ||Y - A||.
    proximal : float
        Share of the paper's beta; 1 is its proximal term.
    rule : {"residual", "published"}
        How rho moves: as above, or by :meth:`published`, which leaves the first four unused.
    """

    name: ClassVar[str] = "admm"
    summary: ClassVar[str] = "Y >= 0 and A held together by a multiplier (Lu, Hong and Wang 2017)"
    cost: ClassVar[str] = "2 products, n small nonnegative least squares and n solves of size r"

    second_factor: ClassVar[bool] = True
    free_second_factor: ClassVar[bool] = True

    first: float = 0.01
    limit: float = 10.0
    growth: float = 1.5
    every: int = 20
    proximal: float = 0.0
    rule: str = "residual"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, first=TINY_TO_HUGE, limit=TINY_TO_HUGE, growth=(1.0, 1e100))
        check_ranges(self, every=(1, 1e18), proximal=(0.0, 1e100))
        if self.rule not in ("residual", "published"):
            raise InputError(f"rule must be 'residual' or 'published', got {self.rule!r}.")

    @classmethod
    def published(cls) -> ADMM:
        """Return the settings of Lu, Hong and Wang.

        rho_0 = n tau and rho_{k+1} = min(rho_k / (1 - 1e-3 / rho_k), 6.1 n tau), with the whole
        proximal term, and no row of Y longer than sqrt(tau). tau = max_k (X_kk + ||x_k||) / 2,
        which no squared row of a critical U exceeds: with a_i = <u_k, u_i>, a critical point has
        ||a||^2 = <x_k, a>, a sphere on which a_k is at most that.

        The rule is written down from memory of their paper; tau follows as above.
        """
        return cls(proximal=1.0, rule="published")

    def memory(self, f: Objective, rank: int) -> Layout:
        return {
            MULTIPLIER: Kept((f.shape[0], rank), f.dtype, tall=True),
            APART: Kept(least=0.0, infinite=True),
            RHO: Kept(least=0.0),
            FIRST_RHO: Kept(least=0.0),
        }

    @property
    def rows(self) -> Nnls:
        return Nnls()

    def check(self, f: Objective) -> None:
        super().check(f)
        if self.rule == "published" and f.entries is None:
            raise InputError(
                f"ADMM's rule 'published' needs the entries of X, which "
                f"{type(f.storage).__name__} cannot give; use rule='residual'."
            )

    def start(self, f: Objective, U0: Factor) -> State:
        memory = {MULTIPLIER: f.ops.zeros(U0.shape, f.dtype), APART: np.array(np.inf)}
        first = self.first * f.norm
        if self.rule == "published":
            first = len(U0) * _row_bound(f)
        memory |= {RHO: np.array(first), FIRST_RHO: np.array(first)}
        state = State.at(f, U0, f.ops.copy(U0), memory=memory)
        state.U.product(f)  # on the clock, as all others
        return state

    def step(self, f: Objective, state: State) -> None:
        ops, identity_matrix = f.ops, np.eye(state.rank)
        Y, A, multiplier = state.U.values, state.V.values, state.memory[MULTIPLIER]
        if self.rule == "published":
            self._creep(state)
        elif state.iteration % self.every == 0:
            self._adjust(f, state)
        rho, beta = float(state.memory[RHO]), self._proximity(f, state)
        cross = ops.combine((1.0, f.storage.matmul(A)), (rho, A), (-1.0, multiplier), (beta, Y))
        gram = state.V.gram + (rho + beta) * identity_matrix
        Y = ops.solve_rows(self.rows, Y, cross, cross, gram, 0.0)
        if self.rule == "published":
            bound = float(state.memory[FIRST_RHO]) / len(Y)
            Y = ops.put(shortened(ops.get(Y), ops.get(cross), gram, bound))
        U = Point(ops, Y, f.storage.matmul(Y))
        target = ops.combine((1.0, U.product(f)), (rho, Y), (1.0, multiplier))
        A = ops.times(target, _inverse(U.gram + rho * identity_matrix))
        state.U, state.V = U, Point(ops, A)
        state.memory[MULTIPLIER] = ops.combine((1.0, multiplier), (rho, Y), (-rho, A))

    def _creep(self, state: State) -> None:
        """Let rho grow by about ``CREEP`` per iteration, the authors' rule."""
        rho, first = float(state.memory[RHO]), float(state.memory[FIRST_RHO])
        if state.iteration > 0:
            state.memory[RHO] = np.array(min(rho / (1.0 - CREEP / rho), RHO_LIMIT * first))

    def _adjust(self, f: Objective, state: State) -> None:
        apart, size = f.ops.apart(state.U.values, state.V.values), state.V.size
        # below this share of ||A|| the two agree, and a growing rho would only freeze them
        if apart >= float(state.memory[APART]) and apart > 1e-18 * size:
            rho = min(self.growth * float(state.memory[RHO]), self.limit * f.norm)
            state.memory[RHO] = np.array(rho)
        if state.iteration > 0:
            state.memory[APART] = np.array(apart)

    def _proximity(self, f: Objective, state: State) -> float:
        """Return beta."""
        if self.proximal == 0.0:
            return 0.0
        misfit = f.twice_split(state)  # of two factors without a lambda between them
        return self.proximal * 6.0 / float(state.memory[RHO]) * misfit


def _inverse(gram: np.ndarray) -> np.ndarray:
    """Return the inverse; every rho that the rules give has one, a made-up checkpoint's may not."""
    try:
        return np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(gram, hermitian=True)


def shortened(Y: np.ndarray, cross: np.ndarray, gram: np.ndarray, bound: float) -> np.ndarray:
    """Minimise 1/2 <y, gram y> - <cross, y> over y >= 0 with ||y||^2 <= bound, for every row.

    ``Y`` has the minimisers without the bound, which are right where they are short enough.
    """
    long = np.flatnonzero(np.einsum("ij,ij->i", Y, Y) > bound)
    if not len(long):
        return Y
    radius, step = np.sqrt(bound), 1.0 / np.linalg.eigvalsh(gram)[-1]
    rows, target = Y[long], cross[long]
    for _ in range(BOUND_STEPS):
        before = rows
        rows = np.maximum(rows - step * (rows @ gram - target), 0.0)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= radius / np.maximum(length, radius)
        if np.abs(rows - before).max() <= BOUND_TOL * radius:
            break
    Y = Y.copy()
    Y[long] = rows
    return Y


def _row_bound(f: Objective) -> float:
    """Return max_k (X_kk + ||x_k||) / 2, which no squared row of a critical U exceeds."""
    assert f.entries is not None
    entries = f.entries.residual(f.ops.zeros((f.shape[0], 1), f.dtype))  # X - 0
    return float(np.max(np.diagonal(entries) + np.linalg.norm(entries, axis=1)) / 2.0)

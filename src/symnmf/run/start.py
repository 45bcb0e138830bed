"""Starting points U_0."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
from symnmf.interchange import to_host
from symnmf.naming import lookup
from symnmf.objectives import Objective
from symnmf.run.result import Result
from symnmf.run.seeds import as_edges, neighborhood_seeds
from symnmf.run.sketch import WIDTH, sketch_start
from symnmf.run.spectral import SPARE, spectral_start, turning_seconds
from symnmf.state import Point
from symnmf.storage import SymmetricArray, SymmetricMatrix
from symnmf.storage.wrapping import in_memory

#: A given U_0 that is larger or smaller by this factor than one that could explain X is brought to
#: its best multiple.
FAR_OFF = 1e6

#: The start that is chosen for X and the method.
AUTO, SPECTRAL, SKETCH = "auto", "spectral", "sketch"

#: A run begins on a sketch where a product with X takes at least so many seconds, and so many times
#: those of a product with the sketch: measured in benchmarks/sketch.py.
SKETCHED_FROM, SKETCHED_TIMES = 3.5e-3, 2.5

#: Iterations that a start from eigenvectors may cost to turn, and what an iteration does with
#: factors, in floating point operations for each row and squared rank.
TURNED_FOR, FACTOR_WORK = 100, 8.0
#: Starts that a tensor has too.
AT_RANDOM = ("scaled-random", "random")

RandomState = int | None | np.random.Generator | np.random.RandomState


#: A start: U_0 on the host for X, a rank and a seed.
Start = Callable[[Objective, int, RandomState], np.ndarray]


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a Generator, a RandomState or None.

    A whole-number seed gets a stream of its own, so data drawn with ``default_rng(seed)`` do not
    come out equal to the start.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(np.random.SeedSequence(int(random_state), spawn_key=(0x5EED,)))


def as_seed(random_state: RandomState) -> int:
    """Return a whole number for decisions by draws: that of a seed, 0 for None.

    It does not take from a generator, so that the starts are those of a call without the decision,
    and a call without a seed decides the same every time.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(as_generator(copy.deepcopy(random_state)).integers(2**31))


def origin_of(init: Any, random_state: RandomState) -> dict[str, Any]:
    """Return what a checkpoint remembers a start by: a name or a fingerprint, and a seed."""
    if isinstance(init, str):
        name = init
    elif callable(init):
        name = str(getattr(init, "__qualname__", type(init).__qualname__))
    else:
        name = hashlib.blake2b(np.asarray(to_host(init)).tobytes(), digest_size=8).hexdigest()
    if isinstance(random_state, int | np.integer):
        return {"init": name, "random_state": int(random_state)}
    return {"init": name}


def random_start(f: Objective, rank: int, random_state: RandomState) -> np.ndarray:
    """The paper's start: entries uniform on (0, 1)."""
    return as_generator(random_state).random((f.shape[0], rank)).astype(f.dtype)


def scaled_random_start(f: Objective, rank: int, random_state: RandomState) -> np.ndarray:
    """The uniform start times the s that minimises ||X - s^2 U U^T||_F, so it follows X's scale."""
    U = random_start(f, rank, random_state)
    return (_best_scale(f, Point(f.ops, f.ops.put(U))) * U).astype(f.dtype)


def _best_scale(f: Objective, start: Point) -> float:
    """Return the best multiple of a start, or where that is 0 the one with ||U_0||_F^2 = ||X||_F.

    It is 0 for a start on an independent set of the graph, or where negative entries outweigh the
    others (<X U_0, U_0> <= 0); from zeros no method would find its way back.
    """
    best = f.best_multiple(start)
    if best > 0.0 or f.sqnorm == 0.0:
        return best
    return f.factor_norm / math.sqrt(start.size)


def neighborhood_start(f: Objective, rank: int, random_state: RandomState) -> np.ndarray:
    """Neighbourhoods of low conductance, one for each column, see :mod:`symnmf.run.seeds`.

    A node outside has a hundredth of the mean, so that it may join. Columns for which there is no
    neighbourhood begin at random.
    """
    X = in_memory(f.storage)
    if isinstance(X, SymmetricArray):
        raise InputError(
            f"init='neighborhoods' needs X in memory, as an array or a sparse matrix, not as "
            f"{type(X).__name__}; choose another start."
        )
    # what holds nodes together tells where neighbourhoods are
    seeds = neighborhood_seeds(as_edges(sp.csr_array(X).maximum(0) if f.signed else X), rank)
    U = np.zeros((f.shape[0], rank))
    for column, (members, density) in enumerate(zip(seeds.sets, seeds.density, strict=True)):
        U[members, column] = np.sqrt(density)
    scale = U[U > 0].mean() if U.any() else 1.0
    U[:, len(seeds.sets) :] = scale * as_generator(random_state).random(
        (len(U), rank - len(seeds.sets))
    )
    U = np.ascontiguousarray(np.maximum(U, 0.01 * U.mean()), dtype=f.dtype)
    return (f.best_multiple(Point(f.ops, f.ops.put(U))) * U).astype(f.dtype)


STARTS: dict[str, Start] = {
    AUTO: lambda *args: STARTS[named_start(AUTO, *args[:2])](*args),
    "scaled-random": scaled_random_start,
    "random": random_start,
    SPECTRAL: spectral_start,
    "neighborhoods": neighborhood_start,
    SKETCH: sketch_start,
}


def as_start(init: Any) -> Any:
    """Return a start as runs take it: a name as it is spelled here, and the U of a Result."""
    if isinstance(init, str):
        return lookup(init, {name: name for name in STARTS}, "init")
    return init.U if isinstance(init, Result) else init


def named_start(name: str, f: Objective, rank: int, *, at_random: bool = False) -> str:
    """Return the start that a name stands for, which "auto" leaves open, or refuse it for X.

    Methods of the literature begin as they were published, from random numbers. So do runs on an X
    whose eigenvectors say little, and on a dense X on a GPU, where they would take longer than the
    run.
    """
    if name != AUTO:
        if name not in AT_RANDOM and not isinstance(f.storage, SymmetricMatrix):
            raise InputError(
                f"init={name!r} is for matrices; use 'scaled-random', 'random' or an array."
            )
        return name
    if at_random or not f.spectral:
        return "scaled-random"
    if sketch_pays(f.storage, rank):
        return SKETCH
    return SPECTRAL if eigenvectors_pay(f.storage, rank) else "scaled-random"


def sketch_pays(X: SymmetricArray, rank: int) -> bool:
    """Whether products with X cost so much that a run begins on a sketch of X."""
    product = X.cost(rank)
    of_sketch = 4.0 * X.shape[0] * WIDTH * rank**2 / X.ops.rate
    return product >= SKETCHED_FROM and product >= SKETCHED_TIMES * of_sketch


def eigenvectors_pay(X: SymmetricArray, rank: int) -> bool:
    """Whether turning eigenvectors, which the host does, costs no more than so many iterations."""
    n, width = X.shape[0], rank + SPARE
    iteration = X.cost(rank) + FACTOR_WORK * n * width**2 / X.ops.rate
    return turning_seconds(n, rank) <= TURNED_FOR * iteration


def starting_point(
    f: Objective, rank: int, init: str | Any, random_state: RandomState
) -> np.ndarray:
    """Return U_0 for a name, an array or a callable ``init(X, rank, random_state)``."""
    if isinstance(init, str):
        U = lookup(init, STARTS, "init")(f, rank, random_state)
    else:
        given = init(f.storage, rank, random_state) if callable(init) else init
        U = at_scale(f, check_start(given, f, rank))
    if f.unseen is not None:  # nothing would ever move these rows
        U[f.unseen] = 0
    return U


def check_start(init: Any, f: Any, rank: int) -> np.ndarray:
    """Return a copy of a given U_0 in float64, or say what is wrong with it."""
    expected = (f.shape[0], rank)
    with said_as_input_errors("init"):
        U = np.array(to_host(init), dtype=np.float64, order="C")
    if U.shape == (f.rows, rank) != expected and (U >= 0).all():
        U = f.stacked(U)  # a table stands below X, and its part follows
    if U.shape != expected:
        raise InputError(
            f"init must have shape {expected[0]} x {expected[1]} (rows of X by rank), got "
            f"{' x '.join(map(str, U.shape)) or 'a number'}."
        )
    if not np.isfinite(U).all():
        raise InputError("init has NaN or infinite entries; remove or replace them first.")
    if not U.any() and f.sqnorm > 0.0:
        raise InputError(
            "init is all zeros, where every method stays; pass a start with positive entries."
        )
    if U.min() < 0:
        raise InputError(
            f"init has negative entries (the smallest is {U.min():.6g}); clip them, for instance "
            f"with np.maximum(init, 0)."
        )
    return U


def at_scale(f: Objective, U: np.ndarray) -> np.ndarray:
    """Return a given U_0 in X's precision, brought to X's scale where it is absurdly far from it.

    Fourth powers of a start that is too large overflow, those of one that is too small vanish, and
    no method is meant to find its way back from there.
    """
    largest = U.max(initial=0.0)
    if f.sqnorm == 0.0 or largest == 0.0:
        return U.astype(f.dtype)
    with np.errstate(over="ignore"):
        size = float(np.linalg.norm(U)) / f.factor_norm
    if 1.0 / FAR_OFF <= size <= FAR_OFF:
        return U.astype(f.dtype)
    W = (U / largest).astype(f.dtype)
    return (_best_scale(f, Point(f.ops, f.ops.put(W))) * W).astype(f.dtype)

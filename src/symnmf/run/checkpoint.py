"""Checkpoints: the state of a run or of a search on disk, from which it goes on bit for bit.

A checksum tells accidents from what was written, but not a file that somebody edited with care. So
all of it is compared with what is declared, since it goes to compiled code that checks nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.errors import InputError, warn
from symnmf.objectives import Objective
from symnmf.ops import Ops
from symnmf.outputs import AnyPath, check_output
from symnmf.run.problem import Problem
from symnmf.run.result import OTHER, History
from symnmf.run.settings import Settings
from symnmf.solvers import Solver
from symnmf.state import Kept, Point, State, check_memory

FORMAT = "symnmf-checkpoint-6"
MEMORY, SCHEDULE = "memory_", "schedule_"

#: Seconds that pass at least between two checkpoints of a run, but for the last.
SECONDS_BETWEEN = 60.0


@dataclass
class SavedRun:
    """What a checkpoint holds."""

    state: State
    history: History
    seconds: float
    start_misfit: float

    @property
    def dtype(self) -> np.dtype:
        """The precision of its factors."""
        return self.state.U.ops.dtype(self.state.U.values)


@dataclass
class Checkpoint:
    """Writes the state of one run to ``path``, at most every ``SECONDS_BETWEEN`` seconds.

    A write that fails (a full disk, say) leaves the previous checkpoint as it was, warns once
    and lets the run go on.
    """

    path: Path
    identity: dict[str, Any]
    last: float = field(default_factory=time.monotonic)
    failed: bool = False

    def due(self) -> bool:
        return time.monotonic() - self.last >= SECONDS_BETWEEN

    def write(self, saved: SavedRun, ops: Ops, *, with_product: bool) -> None:
        """Write now."""
        state = saved.state
        arrays = {
            "U": ops.get(state.U.values),
            "scalars": np.array(
                [state.coupling, state.iteration, saved.seconds, saved.start_misfit]
            ),
            "history": saved.history.to_array(),
        }
        if state.V is not state.U:
            arrays["V"] = ops.get(state.V.values)
        for number, point in enumerate(state.others):
            arrays[f"{OTHER}{number}"] = ops.get(point.values)
        if with_product and state.U.known_product is not None:
            arrays["product"] = ops.get(state.U.known_product)
            if state.U.known_gram is not None:
                arrays["gram_U"] = state.U.known_gram
            arrays["numbers_U"] = state.U.numbers
        for prefix, kept in ((MEMORY, state.memory), (SCHEDULE, state.schedule)):
            for name, value in kept.items():
                arrays[prefix + name] = value if isinstance(value, np.ndarray) else ops.get(value)
        try:
            store(self.path, arrays, self.identity)
        except (OSError, InputError) as error:
            if not self.failed:
                warn(
                    f"the checkpoint {str(self.path)!r} could not be written ({error}); the run "
                    f"continues and an earlier checkpoint is kept.",
                    RuntimeWarning,
                )
            self.failed = True
        self.last = time.monotonic()


def store(path: AnyPath, arrays: dict[str, Any], identity: dict[str, Any]) -> None:
    """Write the checkpoint of whatever this identity is of."""
    from symnmf.archives import write_archive

    head = {"format": np.array(FORMAT), "identity": np.array(json.dumps(identity))}
    write_archive(path, head | arrays)


@contextmanager
def reading(path: AnyPath) -> Iterator[None]:
    """Say in one sentence what is wrong with the fields of a checkpoint."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path} is not a whole symnmf checkpoint ({error}); start afresh."
        ) from error
    except RecursionError as error:
        raise InputError(f"{path} is not a whole symnmf checkpoint; start afresh.") from error


def stored_arrays(path: AnyPath, identity: dict[str, Any], kind: str) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint; one of another identity is refused."""
    from symnmf.archives import read_archive

    stored = read_archive(path, FORMAT)
    with reading(path):
        found = json.loads(str(stored.pop("identity")))
        for key, value in identity.items():
            if found.get(key) != value:
                what = "X" if key == "X" else f"{key} {value!r} (it has {found.get(key)!r})"
                raise InputError(
                    f"checkpoint {str(path)!r} belongs to another {kind}: it does not match this "
                    f"{what}; pass what it was made with, or name another file to start afresh."
                )
        del stored["format"]
    return stored


@dataclass(frozen=True)
class Checkpointing:
    """Where a run is saved, and resumed from if it was saved before; nowhere by default.

    ``owner`` names the start of a fit that alone may go on from there.
    """

    checkpoint: AnyPath | None = None
    owner: str = "none"

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            check_output(self.checkpoint, "checkpoint")

    def open(
        self,
        problem: Problem,
        rank: int,
        settings: Settings,
        origin: Callable[[], dict[str, Any]],
        objectives: Sequence[Objective],
    ) -> tuple[Checkpoint | None, SavedRun | None]:
        """Return where this run is kept, and what it has to go on from.

        ``origin`` names U_0, and ``objectives`` are f in the precisions that a run may be in.
        """
        if self.checkpoint is None:
            return None, None
        solver = settings.solver
        identity = {
            "X": problem.digest,
            "rank": int(rank),
            "solver": repr(solver),
            "coupling": repr(settings.coupling) if solver.has_coupling else "none",
            "owner": self.owner,
            **origin(),
        }
        saved = None
        if os.path.lexists(self.checkpoint):
            saved = read_checkpoint(self.checkpoint, identity, objectives, settings)
        return Checkpoint(Path(self.checkpoint), identity), saved


#: A run without a checkpoint.
NOWHERE = Checkpointing()


def read_checkpoint(
    path: AnyPath,
    identity: dict[str, Any],
    objectives: Sequence[Objective],
    settings: Settings,
) -> SavedRun:
    """Read the checkpoint of a run, and refuse what this run would not have written."""
    stored = stored_arrays(path, identity, "run")
    solver = settings.solver
    coupling = settings.coupling if solver.has_coupling else None
    with reading(path):
        history = History.of(stored.pop("history"))
        scalars = stored.pop("scalars")
        memory = _taken(stored, MEMORY)
        schedule = _taken(stored, SCHEDULE)
        _check_numbers(scalars, history)
        rank = int(identity["rank"])
        f = next((f for f in objectives if f.dtype == stored["U"].dtype), objectives[0])
        layout = solver.memory(f, rank)
        rule = coupling.memory(f, rank) if coupling is not None and f.largest() > 0.0 else {}
        check_memory(memory, layout, "the solver's")
        check_memory(schedule, rule, "the coupling's")
        _check_factors(stored, rank, f, solver)
        value, iteration, seconds, misfit = scalars.tolist()
        product = stored.get("product")
        put = f.ops.put
        U = Point(
            f.ops,
            put(stored["U"]),
            None if product is None else put(product),
            stored.get("gram_U"),
        )
        if "numbers_U" in stored:
            U.numbers = stored["numbers_U"]
        state = State(
            U=U,
            V=Point(f.ops, put(stored["V"])) if "V" in stored else U,
            coupling=value,
            iteration=int(iteration),
            memory={n: put(v) if layout[n].tall else v for n, v in memory.items()},
            schedule={n: put(v) if rule[n].tall else v for n, v in schedule.items()},
            others=[
                Point(f.ops, put(stored[name])) for name in sorted(stored) if name.startswith(OTHER)
            ],
        )
    return SavedRun(state, history, seconds, misfit)


def _taken(stored: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Take what has a prefix out of an archive, under the names without it."""
    names = [name for name in stored if name.startswith(prefix)]
    return {name.removeprefix(prefix): stored.pop(name) for name in names}


def _check_numbers(scalars: np.ndarray, history: History) -> None:
    """Coupling, iteration, seconds and misfit of the start: none is ever negative."""
    Kept((4,), least=0.0).check(scalars, "'scalars'")
    iteration = float(scalars[1])
    if iteration != np.floor(iteration) or iteration >= 2**53:
        raise ValueError("its iteration is not a whole number")
    if not len(history) or history["iteration"][-1] > iteration:
        raise ValueError("its history is not that of its iterations")


def _check_factors(stored: dict[str, np.ndarray], rank: int, f: Objective, solver: Solver) -> None:
    dtype, shape = f.dtype, (f.shape[0], rank)
    layout = {"U": Kept(shape, dtype, least=0.0)}
    if solver.second_factor:
        least = -np.inf if solver.free_second_factor else 0.0
        for name in ("V", *(f"{OTHER}{number}" for number in range(f.split_factors - 2))):
            layout[name] = Kept(shape, dtype, least, optional=f.largest() == 0.0)
    if not solver.has_coupling:
        layout["product"] = Kept(shape, dtype, optional=True)
        layout["gram_U"] = Kept((shape[1], shape[1]), optional=True)
        layout["numbers_U"] = Kept((6,), infinite=True, optional=True)
    check_memory(stored, layout, "the factor")

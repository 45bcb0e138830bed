"""Checkpoints: the state of a run on disk, from which it goes on bit for bit."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.errors import InputError, warn
from symnmf.objectives import Objective
from symnmf.ops import Ops
from symnmf.run.problem import Problem
from symnmf.run.result import OTHER, History
from symnmf.run.settings import Settings
from symnmf.solvers import Solver
from symnmf.state import Kept, Point, State, check_memory

FORMAT = "symnmf-checkpoint-5"
MEMORY, SCHEDULE = "memory_", "schedule_"

#: Seconds that pass at least between two checkpoints of a run, but for the last.
SECONDS_BETWEEN = 60.0


@dataclass(frozen=True)
class OwnedPath(os.PathLike[str]):
    """The path of a checkpoint that one start of one fit owns, and no other may go on from."""

    path: Path
    owner: str

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def owner_of(path: object) -> str:
    """Return whose checkpoint a path names; a plain path is anybody's."""
    return path.owner if isinstance(path, OwnedPath) else "none"


@dataclass
class SavedRun:
    """What a checkpoint holds."""

    state: State
    history: History
    seconds: float
    start_misfit: float


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

    def __post_init__(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise InputError(
                f"checkpoint {str(self.path)!r} cannot be written: the folder {str(folder)!r} "
                f"does not exist; create it first."
            )
        if self.path.is_dir():
            raise InputError(f"checkpoint {str(self.path)!r} is a folder; name a file.")

    def due(self) -> bool:
        return time.monotonic() - self.last >= SECONDS_BETWEEN

    def write(self, saved: SavedRun, ops: Ops, *, with_product: bool) -> None:
        """Write now."""
        state = saved.state
        arrays = {
            "format": np.array(FORMAT),
            "identity": np.array(json.dumps(self.identity)),
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
        self.failed |= not written(self.path, arrays, warned=self.failed)
        self.last = time.monotonic()


def written(path: Path, arrays: dict[str, Any], *, warned: bool) -> bool:
    """Write a checkpoint; where that fails say so, once, and return False."""
    try:
        from symnmf.archives import write_archive

        write_archive(path, arrays)
    except (OSError, InputError) as error:
        if not warned:
            warn(
                f"the checkpoint {str(path)!r} could not be written ({error}); the run continues "
                f"and an earlier checkpoint is kept.",
                RuntimeWarning,
            )
        return False
    return True


@dataclass(frozen=True)
class Checkpointing:
    """Where a run is saved, and resumed from if it was saved before; nowhere by default."""

    checkpoint: str | os.PathLike[str] | None = None

    @property
    def begun(self) -> bool:
        """Whether there is something to go on from."""
        return self.checkpoint is not None and os.path.lexists(self.checkpoint)

    def open(
        self,
        problem: Problem,
        rank: int,
        settings: Settings,
        origin: Callable[[], dict[str, Any]],
    ) -> tuple[Checkpoint | None, SavedRun | None]:
        """Return where this run is kept, and what it has to go on from; ``origin`` names U_0."""
        if self.checkpoint is None:
            return None, None
        solver = settings.solver
        identity = {
            "X": problem.digest,
            "rank": int(rank),
            "solver": repr(solver),
            "coupling": repr(settings.coupling) if solver.has_coupling else "none",
            "owner": owner_of(self.checkpoint),
            **origin(),
        }
        begun = self.begun
        saved = (
            read_checkpoint(self.checkpoint, identity, problem.objective, settings)
            if begun
            else None
        )
        return Checkpoint(Path(self.checkpoint), identity), saved


def read_checkpoint(
    path: str | os.PathLike[str],
    identity: dict[str, Any],
    f: Objective,
    settings: Settings,
) -> SavedRun:
    """Read a checkpoint and refuse one of another X or other settings, saying what differs.

    Everything in it is compared with what this run would have written, since what it holds goes
    to compiled code that checks nothing.
    """
    from symnmf.archives import read_archive

    stored = read_archive(path, FORMAT)
    solver = settings.solver
    coupling = settings.coupling if solver.has_coupling else None
    try:
        check_identity(path, json.loads(str(stored.pop("identity"))), identity, "run")
        history = History.of(stored.pop("history"))
        scalars = stored.pop("scalars")
        del stored["format"]
        memory = _taken(stored, MEMORY)
        schedule = _taken(stored, SCHEDULE)
        _check_numbers(scalars, history)
        rank = int(identity["rank"])
        layout = solver.memory(f.in_precision(stored["U"].dtype), rank)
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
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a whole symnmf checkpoint ({error}); start afresh."
        ) from error


def check_identity(
    path: str | os.PathLike[str], found: dict[str, Any], identity: dict[str, Any], kind: str
) -> None:
    """Refuse a file of another run, fit or search, and say the first thing that differs."""
    for key, value in identity.items():
        if found.get(key) != value:
            what = "X" if key == "X" else f"{key} {value!r} (it has {found.get(key)!r})"
            raise InputError(
                f"checkpoint {str(path)!r} belongs to another {kind}: it does not match this "
                f"{what}; pass what it was made with, or name another file to start afresh."
            )


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
    dtype, shape = stored["U"].dtype, (f.shape[0], rank)
    if dtype not in solver.precisions(f, rank):
        raise ValueError(f"U has the type {dtype} where X has {f.dtype}")
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


def values_so_far(checkpointing: Checkpointing) -> list[float]:
    """Return the values recorded in a checkpoint; none if there is none that can be read."""
    if checkpointing.checkpoint is None or not checkpointing.begun:
        return []
    try:
        from symnmf.archives import read_archive

        history = History(read_archive(checkpointing.checkpoint, FORMAT)["history"])
        return list(history["value"].tolist())
    except (InputError, KeyError, ValueError, IndexError):
        return []  # the run that resumes from it says what is wrong

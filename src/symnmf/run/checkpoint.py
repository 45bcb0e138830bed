"""Checkpoints: the state of a run on disk, from which it goes on bit for bit.

A checksum tells accidents from what was written, but not a file that somebody edited with care. So
all of it is compared with what is declared, since it goes to compiled code that checks nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError, warn
from symnmf.objectives import Objective
from symnmf.ops import Ops
from symnmf.outputs import AnyPath, check_output
from symnmf.run.problem import Problem
from symnmf.run.result import OTHER, History
from symnmf.run.settings import Settings
from symnmf.state import Kept, Layout, Point, State, check_memory

FORMAT = "symnmf-checkpoint-7"
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

    def arrays(self, ops: Ops, *, with_product: bool) -> dict[str, Any]:
        """Return all of it as arrays on the host."""
        state = self.state
        numbers = [state.coupling, state.iteration, self.seconds, self.start_misfit]
        arrays = {"scalars": np.array(numbers), "history": self.history.to_array()}
        factors = {"U": state.U.values}
        if state.V is not state.U:
            factors["V"] = state.V.values
        factors |= {f"{OTHER}{number}": point.values for number, point in enumerate(state.others)}
        if with_product and state.U.known_product is not None:
            factors["product"] = state.U.known_product
            if state.U.known_gram is not None:
                arrays["gram_U"] = state.U.known_gram
            arrays["numbers_U"] = state.U.numbers
        for prefix, kept in ((MEMORY, state.memory), (SCHEDULE, state.schedule)):
            factors |= {prefix + name: value for name, value in kept.items()}
        for name, value in factors.items():
            arrays[name] = value if isinstance(value, np.ndarray) else ops.get(value)
        return arrays


class Checkpoint:
    """Where a run is saved, and resumed from if it was saved before.

    ``search`` says which start of which search this is: no other may go on from there. A write that
    fails (a full disk, say) leaves the previous checkpoint as it was, warns once and lets the run
    go on.
    """

    def __init__(self, path: AnyPath, **search: Any) -> None:
        check_output(path, "checkpoint")
        self.path, self.search = Path(path), search
        self.identity: dict[str, Any] = {}
        self.last, self.failed = time.monotonic(), False

    def resume(
        self,
        problem: Problem,
        rank: int,
        settings: Settings,
        origin: Mapping[str, Any],
        objectives: Sequence[Objective],
    ) -> SavedRun | None:
        """Return what a run has to go on from, or None where it begins.

        ``origin`` names U_0, and ``objectives`` are f in the precisions that a run may be in.
        """
        solver = settings.solver
        self.identity = {
            "X": problem.digest,
            "rank": int(rank),
            "solver": repr(solver),
            "coupling": repr(settings.coupling) if solver.has_coupling else "none",
            "start": 0,
            **origin,
            **self.search,
        }
        if not os.path.lexists(self.path):
            return None
        stored = read_archive(self.path, FORMAT)
        try:
            self._check_identity(json.loads(str(stored.pop("identity"))))
            del stored["format"]
            return _restored(stored, rank, settings, objectives)
        except InputError:
            raise
        except Exception as error:  # what was edited makes json and NumPy raise anything
            raise InputError(
                f"{self.path} is not a whole symnmf checkpoint ({error}); start afresh."
            ) from error

    def _check_identity(self, found: Mapping[str, Any]) -> None:
        for key, value in self.identity.items():
            if found.get(key) != value:
                what = "X" if key == "X" else f"{key} {value!r} (it has {found.get(key)!r})"
                raise InputError(
                    f"checkpoint {str(self.path)!r} belongs to another run: it does not match this "
                    f"{what}; pass what it was made with, or name another file to start afresh."
                )

    def due(self) -> bool:
        return time.monotonic() - self.last >= SECONDS_BETWEEN

    def write(self, arrays: dict[str, Any]) -> None:
        """Write now."""
        head = {"format": np.array(FORMAT), "identity": np.array(json.dumps(self.identity))}
        try:
            write_archive(self.path, head | arrays)
        except (OSError, InputError) as error:
            if not self.failed:
                warn(
                    f"the checkpoint {str(self.path)!r} could not be written ({error}); the run "
                    f"continues and an earlier checkpoint is kept.",
                    RuntimeWarning,
                )
            self.failed = True
        self.last = time.monotonic()


def _restored(
    stored: dict[str, np.ndarray], rank: int, settings: Settings, objectives: Sequence[Objective]
) -> SavedRun:
    """Return the run that arrays are of, or a ValueError where no run would have written them."""
    history = History.of(stored.pop("history"))
    f = next((f for f in objectives if f.dtype == stored["U"].dtype), objectives[0])
    solver, coupling, put = settings.solver, settings.coupling, f.ops.put
    memory = solver.memory(f, rank)
    schedule: Layout = {}
    if solver.has_coupling and coupling is not None and f.largest() > 0.0:
        schedule = coupling.memory(f, rank)
    check_memory(stored, _layout(f, rank, settings, memory, schedule), "its field")
    value, iteration, seconds, misfit = stored["scalars"].tolist()
    if iteration != np.floor(iteration) or iteration >= 2**53:
        raise ValueError("its iteration is not a whole number")
    if not len(history) or history.last_iteration > iteration:
        raise ValueError("its history is not that of its iterations")
    product = stored.get("product")
    U = Point(
        f.ops, put(stored["U"]), None if product is None else put(product), stored.get("gram_U")
    )
    if "numbers_U" in stored:
        U.numbers = stored["numbers_U"]

    def kept(prefix: str, layout: Layout) -> dict[str, Any]:
        there = {name: stored[prefix + name] for name in layout if prefix + name in stored}
        return {name: put(a) if layout[name].tall else a for name, a in there.items()}

    state = State(
        U=U,
        V=Point(f.ops, put(stored["V"])) if "V" in stored else U,
        coupling=value,
        iteration=int(iteration),
        memory=kept(MEMORY, memory),
        schedule=kept(SCHEDULE, schedule),
        others=[Point(f.ops, put(stored[n])) for n in sorted(stored) if n.startswith(OTHER)],
    )
    return SavedRun(state, history, seconds, misfit)


def _layout(
    f: Objective, rank: int, settings: Settings, memory: Layout, schedule: Layout
) -> dict[str, Kept]:
    """Return what the checkpoint of such a run holds besides its history."""
    dtype, shape, solver = f.dtype, (f.shape[0], rank), settings.solver
    # coupling, iteration, seconds and misfit of the start: none is ever negative
    layout = {"scalars": Kept((4,), least=0.0), "U": Kept(shape, dtype, least=0.0)}
    if solver.second_factor:
        least = -np.inf if solver.free_second_factor else 0.0
        for name in ("V", *(f"{OTHER}{number}" for number in range(f.split_factors - 2))):
            layout[name] = Kept(shape, dtype, least, optional=f.largest() == 0.0)
    if not solver.has_coupling:
        layout["product"] = Kept(shape, dtype, optional=True)
        layout["gram_U"] = Kept((rank, rank), optional=True)
        layout["numbers_U"] = Kept((6,), infinite=True, optional=True)
    for prefix, kept in ((MEMORY, memory), (SCHEDULE, schedule)):
        layout |= {prefix + name: value for name, value in kept.items()}
    return layout

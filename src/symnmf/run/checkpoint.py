"""Checkpoints: the state of a run on disk, from which it goes on bit for bit."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import clear_leftovers, read_archive, write_archive
from symnmf.errors import InputError
from symnmf.matrices import SymmetricMatrix
from symnmf.ops import Ops, Tall
from symnmf.penalty import Penalty
from symnmf.run.result import COLUMNS, History
from symnmf.run.state import Point, State
from symnmf.solvers import Solver

FORMAT = "symnmf-checkpoint-2"
MEMORY, SCHEDULE = "memory_", "schedule_"


@dataclass(frozen=True)
class OwnedPath(os.PathLike[str]):
    """The path of a checkpoint that one start of one fit owns, and no other may go on from."""

    path: Path
    owner: str

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


@dataclass
class Saved:
    """What a checkpoint holds."""

    state: State
    history: History
    seconds: float
    start_misfit: float


@dataclass
class Checkpoint:
    """Writes the state of one run to ``path``, at most every ``every`` seconds.

    A file that is there already is overwritten only where the run was ``resumed`` from it.
    A write that fails (a full disk, say) leaves the previous checkpoint as it was, warns once
    and lets the run go on.
    """

    path: Path
    every: float
    identity: dict[str, Any]
    resumed: bool = False
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
        if self.path.exists() and not self.resumed:
            raise InputError(
                f"checkpoint {str(self.path)!r} exists already; pass it as resume too to go on "
                f"from it, or remove it."
            )
        clear_leftovers(self.path)

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def write(self, saved: Saved, ops: Ops, *, with_product: bool) -> None:
        """Write now."""
        state = saved.state
        arrays = {
            "format": np.array(FORMAT),
            "identity": np.array(json.dumps(self.identity)),
            "U": ops.get(state.U.values),
            "scalars": np.array(
                [state.penalty, state.iteration, saved.seconds, saved.start_misfit]
            ),
            "history": saved.history.to_array(),
        }
        if state.V is not state.U:
            arrays["V"] = ops.get(state.V.values)
        if with_product and state.U.known_product is not None:
            arrays["product"] = ops.get(state.U.known_product)
            if state.U.known_gram is not None:
                arrays["gram_U"] = state.U.known_gram
        for prefix, kept in ((MEMORY, state.memory), (SCHEDULE, state.schedule)):
            for name, value in kept.items():
                arrays[prefix + name] = value if isinstance(value, np.ndarray) else ops.get(value)
        try:
            write_archive(self.path, arrays)
        except (OSError, InputError) as error:
            if not self.failed:
                warnings.warn(
                    f"the checkpoint {str(self.path)!r} could not be written ({error}); the run "
                    f"goes on and an earlier checkpoint is kept.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self.failed = True
        self.last = time.monotonic()


def read_checkpoint(
    path: str | Path,
    identity: dict[str, Any],
    X: SymmetricMatrix,
    solver: Solver,
    penalty: Penalty,
) -> Saved:
    """Read a checkpoint and refuse one of another X or other settings, saying what differs."""
    stored = read_archive(path, FORMAT)
    try:
        found = json.loads(str(stored["identity"]))
        different = [key for key in identity if found.get(key) != identity[key]]
        if different:
            key = different[0]
            what = "X" if key == "X" else f"{key} {identity[key]!r} (it has {found.get(key)!r})"
            raise InputError(
                f"the checkpoint {str(path)!r} belongs to another run: it does not match this "
                f"{what}; pass what it was made with or start afresh."
            )
        value, iteration, seconds, misfit = stored["scalars"].tolist()
        product = stored.get("product")
        U = Point(
            X.ops,
            X.ops.put(stored["U"]),
            None if product is None else X.ops.put(product),
            stored.get("gram_U"),
        )
        state = State(
            U=U,
            V=Point(X.ops, X.ops.put(stored["V"])) if "V" in stored else U,
            penalty=value,
            iteration=int(iteration),
            memory=_memory(stored, MEMORY, solver.tall_memory, X.ops),
            schedule=_memory(stored, SCHEDULE, penalty.tall_memory, X.ops),
        )
        rows = stored["history"]
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or stored["U"].ndim != 2:
            raise ValueError("wrong shapes")
        return Saved(state, History(rows), seconds, misfit)
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a whole symnmf checkpoint ({error}).") from error


def _memory(
    stored: dict[str, np.ndarray], prefix: str, tall: frozenset[str], ops: Ops
) -> dict[str, Tall]:
    """Return what a solver or a penalty remembered, each part where it lives."""
    named = {
        name.removeprefix(prefix): value
        for name, value in stored.items()
        if name.startswith(prefix)
    }
    return {name: ops.put(value) if name in tall else value for name, value in named.items()}

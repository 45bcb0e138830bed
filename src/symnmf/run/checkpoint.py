"""Checkpoints: the state of a run on disk, from which it goes on bit for bit."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.matrices import SymmetricMatrix
from symnmf.run.result import COLUMNS, History
from symnmf.run.state import State

FORMAT = "symnmf-checkpoint-1"
MEMORY = "memory_"


def fingerprint(X: SymmetricMatrix) -> str:
    """Return a hash of the shape, precision, pattern and values of X."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{X.shape} {X.dtype}".encode())
    for block in (*X.pattern(), *X.values()):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


@dataclass
class Saved:
    """What a checkpoint holds."""

    state: State
    history: History
    seconds: float
    reference: float
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
        for leftover in folder.glob(f".{self.path.name}.*.tmp"):  # of a process that was killed
            leftover.unlink(missing_ok=True)

    def due(self) -> bool:
        return time.monotonic() - self.last >= self.every

    def write(self, saved: Saved, *, with_product: bool) -> None:
        """Write now."""
        state = saved.state
        arrays = {
            "format": np.array(FORMAT),
            "identity": np.array(json.dumps(self.identity)),
            "U": state.U,
            "scalars": np.array(
                [state.penalty, state.iteration, saved.seconds, saved.reference, saved.start_misfit]
            ),
            "history": saved.history.to_array(),
        }
        if state.V is not state.U:
            arrays["V"] = state.V
        if with_product and state.product is not None:
            arrays["product"] = state.product
            if state.gram_U is not None:
                arrays["gram_U"] = state.gram_U
        arrays |= {MEMORY + name: value for name, value in state.memory.items()}
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


def read_checkpoint(path: str | Path, identity: dict[str, Any]) -> Saved:
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
        penalty, iteration, seconds, reference, misfit = stored["scalars"].tolist()
        U = stored["U"]
        state = State(
            U=U,
            V=stored.get("V", U),
            penalty=penalty,
            iteration=int(iteration),
            product=stored.get("product"),
            gram_U=stored.get("gram_U"),
            memory={
                name.removeprefix(MEMORY): value
                for name, value in stored.items()
                if name.startswith(MEMORY)
            },
        )
        rows = stored["history"]
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or U.ndim != 2:
            raise ValueError("wrong shapes")
        return Saved(state, History(rows), seconds, reference, misfit)
    except InputError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a whole symnmf checkpoint ({error}).") from error

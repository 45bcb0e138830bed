"""Checkpoints of a row-sparse run, from which it goes on bit for bit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.rowsparse.factor import RowSparse
from symnmf.run import checkpoint
from symnmf.run.checkpoint import reading, stored_arrays, written
from symnmf.run.fits import check_path
from symnmf.run.result import History
from symnmf.state import Kept, check_memory


@dataclass(frozen=True)
class SavedSparseRun:
    """What a checkpoint holds."""

    U: RowSparse
    history: History
    iteration: int
    seconds: float
    power: float
    outside: float
    before: float
    decrease: float


@dataclass
class SparseCheckpoint:
    """Writes the state of a run to ``path``, now and then, or reads it."""

    path: Path
    identity: dict[str, Any]
    last: float = field(default_factory=time.monotonic)
    saved: SavedSparseRun | None = None
    failed: bool = False

    @classmethod
    def open(cls, path: Any, identity: dict[str, Any], n: int, width: int) -> SparseCheckpoint:
        """Open the file, and read what is in it; one of another run is refused."""
        check_path(path)
        kept = cls(Path(path), identity)
        if kept.path.exists():
            kept.saved = _read(kept.path, identity, n, width)
        return kept

    def due(self) -> bool:
        return time.monotonic() - self.last >= checkpoint.SECONDS_BETWEEN

    def write(self, now: SavedSparseRun) -> None:
        """Write now; a failure is told once and leaves the previous file as it was."""
        arrays = {
            "history": now.history.to_array(),
            "rank": np.array(now.U.rank),
            "scalars": np.array(
                [now.iteration, now.seconds, now.power, now.outside, now.before, now.decrease]
            ),
            "columns": now.U.columns,
            "values": now.U.values,
            "counts": now.U.counts,
        }
        self.failed |= not written(self.path, arrays, self.identity, warned=self.failed)
        self.last = time.monotonic()


def _read(path: Path, identity: dict[str, Any], n: int, width: int) -> SavedSparseRun:
    stored = stored_arrays(path, identity, "run")
    with reading(path):
        history = History.of(stored.pop("history"))
        rank = int(stored.pop("rank"))
        layout = {
            "columns": Kept((n, width), np.dtype(np.int32), 0, max(rank - 1, 0)),
            "values": Kept((n, width), least=0.0),
            "counts": Kept((n,), np.dtype(np.int32), 0, width),
            "scalars": Kept((6,), infinite=True),
        }
        check_memory(stored, layout, "the factor's")
        columns, counts = stored["columns"], stored["counts"]
        inside = np.arange(1, width) < counts[:, None]
        if (inside & (np.diff(columns, axis=1) <= 0)).any():
            raise ValueError("the columns of a row are not in order")
        iteration, *numbers = stored["scalars"].tolist()
        U = RowSparse(columns, stored["values"], counts, rank)
        return SavedSparseRun(U, history, int(iteration), *numbers)

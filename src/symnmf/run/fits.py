"""The file that says which fit of several starts this is, and where each start is kept."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.run.checkpoint import Checkpointing, reading, store, stored_arrays
from symnmf.run.start import RandomState, as_generator, drawn_seed


@dataclass(frozen=True)
class Fit:
    """A fit on disk: its file, the seed of its starts and the name drawn for it."""

    path: Path
    seed: int
    name: str

    def checkpointing(self, start: int) -> Checkpointing:
        """Return where a start is saved, and resumed from if it was saved before."""
        file = f"{self.path.stem}.{self.name}.start-{start}{self.path.suffix}"
        return Checkpointing(self.path.with_name(file), f"start {start} of fit {self.name}")


def open_fit(path: Path, identity: dict[str, Any], random_state: RandomState) -> Fit:
    """Go on with the fit at ``path``, which must be of this identity, or begin one there."""
    if os.path.lexists(path):
        stored = stored_arrays(path, identity, "fit")
        with reading(path):
            seed, name = int(str(stored["seed"])), str(stored["fit"])
            if seed < 0 or not re.fullmatch("[0-9a-f]{16}", name):
                raise ValueError("its fields are not what a fit writes")
        return Fit(path, seed, name)
    name = secrets.token_hex(8)
    seed = identity.get("random_state", -1)
    if seed < 0:  # drawn once and kept, so that the starts are the same next time
        drawn = random_state is None
        seed = drawn_seed() if drawn else int(as_generator(random_state).integers(2**62))
    store(path, {"seed": np.array(str(seed)), "fit": np.array(name)}, identity)
    return Fit(path, seed, name)

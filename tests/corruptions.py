"""Damages checkpoints and results, field by field, and tries to use them: a program of its own.

Run as ``python corruptions.py COUNT SEED FOLDER [checkpoints]``; a crash of the interpreter is seen
from outside. With ``checkpoints`` only those are damaged, and always with a checksum that fits. It
prints how many files were refused, harmless or used.

Two kinds of damage are told apart. One leaves the checksum of the archive as it was: such a file is
refused, or gives the same bits. The other makes the checksum fit again, as only somebody who means
to does: such a file is refused, or used without harm to the process.
"""

from __future__ import annotations

import random
import sys
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.run import checkpoint
from symnmf.run.result import RESULT

SOLVERS = ("hals-newton", "a-symhals", "symanls", "admm", "tsvd", "pgd")
TOL = 1e-4
ODD = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 1e-300, 2.0**31, 2.0**62, 0.5)


def problem() -> np.ndarray:
    rng = np.random.default_rng(0)
    factor = np.abs(rng.standard_normal((12, 2)))
    noise = np.abs(rng.standard_normal((12, 12)))
    return factor @ factor.T + 0.1 * (noise + noise.T)


def run(X: Any, solver: str, **more: Any) -> symnmf.Result:
    options = {"solver": solver, "random_state": 0, "tol": TOL, "n_jobs": 1, "max_iter": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sums that overflow are expected of such numbers
        return symnmf.factorize(X, 2, **{**options, **more})


class Case:
    """A sound file, what uses it, and what comes out of that."""

    def __init__(self, folder: Path, name: str, X: Any, solver: str, seed: int = 0) -> None:
        self.path, self.X, self.solver, self.seed = folder / f"{name}.npz", X, solver, seed
        self.is_result = name.startswith("result")
        started = run(X, solver, max_iter=6, **self._keeping())
        if self.is_result:
            started.save(self.path)
        self.format = RESULT if self.is_result else checkpoint.FORMAT
        self.whole = self.path.read_bytes()
        self.arrays = read_archive(self.path, self.format)
        self.expected = self.use()
        self.path.write_bytes(self.whole)  # the run went on, and so did its file

    def _keeping(self) -> dict[str, Any]:
        kept = {} if self.is_result else {"checkpoint": self.path}
        return {"random_state": self.seed, **kept}

    def use(self) -> tuple[bytes, ...]:
        """What the file leads to, bit for bit."""
        if self.is_result:
            result = symnmf.Result.load(self.path)
        else:
            result = run(self.X, self.solver, **self._keeping())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result.certificate(self.X)
        return result.U.tobytes(), result.V.tobytes(), str(result.error).encode()


def damaged(rng: random.Random, array: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """One array, resized, retyped, swapped, or with an odd number in it."""
    action = rng.randrange(14)
    if action >= 9 and array.dtype.kind == "f" and array.size:
        return _nudged(rng, array, action)
    if action == 0 and array.ndim:
        return array[: rng.randrange(len(array) + 1)]
    if action == 1 and array.ndim > 1:
        return np.ascontiguousarray(array[..., : rng.randrange(array.shape[-1] + 1)])
    if action == 2:
        return np.concatenate([np.atleast_1d(array)] * rng.randint(2, 4))
    if action == 3:
        kind = rng.choice(["f4", "f8", "i8", "i4", "u1", ">f8", "U5"])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return array.astype(kind)
            except ValueError:
                return array
    if action == 4:
        return donor
    if action == 5:
        return array.reshape(-1) if array.ndim != 1 else array.reshape(1, -1)
    if action == 6:
        return np.ascontiguousarray(array.T)
    if array.dtype.kind not in "if" or not array.size:
        return np.array(rng.choice(["", "[]", "{}", "null", "x" * 1000]))
    changed = np.array(array)  # of a 0-d one a copy is no array
    place = np.unravel_index(rng.randrange(array.size), array.shape)
    if array.dtype.kind == "i":
        changed = changed.astype(np.int64)
        changed[place] += rng.choice([-1000, -1, 1, 2, 1000, 2**40, -(2**62)])
    elif action == 7:
        changed[place] = rng.choice(ODD)
    else:
        with np.errstate(all="ignore"):
            changed[place] *= rng.choice([-1.0, 0.0, 1e3, 1e-3])
    return changed


def _nudged(rng: random.Random, array: np.ndarray, action: int) -> np.ndarray:
    """Numbers that some run might have had: larger ones, a little off, or in other places."""
    with np.errstate(all="ignore"):
        if action == 9:
            return (array * rng.choice([0.5, 0.9, 1.001, 1.1, 2.0, 3.0])).astype(array.dtype)
        if action == 10:
            part = 10.0 ** -rng.randint(1, 9)
            noise = np.random.default_rng(rng.randrange(2**32)).standard_normal(array.shape)
            return (array * (1 + part * noise)).astype(array.dtype)
        if action == 11:
            return np.ascontiguousarray(array[::-1]) if array.ndim else array
        if action == 12:
            return np.zeros_like(array)
        changed = np.array(array)  # of a 0-d one a copy is no array
        place = np.unravel_index(rng.randrange(array.size), array.shape)
        changed[place] += rng.choice([1e-6, 1e-3, 0.1, 1.0])
        return changed


def structured(rng: random.Random, case: Case, donors: list[Case]) -> dict[str, np.ndarray]:
    arrays = dict(case.arrays)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(arrays))
        other = rng.choice(donors).arrays
        action = rng.randrange(12)
        if action == 0:
            del arrays[name]
        elif action == 1:
            arrays[rng.choice(["V", "product", "gram_U", "memory_x", "new"])] = arrays[name]
        else:
            donor = other[name if name in other and rng.random() < 0.7 else rng.choice(list(other))]
            arrays[name] = damaged(rng, arrays[name], donor)
        if not arrays:
            break
    return arrays


def write_plainly(path: Path, arrays: dict[str, np.ndarray], checksum: np.ndarray) -> None:
    """The damaged arrays under the checksum of the sound ones."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in {**arrays, "checksum": checksum}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def flipped(rng: random.Random, whole: bytes) -> bytes:
    place = rng.randrange(len(whole))
    action = rng.randrange(4)
    if action == 0:
        return whole[:place]
    if action == 1:
        return whole[:place] + rng.randbytes(rng.randint(1, 9)) + whole[place:]
    if action == 2:
        return whole[:place] + whole[place + rng.randint(1, 99) :]
    return whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :]


KINDS = ("bytes", "kept checksum", "new checksum", "new checksum")


def attempt(rng: random.Random, case: Case, donors: list[Case], kinds: tuple[str, ...]) -> str:
    kind = rng.choice(kinds)
    if kind == "bytes":
        case.path.write_bytes(flipped(rng, case.whole))
    else:
        arrays = structured(rng, case, donors)
        if kind == "new checksum":
            write_archive(case.path, arrays)
        else:
            with np.load(case.path, allow_pickle=False) as sound:
                checksum = sound["checksum"]
            write_plainly(case.path, arrays, checksum)
    try:
        found = case.use()
    except InputError:
        outcome = "refused"
    else:
        outcome = "harmless" if found == case.expected else "used"
        # without a new checksum nothing that differs may pass
        assert outcome == "harmless" or kind == "new checksum", kind
    case.path.write_bytes(case.whole)
    return outcome


def main(count: int, seed: int, folder: Path, results: bool = True) -> None:
    X = problem()
    cases = [
        Case(folder, f"run-{solver}-{kind.__name__}", kind(X), solver)
        for solver in SOLVERS
        for kind in (np.asarray, sp.csr_array)
    ]
    if results:
        cases += [Case(folder, f"result-{solver}", X, solver) for solver in SOLVERS]
    donors = cases + [Case(folder, f"run-other-{solver}", X, solver, seed=1) for solver in SOLVERS]
    rng, seen = random.Random(seed), Counter[str]()
    for number in range(count):
        case = rng.choice(cases)
        state = rng.getstate()
        try:
            seen[attempt(rng, case, donors, KINDS if results else KINDS[2:])] += 1
            if number % 1000 == 999:
                print(dict(seen), file=sys.stderr, flush=True)
        except BaseException as error:
            error.add_note(f"attempt {number} of seed {seed}, on {case.path.name}: {state[1][:3]}")
            raise
    print(dict(seen), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), "checkpoints" not in sys.argv)

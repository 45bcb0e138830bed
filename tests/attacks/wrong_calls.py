"""Every public callable with every wrong kind of argument: a program of its own.

Run as ``python wrong_calls.py COUNT SEED FOLDER``. A sound call of each callable is in
``sound_calls.py``; which parameters there are comes from its signature, so that a new one is
attacked at once.
Each parameter in turn, or a few of them together, get a value of the wrong kind, and the call must
return, or raise ``InputError`` with one sentence. A call that takes longer than ``PATIENCE``, or
ends in any other exception, is printed with what brought it about.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sound_calls import FIT, SPARSE, B, Sound, X, sound_calls

import symnmf
from symnmf import coupling, solvers, storage
from symnmf.errors import InputError

PATIENCE = 300  # seconds, on a machine with much else to do; sound calls take milliseconds


class Hostile:
    """An object whose every method fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("hostile")

    def __len__(self) -> int:
        raise RuntimeError("hostile")


def wrong_values() -> dict[str, Any]:
    """Values of every kind, most of which are wrong wherever they are put."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return {
        "None": None,
        "True": True,
        "False": False,
        "0": 0,
        "-1": -1,
        "1": 1,
        "3": 3,
        "10**30": 10**30,
        "-(10**30)": -(10**30),
        "4000 digits": 10**3999,
        "0.5": 0.5,
        "-0.5": -0.5,
        "1e300": 1e300,
        "5e-324": 5e-324,
        "nan": float("nan"),
        "inf": float("inf"),
        "-inf": float("-inf"),
        "complex": 1j,
        "empty text": "",
        "text": "no such thing",
        "long text": "x" * 5000,
        "null byte": "a\0b",
        "surrogate": "\ud800",
        "digits": "12",
        "bytes": b"bytes",
        "path": Path("absent") / "file.npz",
        "folder": Path("."),
        "list": [1, 2],
        "empty list": [],
        "ragged": [[1], [1, 2]],
        "texts": ["a", "b"],
        "nested": [[1.0, 2.0], [2.0, 1.0]],
        "cyclic": cyclic,
        "tuple": (1,),
        "dict": {"a": 1},
        "empty dict": {},
        "set": {1, 2},
        "range": range(3),
        "object": object(),
        "class": Exception,
        "function": lambda *_, **__: None,
        "raising": _raise,
        "exception": ValueError("x"),
        "module": os,
        "hostile": Hostile(),
        "int array": np.arange(4),
        "empty array": np.zeros((0, 0)),
        "no columns": np.zeros((12, 0)),
        "0-D": np.array(3.0),
        "NumPy scalar": np.float32(2.0),
        "NumPy int": np.int8(3),
        "3-D": np.zeros((2, 2, 2)),
        "12 x 2": B.copy(),
        "2 x 12": B.T.copy(),
        "negative": -X,
        "NaNs": np.full((12, 12), np.nan),
        "infinities": np.full((12, 12), np.inf),
        "huge": np.full((12, 12), 1e308),
        "tiny": np.full((12, 12), 5e-324),
        "zeros": np.zeros((12, 12)),
        "asymmetric": np.arange(144.0).reshape(12, 12),
        "complex array": X * 1j,
        "objects": np.array([object()] * 12),
        "text array": np.array(["a"] * 12),
        "dates": np.array(["2020-01-01"] * 12, dtype="datetime64[D]"),
        "records": np.zeros(12, dtype=[("a", "f8"), ("b", "i4")]),
        "bool array": X > 0.5,
        "masked array": np.ma.masked_array(X, X > 0.5),
        "matrix": np.asmatrix(X),
        "float16": X.astype(np.float16),
        "long double": X.astype(np.longdouble),
        "big-endian": X.astype(">f8"),
        "reversed": X[::-1, ::-1],
        "read-only": _read_only(X),
        "sparse": SPARSE,
        "sparse text": sp.coo_array(([1.0], ([0], [0])), shape=(12, 12)),
        "sparse matrix": sp.csc_matrix(SPARSE),
        "damaged sparse": _damaged_sparse(),
        "watched sparse": _watched(),
        "2 watched": [_watched(), _watched()],
        "12 watched": [_watched() for _ in range(12)],
        "lists of watched": [[_watched()], [_watched(), _watched()]],
        "pairs of watched": [[_watched(), _watched()], [_watched(), _watched()]],
        "dict of watched": {"a": _watched(), 0: [_watched()]},
        "objects, watched": _objects([_watched() for _ in range(12)]),
        "sparse NaN": sp.csr_array(np.where(X > 0.9, np.nan, 0.0)),
        "generator": np.random.default_rng(0),
        "random state": np.random.RandomState(0),
        "result": FIT,
        "solver": solvers.PGD(),
        "coupling": coupling.Fixed(1.0),
        "storage": storage.LowRank(B),
        "estimator": symnmf.SymNMF(2),
        "list of points": B.tolist(),
        "one point": B[:1].copy(),
        "frame": pd.DataFrame(X),
        "frame of points": pd.DataFrame(B, columns=["a", "b"]),
        "series": pd.Series(np.arange(12)),
    }


def _raise(*_: object, **__: object) -> None:
    raise InputError("this callable was called.")


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _damaged_sparse() -> sp.csr_array:
    damaged = SPARSE.copy()
    damaged.indices, damaged.indptr = damaged.indices.copy(), damaged.indptr.copy()
    damaged.indices[0] = 10**6
    damaged.indptr[5] = 10**8
    return damaged


class Watched(sp.csr_array):
    """A damaged sparse matrix that tells if SciPy goes over its indices, which may be a fault."""


def _tell(*_: object, **__: object) -> None:
    raise AssertionError("SciPy went over indices that nobody checked")


for _told in (
    *("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__iter__", "__getitem__"),
    *("__str__", "__add__", "__radd__", "__sub__", "__mul__", "__rmul__", "__matmul__"),
    *("__rmatmul__", "toarray", "todense", "tocoo", "tocsc", "sum", "max", "min", "maximum"),
    *("sum_duplicates", "sort_indices", "nonzero", "multiply", "diagonal", "mean", "dot"),
):
    setattr(Watched, _told, _tell)


def _watched() -> Watched:
    damaged = _damaged_sparse()
    watched = Watched(SPARSE.shape)
    watched.data, watched.indices, watched.indptr = damaged.data, damaged.indices, damaged.indptr
    return watched


def _objects(values: list[Any]) -> np.ndarray:
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return held


def attempts(calls: dict[str, Sound], rng: random.Random) -> Iterator[tuple[str, dict[str, str]]]:
    """Each parameter of each callable with each wrong value, then a few at a time without end."""
    values = list(wrong_values())
    single = [
        (name, {parameter: value})
        for name, sound in calls.items()
        for parameter in sound.parameters()
        for value in values
    ]
    rng.shuffle(single)
    yield from single
    while True:
        name = rng.choice(list(calls))
        parameters = calls[name].parameters()
        some = rng.sample(parameters, min(len(parameters), rng.randint(2, 4)))
        yield name, {parameter: rng.choice(values) for parameter in some}


class Late(BaseException):
    """A call took too long."""


def _too_late(*_: object) -> None:
    raise Late


#: Whatever these ask for is asked in earnest: so many iterations, so many starts.
ASKED = ("max_iter", "n_init", "n_runs", "max_pixels", "n", "rank", "memory", "n_nodes", "side")


def attempt(sound: Sound, wrong: dict[str, str]) -> str:
    """Call with wrong values; return what came of it, which begins with FAILED where it may not."""
    import matplotlib.pyplot as plt

    fresh = wrong_values()
    given = {**sound.given, **{name: fresh[value] for name, value in wrong.items()}}
    before = signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sound.call(**given)
    except InputError as error:
        said = str(error)
        return "refused" if said.strip().endswith((".", "?")) else f"FAILED: not a sentence: {said}"
    except Late:
        return "FAILED: it took too long"
    except MemoryError:
        return "FAILED: MemoryError"
    except Exception as error:
        if isinstance(error, NotFittedError):
            return "refused"  # as scikit-learn asks for
        if isinstance(error, RuntimeError) and "hostile" in str(error):
            return "hostile"  # an object of the caller raised what it likes
        frames = traceback.extract_tb(error.__traceback__)
        place = next((f for f in reversed(frames) if "symnmf" in f.filename), frames[-1])
        where = f"{Path(place.filename).name}:{place.lineno}"
        return f"FAILED: {type(error).__name__}: {str(error)[:100]} at {where}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        plt.close("all")
    return "returned"


def main(count: int, seed: int, folder: Path) -> int:
    os.chdir(folder)
    faulthandler.enable()
    calls, rng = sound_calls(folder), random.Random(seed)
    seen: Counter[str] = Counter()
    for number, (name, wrong) in enumerate(attempts(calls, rng)):
        if number == count:
            break
        came = attempt(calls[name], wrong)
        seen[came.split(":")[0]] += 1
        if came.startswith("FAILED"):
            print(f"{name}({wrong}): {came}", flush=True)
        for kind in ("blocks", "saved.npz", "t.csv"):
            if kind == "blocks" and (folder / kind).is_dir():
                import shutil

                shutil.rmtree(folder / kind)
    print(dict(seen), flush=True)
    return int(seen["FAILED"] > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(
            main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3] if sys.argv[3:] else place))
        )

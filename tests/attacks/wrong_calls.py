"""Every public callable with every wrong kind of argument: a program of its own.

Run as ``python wrong_calls.py COUNT SEED FOLDER``. A sound call of each callable is written down
here; which parameters there are comes from its signature, so that a new one is attacked at once.
Each parameter in turn, or a few of them together, get a value of the wrong kind, and the call must
return, or raise ``InputError`` with one sentence. A call that takes longer than ``PATIENCE``, or
ends in any other exception, is printed with what brought it about.
"""

from __future__ import annotations

import faulthandler
import inspect
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf import coupling, datasets, graphs, metrics, readers, solvers, storage, tensors
from symnmf.errors import InputError
from symnmf.readers.converting import convert

PATIENCE = 60  # seconds; sound calls take milliseconds

RNG = np.random.default_rng(0)
B = RNG.random((12, 2))
X = B @ B.T
POINTS = RNG.random((30, 3))
LABELS = [0, 1] * 6
SPARSE = sp.csr_array(np.where(np.median(X) < X, X, 0.0))
FIT = symnmf.factorize(X, 2, random_state=0, tol=1e-2)


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
        "asymmetric": RNG.random((12, 12)),
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
        "sparse NaN": sp.csr_array(np.where(X > 0.9, np.nan, 0.0)),
        "generator": np.random.default_rng(0),
        "random state": np.random.RandomState(0),
        "result": FIT,
        "solver": solvers.PGD(),
        "coupling": coupling.Fixed(1.0),
        "storage": storage.LowRank(B),
        "estimator": symnmf.SymNMF(2),
    }


def _raise(*_: object, **__: object) -> None:
    raise InputError("this callable was called.")


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _damaged_sparse() -> sp.csr_array:
    damaged = SPARSE.copy()
    damaged.indices = damaged.indices.copy()
    damaged.indices[0] = 10**6
    return damaged


@dataclass(frozen=True)
class Sound:
    """A call that works: what is called, and with what."""

    call: Callable[..., Any]
    given: dict[str, Any]
    signature: Callable[..., Any] | None = None

    def parameters(self) -> list[str]:
        """Names of the parameters, from the signature."""
        found = inspect.signature(self.signature or self.call).parameters.values()
        loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return [each.name for each in found if each.kind not in loose and each.name != "self"]


def _fitted(**given: Any) -> Any:
    X = given.pop("X")
    return symnmf.SymNMF(**given).fit(X)


def _solved_by(kind: type) -> Callable[..., Any]:
    return lambda **given: symnmf.factorize(X, 2, solver=kind(**given), max_iter=3, tol=0.1)


def _coupled_by(kind: type) -> Callable[..., Any]:
    return lambda **given: symnmf.factorize(
        X, 2, solver="symhals", coupling=kind(**given), max_iter=3, tol=0.1
    )


def sound_calls(folder: Path) -> dict[str, Sound]:
    """One sound call of each public callable; limits keep each short."""
    (folder / "X.csv").write_text("\n".join(",".join(map(repr, row)) for row in X.tolist()))
    (folder / "y.txt").write_text("\n".join(map(str, LABELS)))
    np.save(folder / "X.npy", X)
    FIT.save(folder / "fit.npz")
    short = {"max_iter": 3, "tol": 0.1, "random_state": 0}
    communities = symnmf.communities(SPARSE, 2, n_init=1, random_state=0, tol=0.1)
    tensor = tensors.from_tuples([[0, 1, 2], [1, 2, 3], [0, 2, 3]])
    edges = [[0, 1], [1, 2], [2, 0]]
    fit = {"X": POINTS, "n_clusters": 2, "n_init": 1, **short}
    calls = {
        "factorize": Sound(symnmf.factorize, {"X": X, "rank": 2, **short}),
        "certify": Sound(symnmf.certify, {"problem": X, "result": FIT}),
        "compare": Sound(symnmf.compare, {"X": X, "rank": 2, "solvers": ["pgd"], "max_iter": 3}),
        "select_rank": Sound(
            symnmf.select_rank,
            {"X": X, "ranks": [1, 2], "n_runs": 2, "n_folds": 2, "n_init": 1, **short},
        ),
        "communities": Sound(
            symnmf.communities,
            {"G": SPARSE, "n_clusters": 2, "n_init": 1, "tol": 0.1, "random_state": 0},
        ),
        "factorize_tensor": Sound(symnmf.factorize_tensor, {"T": tensor, "rank": 2, **short}),
        "top_features": Sound(symnmf.top_features, {"X": POINTS, "membership": POINTS[:, :2]}),
        "SymNMF": Sound(_fitted, fit, symnmf.SymNMF),
        "SymNMF.predict": Sound(symnmf.SymNMF(2, **short).fit(POINTS).predict, {"X": POINTS}),
        "Result.save": Sound(FIT.save, {"path": folder / "saved.npz"}),
        "Result.load": Sound(symnmf.Result.load, {"path": folder / "fit.npz"}),
        "Result.certificate": Sound(FIT.certificate, {"problem": X}),
        "Communities.predict": Sound(communities.predict, {"edges": [[0, 1]]}),
        "read_matrix": Sound(readers.read_matrix, {"path": folder / "X.csv"}),
        "read_labels": Sound(readers.read_labels, {"path": folder / "y.txt"}),
        "write_table": Sound(
            readers.write_table, {"path": folder / "t.csv", "columns": {"a": [1]}}
        ),
        "convert": Sound(convert, {"source": folder / "X.npy", "folder": folder / "blocks"}),
        "graphs.build": Sound(graphs.build, {"X": POINTS}),
        "graphs.self_tuning": Sound(graphs.self_tuning, {"X": POINTS}),
        "graphs.nearest_neighbors": Sound(graphs.nearest_neighbors, {"X": POINTS}),
        "graphs.rbf": Sound(graphs.rbf, {"X": POINTS}),
        "graphs.cosine": Sound(graphs.cosine, {"X": POINTS}),
        "graphs.normalize": Sound(graphs.normalize, {"A": X}),
        "graphs.from_graph": Sound(graphs.from_graph, {"G": SPARSE}),
        "graphs.from_edges": Sound(graphs.from_edges, {"edges": edges}),
        "graphs.choose_degree_offset": Sound(
            graphs.choose_degree_offset, {"A": SPARSE, "clusters": 2}
        ),
        "graphs.constrained": Sound(graphs.constrained, {"A": X, "must_link": [[0, 1]]}),
        "metrics.overlapping_nmi": Sound(
            metrics.overlapping_nmi, {"true_communities": [[0], [1]], "found_communities": [[0, 1]]}
        ),
        "storage.Blocks": Sound(storage.Blocks, {"source": folder / "X.npy"}),
        "storage.LowRank": Sound(storage.LowRank, {"B": B}),
        "storage.as_symmetric": Sound(storage.as_symmetric, {"X": X}),
        "Problem": Sound(symnmf.Problem, {"X": X}),
        "tensors.as_tensor": Sound(tensors.as_tensor, {"T": tensor}),
        "tensors.from_tuples": Sound(tensors.from_tuples, {"indices": [[0, 1, 2], [1, 2, 3]]}),
        "tensors.from_hyperedges": Sound(tensors.from_hyperedges, {"hyperedges": [[0, 1, 2]]}),
        "tensors.triangles": Sound(tensors.triangles, {"G": np.ones((4, 4)) - np.eye(4)}),
        "datasets.load": Sound(datasets.load, {"name": "karate"}),
        "datasets.synthetic": Sound(datasets.synthetic, {"n": 12, "rank": 2}),
    }
    for name in ("adjusted_rand", "clustering_accuracy", "normalized_mutual_info", "purity"):
        given = {"labels_true": LABELS, "labels_pred": LABELS}
        calls[f"metrics.{name}"] = Sound(getattr(metrics, name), given)
    for kind in (solvers.ADMM, solvers.PGD, solvers.LBFGS, solvers.ASymHALS, solvers.Newton):
        calls[f"solvers.{kind.__name__}"] = Sound(_solved_by(kind), {}, kind)
    for rule in (coupling.Adaptive, coupling.Rising, coupling.Shrinking, coupling.Geometric):
        calls[f"coupling.{rule.__name__}"] = Sound(_coupled_by(rule), {}, rule)
    calls["coupling.Fixed"] = Sound(_coupled_by(coupling.Fixed), {"value": 1.0}, coupling.Fixed)
    return {**calls, **drawn_calls(folder, communities)}


def drawn_calls(folder: Path, communities: Any) -> dict[str, Sound]:
    """Pictures and pages, where matplotlib is there."""
    try:
        import matplotlib as mpl
    except ImportError:
        return {}
    mpl.use("Agg")
    from symnmf import plots, report

    return {
        "plots.convergence": Sound(plots.convergence, {"table": FIT}),
        "plots.memberships": Sound(plots.memberships, {"U": FIT.U}),
        "plots.similarity": Sound(plots.similarity, {"A": X, "labels": LABELS}),
        "plots.typical_members": Sound(
            plots.typical_members, {"images": POINTS, "U": POINTS, "image_shape": (1, 3)}
        ),
        "write_report": Sound(
            report.write_report, {"path": folder / "page.html", "fit": FIT, "A": X}
        ),
    }


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

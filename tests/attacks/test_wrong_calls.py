"""Wrong arguments are an InputError, whichever function they are passed to."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("matplotlib", reason="pictures and pages are among the public functions")

import sound_calls
import wrong_calls

import symnmf
from conftest import long_count
from symnmf import Problem, factorize
from symnmf.errors import InputError

SAMPLE = 150


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sound_calls.Sound]:
    return sound_calls.sound_calls(tmp_path_factory.mktemp("calls"))


#: Functions that reach out to the network, or take nothing of a caller's.
NOT_ATTACKED = {"datasets.fetch", "solvers.available", "storage.on_device"}


def test_every_public_function_is_attacked(calls: dict[str, sound_calls.Sound]) -> None:
    attacked = {id(sound.signature or sound.call) for sound in calls.values()}
    for name in symnmf.__all__:
        thing = getattr(symnmf, name)
        named = {name: thing}
        if inspect.ismodule(thing):
            named = {f"{name}.{each}": getattr(thing, each) for each in thing.__all__}
        for each, function in named.items():
            if inspect.isfunction(function) and each not in NOT_ATTACKED:
                assert id(function) in attacked, each


def test_the_sound_calls_are_sound(calls: dict[str, sound_calls.Sound]) -> None:
    for name in random.Random(1).sample(sorted(calls), 12):
        assert wrong_calls.attempt(calls[name], {}) == "returned", name


def test_some_wrong_calls_are_refused_in_one_sentence(
    calls: dict[str, sound_calls.Sound], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng, seen = random.Random(3), []
    tried = wrong_calls.attempts(calls, rng)
    for _ in range(SAMPLE):
        name, wrong = next(tried)
        came = wrong_calls.attempt(calls[name], wrong)
        assert not came.startswith("FAILED"), (name, wrong, came)
        seen.append(came)
    assert seen.count("refused") > SAMPLE // 2


#: Calls that were bare errors once.
FOUND = [
    ("communities", "negative_weight", "tiny"),
    ("communities(hypergraph)", "negative_weight", "sparse text"),
    ("coupling.Geometric", "until", "1e300"),
    ("Communities.about", "count", "nan"),
    ("Communities.to_networkx", "graph", "None"),
    ("storage.Layers", "layers", "0"),
    ("storage.Layers", "weights", "4000 digits"),
    ("Hypergraph.from_arrays", "members", "ragged"),
    ("storage.Blocks", "source", "storage"),
    ("storage.Blocks", "memory", "text"),
    ("SymNMF.fit", "must_link", "lists of watched"),
    ("graphs.constrained", "A", "watched sparse"),
    ("communities(layers)", "G", "huge"),
    ("write_report", "truth", "dates"),
    ("write_report", "truth", "objects"),
    ("plots.points", "labels", "pairs of watched"),
    ("compare", "solvers", "0.5"),
    ("communities", "weights", "float16"),
    ("graphs.from_edges", "edges", "sparse text"),
    ("communities(layers)", "order", "NumPy int"),
    ("Result.load", "path", "long text"),
    ("write_report", "truth", "set"),
    ("plots.convergence", "table", "storage"),
    ("scanpy.cluster", "row_sparse", "True"),
    ("plots.typical_members", "labels", "pairs of watched"),
    ("plots.similarity", "labels", "12 watched"),
    ("write_report", "settings", "dict of watched"),
]


@pytest.mark.parametrize(("name", "argument", "value"), FOUND)
def test_calls_that_were_bare_errors_once(
    calls: dict[str, sound_calls.Sound], name: str, argument: str, value: str
) -> None:
    assert wrong_calls.attempt(calls[name], {argument: value}) in ("refused", "returned")


def damaged(form: str) -> sp.sparray:
    """A sparse matrix whose indices lead out of it; SciPy follows them into a fault."""
    if form == "coo":
        matrix: Any = sp.coo_array(sound_calls.SPARSE)
        rows, columns = (ends.copy() for ends in matrix.coords)
        rows[2] = 10**8
        matrix.coords = rows, columns
        return matrix
    matrix = sp.csc_array(sound_calls.SPARSE) if form == "csc" else sound_calls.SPARSE.copy()
    matrix.indptr = matrix.indptr.copy()
    matrix.indptr[5] = 10**8
    return matrix


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *(("communities", each) for each in ("G", "attributes", "mask", "entry_weights")),
        *(("Problem", each) for each in ("X", "attributes", "links", "mask", "weights")),
        ("communities(layers)", "mask"),
        ("graphs.scale_attributes", "F"),
    ],
)
def test_no_fault_of_sparse_matrices_whose_indices_lead_out(
    calls: dict[str, sound_calls.Sound], name: str, argument: str, form: str
) -> None:
    sound = calls[name]
    with pytest.raises(InputError):
        sound.call(**{**sound.given, argument: damaged(form)})


def objects(values: list[Any]) -> np.ndarray:
    held = np.empty(len(values), dtype=object)
    held[:] = values
    return held


@pytest.mark.parametrize(
    ("name", "argument", "put"),
    [
        ("Result.save", "names", lambda one: [one] * 12),
        ("Result.save", "names", lambda one: [0, 1] * 5 + [one, one]),
        ("datasets.load", "name", lambda one: one),
        ("graphs.Hypergraph", "hyperedges", lambda one: [one, one]),
        ("graphs.Hypergraph", "hyperedges", lambda one: iter([one, one])),
        ("graphs.Hypergraph", "nodes", lambda one: one),
        ("plots.similarity", "labels", lambda one: [one] * 12),
        ("plots.similarity", "labels", lambda one: objects([one] * 12)),
        ("metrics.clustering_accuracy", "labels_true", lambda one: (one,) * 12),
        ("read", "columns", lambda one: [one, one]),
        ("write_table", "columns", lambda one: {"a": one}),
    ],
)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_no_fault_of_such_matrices_in_lists(
    calls: dict[str, sound_calls.Sound], name: str, argument: str, put: Any, form: str
) -> None:
    sound = calls[name]
    with pytest.raises(InputError):
        sound.call(**{**sound.given, argument: put(damaged(form))})


def test_masks_of_layers_are_looked_at_too() -> None:
    with pytest.raises(InputError, match="mask has indices"):
        Problem([sound_calls.X, sound_calls.X], mask=[None, damaged("csr")])


X = np.ones((4, 4))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("rank", None),
        ("rank", [2]),
        ("coupling", 10**30),
        ("coupling", [1.0]),
        ("checkpoint", 3),
        ("checkpoint", ["run.npz"]),
        ("checkpoint", "x" * 5000),
        ("tol", 10**3999),
        ("tol", X),
        ("random_state", [[]]),
        ("device", 10**30),
        ("callback", 5),
        ("mask", 0.5),
    ],
)
def test_factorize_says_which_argument_is_wrong(argument: str, value: object) -> None:
    given = {"rank": 2, "solver": "symhals", argument: value}
    with pytest.raises(InputError, match=argument):
        factorize(X, **given)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_very_many_wrong_calls(seed: int, tmp_path: Path) -> None:
    count = long_count("SYMNMF_CALLS", 20_000) // 4
    done = subprocess.run(
        [sys.executable, wrong_calls.__file__, str(count), str(seed), tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

"""Kinds of values that arguments take: whole numbers, paths, seeds, one of a few words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Bytes of the longest path and of the longest name in it that systems take.
LONGEST_PATH, LONGEST_NAME = 4096, 255

#: Whole numbers from here on do not fit into 64 bits.
LARGEST = 2**63


@dataclass(frozen=True)
class Kind:
    """A kind of values: how messages call it, how signatures do, and what belongs to it."""

    name: str
    type: str
    holds: Callable[[Any], bool]
    words: tuple[str, ...] = ()


def is_number(value: Any) -> bool:
    """Whether a value is one real number; True and False are not, nor are endless integers."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return abs(int(value)) < LARGEST
    return isinstance(value, float | np.floating)


def _is_whole(value: Any) -> bool:
    return is_number(value) and isinstance(value, int | np.integer)


def is_sparse(value: Any) -> bool:
    """Whether a value, or a type, is a sparse matrix; to go over it is to trust its indices."""
    return hasattr(value, "tocsr")


def _is_path(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike):
        return False
    try:
        text = os.fspath(value)
        if not isinstance(text, str) or not text or "\0" in text:
            return False
        encoded = os.fsencode(text)
        return len(encoded) < LONGEST_PATH and max(map(len, encoded.split(b"/"))) <= LONGEST_NAME
    except (TypeError, UnicodeError):
        return False


def _is_seed(value: Any) -> bool:
    if isinstance(value, int | np.integer):
        return int(value) >= 0
    return isinstance(value, np.random.Generator | np.random.RandomState)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return False
    if is_sparse(value):  # which have no length
        return False
    plain = getattr(getattr(value, "dtype", None), "kind", "") != "V"  # records are no labels
    return plain and (not hasattr(value, "ndim") or value.ndim > 0)


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) or len(getattr(value, "shape", ())) > 0


def whole(least: int | None = None) -> Kind:
    """Whole numbers from ``least`` on."""
    bound = "" if least is None else f" of at least {least}"
    return Kind(
        f"a whole number{bound}",
        "int",
        lambda value: _is_whole(value) and (least is None or value >= least),
    )


def number(least: float | None = None, below: float = np.inf, *, above: bool = False) -> Kind:
    """Numbers from ``least`` on, without it if ``above``, and below ``below``."""
    if least is None:
        return Kind("a number", "float", is_number)
    bound = f" {'above' if above else 'of at least'} {least:g}"
    bound += f" and below {below:g}" if below < np.inf else ""

    def holds(value: Any) -> bool:
        return is_number(value) and (value > least if above else value >= least) and value < below

    return Kind(f"a number{bound}", "float", holds)


def choice(*words: str) -> Kind:
    """One of a few words."""
    name = " or ".join(map(repr, words)) if len(words) < 3 else f"one of {', '.join(words)}"
    return Kind(
        name, f"{{{', '.join(map(repr, words))}}}" if len(words) > 1 else repr(words[0]),
        lambda value: isinstance(value, str) and value in words, words,
    )  # fmt: skip


NONE = Kind("None", "None", lambda value: value is None)
FLAG = Kind("True or False", "bool", lambda value: isinstance(value, bool | np.bool_))
TEXT = Kind("text", "str", lambda value: isinstance(value, str))
PATH = Kind("the path of a file", "path", _is_path)
FUNCTION = Kind(
    "a function", "callable", lambda value: callable(value) and not isinstance(value, type)
)
SEED = Kind(
    "a whole number of at least 0, a numpy Generator or a RandomState",
    "int, Generator, RandomState",
    _is_seed,
)
SEQUENCE = Kind("a sequence", "sequence", _is_sequence)
MAPPING = Kind("a mapping", "mapping", lambda value: isinstance(value, Mapping))
TABLE = Kind("an array or a list of rows", "array-like", _is_table)
MATRIX = Kind("a matrix", "array-like", lambda value: len(getattr(value, "shape", ())) == 2)
ENTRIES = Kind(
    "an array or a sparse matrix",
    "array-like",
    lambda value: len(getattr(value, "shape", ())) == 2 and hasattr(value, "sum"),
)
DEVICE = Kind(
    "'cpu', 'cuda' or a device of torch's",
    "str, torch.device",
    lambda value: isinstance(value, str) or type(value).__name__ == "device",
)
JOBS = Kind(
    "a number of threads, or a negative one counted from all cores",
    "int",
    lambda value: _is_whole(value) and value != 0,
)
AXES = Kind("axes of matplotlib", "Axes", lambda value: hasattr(value, "get_figure"))
RESULT = Kind("what symnmf.factorize returned", "Result", lambda value: hasattr(value, "history"))
SOLVER = Kind("a solver", "Solver", lambda value: hasattr(value, "step"))
COUPLING = Kind("a rule for lambda", "Coupling", lambda value: hasattr(value, "next"))

Kinds = tuple[Kind, ...]

#: Kinds by the names that ``checked`` takes.
KINDS = {
    "axes": AXES, "count": whole(1), "entries": ENTRIES, "flag": FLAG, "mapping": MAPPING,
    "matrix": MATRIX, "none": NONE, "number": number(), "path": PATH, "result": RESULT,
    "sequence": SEQUENCE, "table": TABLE, "text": TEXT, "whole": whole(),
}  # fmt: skip

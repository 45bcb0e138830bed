"""Look names up, and say which are near when one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from symnmf.errors import InputError

T = TypeVar("T")


def shown(value: object) -> str:
    """Return a value for a message: itself where it is short, else what it is."""
    if isinstance(value, str | bytes | int | float | np.generic | type(None)):
        try:
            text = repr(value)
        except ValueError:  # Python writes no number of many thousand digits
            return "a number of thousands of digits"
        return text if len(text) <= 60 else f"{text[:60]}..."
    return type(value).__name__


def lookup(name: str, known: Mapping[str, T], argument: str) -> T:
    """Return ``known[name]``, or raise an error that names the nearest valid ones."""
    if not isinstance(name, str):
        raise InputError(
            f"{argument} must be a name, got {shown(name)}; valid: {', '.join(known)}."
        )
    plain = {_plain(key): value for key, value in known.items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    raise InputError(
        f"{argument} {name!r} is not known; {nearest(name, known)}valid: {', '.join(known)}."
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question that asks whether a similar name was meant; empty if there is none."""
    known, typed = list(known), _plain(name)
    begun = [key for key in known if len(typed) >= 3 and _plain(key).startswith(typed)]
    alike = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    near = list(dict.fromkeys([*begun, *alike]))[:3]
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""


def _plain(name: str) -> str:
    """Capitals and the kind of dash do not matter: the paper writes A-SymHALS."""
    return str(name).lower().replace("_", "-")


#: What the two ends of an edge are called in tables.
END_NAMES = (
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("node1", "node2"),
    ("node_1", "node_2"),
)
USUAL_WEIGHT = "weight"


def named_ends(columns: Sequence[Any]) -> tuple[Any, Any] | None:
    """The columns that are called as the ends of edges usually are, in any case."""
    known = {str(name).strip().lower(): name for name in reversed(list(columns))}
    for first, second in END_NAMES:
        if first in known and second in known:
            return known[first], known[second]
    return None


def named_weight(columns: Sequence[Any], ends: tuple[Any, Any]) -> Any:
    """The column called weight, else the third of three; None if there is neither."""
    others = [column for column in columns if column not in ends]
    called = [column for column in others if str(column).strip().lower() == USUAL_WEIGHT]
    if called:
        return called[0]
    return others[0] if len(others) == 1 else None

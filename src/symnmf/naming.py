"""Look names up, and say which are near when one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from symnmf.arguments import shown
from symnmf.errors import InputError

T = TypeVar("T")


def lookup(name: str, known: Mapping[str, T], argument: str) -> T:
    """Return ``known[name]``, or raise an error that names the nearest valid ones."""
    if not isinstance(name, str):
        raise InputError(
            f"{argument} must be a name, got {shown(name)}; valid: {', '.join(known)}."
        )
    plain = {_plain(key): value for key, value in known.items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    near = difflib.get_close_matches(str(name).lower(), known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise InputError(f"{argument} {name!r} is not known; {hint}valid: {', '.join(known)}.")


def _plain(name: str) -> str:
    """Capitals and the kind of dash do not matter: the paper writes A-SymHALS."""
    return str(name).lower().replace("_", "-")

"""How an entry point spells its arguments, so that one sentence serves all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

#: Returns an argument, with its value where one is given, as the user types it.
Spelling: TypeAlias = Callable[..., str]

_SHELL = {"n_clusters": "-k", "n_neighbors": "--neighbors", "n_init": "--starts"}
_SHELL_VALUES = {("order", 3): "--triangles"}


_PYTHON_VALUES = {("scale", "standard"): "sklearn.preprocessing.StandardScaler"}


def in_python(name: str, *value: Any) -> str:
    """Return ``name`` or ``name=value``."""
    if (name, *value) in _PYTHON_VALUES:
        return _PYTHON_VALUES[name, value[0]]
    return f"{name}={value[0]!r}" if value else name


def in_shell(name: str, *value: Any) -> str:
    """Return ``--name``, ``--name value``, or ``--name`` and ``--no-name`` for a flag."""
    option = _SHELL.get(name, "--" + name.replace("_", "-"))
    if (name, *value) in _SHELL_VALUES:
        return _SHELL_VALUES[name, value[0]]
    if not value or value[0] is True:
        return option
    return option.replace("--", "--no-", 1) if value[0] is False else f"{option} {value[0]}"

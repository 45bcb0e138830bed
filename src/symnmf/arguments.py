"""What kind of value each argument takes, by its name, for all public functions at once.

An argument of one name means the same everywhere in this library, so its kind is written down once.
Only kinds are refused here: a number where a table is, an array where a number is meant. Which
numbers make sense is for the function to say, which knows the others.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from symnmf.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

#: The range of a positive number whose powers are numbers too.
TINY_TO_HUGE = (1e-100, 1e100)

#: Bytes of the longest path and of the longest name in it that systems take.
LONGEST, LONGEST_NAME = 4096, 255

#: Larger whole numbers are none that a computer counts with.
MOST = 2**63


def _is_whole(value: Any) -> bool:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return False
    return -MOST < int(value) < MOST


def is_number(value: Any) -> bool:
    """Whether a value is one number; True and False are none, nor are endless ones."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < MOST
    return isinstance(value, float | np.integer | np.floating)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_path(value: Any) -> bool:
    if not isinstance(value, str | os.PathLike):
        return False
    try:
        text = os.fspath(value)
        if not isinstance(text, str) or not text or "\0" in text:
            return False
        encoded = os.fsencode(text)
        return len(encoded) < LONGEST and max(map(len, encoded.split(b"/"))) <= LONGEST_NAME
    except (TypeError, UnicodeError):
        return False


def _is_seed(value: Any) -> bool:
    if isinstance(value, int | np.integer):
        return int(value) >= 0
    return isinstance(value, np.random.Generator | np.random.RandomState)


def is_sparse(value: Any) -> bool:
    """Whether a value, or a type, is a sparse matrix; to go over it is to trust its indices."""
    return hasattr(value, "tocsr")


def _is_sequence(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return False
    if is_sparse(value):  # which have no length
        return False
    plain = getattr(getattr(value, "dtype", None), "kind", "") != "V"  # records are no labels
    return plain and (not hasattr(value, "ndim") or value.ndim > 0)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple | set) and all(isinstance(one, str) for one in value)


def _is_device(value: Any) -> bool:
    return isinstance(value, str) or type(value).__name__ == "device"


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "shape") and len(value.shape) > 0)


#: Kinds of values: how messages call them, and what they are.
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "whole": ("a whole number", _is_whole),
    "number": ("a number", is_number),
    "count": ("a whole number of at least 1", lambda value: _is_whole(value) and value >= 1),
    "flag": ("True or False", _is_flag),
    "chosen": ("'auto'", lambda value: isinstance(value, str) and value == "auto"),
    "text": ("text", _is_text),
    "path": ("the path of a file", _is_path),
    "callable": ("a function", callable),
    "seed": ("a whole number of at least 0, a numpy Generator or a RandomState", _is_seed),
    "sequence": ("a sequence", _is_sequence),
    "matrices": ("a sequence", _is_sequence),
    "mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "table": ("an array or a list of rows", _is_table),
    "axes": ("axes of matplotlib", lambda value: hasattr(value, "get_figure")),
    "matrix": ("a matrix", lambda value: len(getattr(value, "shape", ())) == 2),
    "entries": (
        "an array or a sparse matrix",
        lambda value: len(getattr(value, "shape", ())) == 2 and hasattr(value, "sum"),
    ),
    "texts": ("a list of names", _is_texts),
    "device": ("'cpu', 'cuda' or a device of torch's", _is_device),
    "result": ("what symnmf.factorize returned", lambda value: hasattr(value, "history")),
    "solver": ("a solver", lambda value: hasattr(value, "step")),
    "certificate": ("a certificate", lambda value: hasattr(value, "certified")),
    "quality": ("a Quality", lambda value: hasattr(value, "modularity")),
}

#: The kinds of each argument; several where it takes several, and "none" where it may be None.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "U": ("table",),
    "affinity": ("text", "callable"),
    "all_clusters": ("sequence", "none"),
    "allow_negative": ("flag",),
    "approximate": ("flag",),
    "assume_symmetric": ("flag",),
    "ax": ("axes", "none"),
    "balance": ("flag", "none"),
    "callback": ("callable", "none"),
    "certificate": ("certificate", "none"),
    "checkpoint": ("path", "none"),
    "checkpoint_every": ("number",),
    "clusters": ("whole",),
    "coef0": ("number",),
    "columns": ("mapping",),
    "components": ("text",),
    "constraint_strength": ("number",),
    "criteria": ("texts",),
    "data": ("table", "none"),
    "decimal": ("text",),
    "degree": ("number",),
    "degree_offset": ("number", "none"),
    "device": ("device", "none"),
    "entry_weights": ("matrix", "none"),
    "features": ("sequence", "none"),
    "folder": ("path", "none"),
    "form": ("text",),
    "found_communities": ("sequence",),
    "gamma": ("number", "none"),
    "header": ("flag", "none"),
    "hyperedges": ("sequence",),
    "ignore_diagonal": ("flag",),
    "image_shape": ("sequence", "none"),
    "images": ("table", "none"),
    "k": ("whole",),
    "kernel_params": ("mapping", "none"),
    "l1": ("number",),
    "labels": ("sequence", "none"),
    "labels_pred": ("sequence",),
    "labels_true": ("sequence",),
    "least": ("whole",),
    "links": ("matrix", "none"),
    "loss": ("text",),
    "mask": ("table", "none"),
    "max_iter": ("whole",),
    "max_pixels": ("count",),
    "max_ratio": ("number",),
    "max_rows": ("count",),
    "max_time": ("number", "none"),
    "membership": ("table",),
    "memory": ("number", "text"),
    "missing": ("text", "none"),
    "most": ("whole", "none"),
    "n": ("whole",),
    "n_clusters": ("whole", "text"),
    "n_folds": ("whole",),
    "n_init": ("whole",),
    "n_jobs": ("whole", "none"),
    "n_neighbors": ("whole", "text", "none"),
    "n_nodes": ("whole", "none"),
    "n_runs": ("whole",),
    "names": ("sequence", "none"),
    "noise": ("number",),
    "noise_kind": ("text",),
    "normalize": ("flag", "none"),
    "order": ("whole",),
    "overlapping": ("flag",),
    "path": ("path",),
    "patience": ("number",),
    "per_cluster": ("count",),
    "progress": ("flag", "callable", "none"),
    "quality": ("quality", "none"),
    "random_state": ("seed", "none"),
    "rank": ("whole",),
    "record_every": ("whole",),
    "repeated": ("text", "none"),
    "result": ("result",),
    "ridge": ("number",),
    "row_sparse": ("flag", "none"),
    "scale_neighbor": ("whole",),
    "settings": ("mapping", "none"),
    "share": ("number",),
    "side": ("whole", "none"),
    "solver": ("text", "solver"),
    "solvers": ("sequence", "text"),
    "strength": ("number",),
    "subsets": ("flag",),
    "threshold": ("number", "text"),
    "title": ("text",),
    "tol": ("number",),
    "true_communities": ("sequence",),
    "truth": ("sequence", "none"),
    "verbose": ("whole", "flag"),
    "warm_start": ("flag",),
    "weights": ("table", "none"),
}


def check_ranges(instance: Any, **ranges: tuple[float, float]) -> None:
    """Refuse parameters of a solver that lie outside of their range, ends included."""
    for name, (least, most) in ranges.items():
        value = getattr(instance, name)
        if not least <= value <= most:
            raise InputError(
                f"{name} of {type(instance).__name__} must be from {least:g} to {most:g}, got "
                f"{shown(value)}."
            )


def shown(value: object) -> str:
    """A value for a message: itself where it is short, else what it is."""
    if isinstance(value, str | bytes | int | float | np.generic | type(None)):
        try:
            text = repr(value)
        except ValueError:  # Python writes no number of many thousand digits
            return "a number of thousands of digits"
        return text if len(text) <= 60 else f"{text[:60]}..."
    return f"{type(value).__name__}"


def check(name: str, value: Any, kinds: tuple[str, ...]) -> None:
    """Refuse a value that is of none of the kinds."""
    if value is None and "none" in kinds:
        return
    if any(kind != "none" and KINDS[kind][1](value) for kind in kinds):
        if "sequence" in kinds:
            _check_elements(name, value)
        return
    said = " or ".join("None" if kind == "none" else KINDS[kind][0] for kind in kinds)
    raise InputError(f"{name} must be {said}, got {shown(value)}.")


def _check_elements(name: str, value: Any) -> None:
    """Refuse sparse matrices among labels and names.

    NumPy compares them to sort them, and SciPy then follows indices that nobody checked.
    """
    listed = isinstance(value, list | tuple | set | frozenset)
    if not listed and getattr(getattr(value, "dtype", None), "kind", "") != "O":
        return
    for kind in set(map(type, value if listed else np.asarray(value).ravel())):
        if is_sparse(kind):
            raise InputError(f"{name} must not hold sparse matrices, got a {kind.__name__} in it.")


def check_all(given: dict[str, Any], **others: tuple[str, ...]) -> None:
    """Refuse arguments of the wrong kind, by their names; ``others`` are kinds of this function."""
    for name, value in given.items():
        kinds = others.get(name, ARGUMENTS.get(name))
        if kinds is not None:
            check(name, value, kinds)


def checked(**others: tuple[str, ...]) -> Callable[[F], F]:
    """Refuse arguments of the wrong kind before a function is called."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        known = {
            name: kinds
            for name in signature.parameters
            if (kinds := others.get(name, ARGUMENTS.get(name)))
        }

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError:
                return function(*args, **options)  # which says it in Python's own words
            for name, kinds in known.items():
                if name in given:
                    check(name, given[name], kinds)
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


_TYPES = {"float": "number", "int": "whole", "str": "text", "bool": "flag", "None": "none"}


def check_fields(instance: Any) -> None:
    """Refuse parameters of a solver or a rule that are not of the type their class states."""
    for each in fields(instance):
        names = str(each.type).split(" | ")
        if all(name in _TYPES for name in names):
            kinds = tuple(_TYPES[name] for name in names)
            check(f"{each.name} of {type(instance).__name__}", getattr(instance, each.name), kinds)

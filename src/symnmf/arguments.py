"""Check the arguments of public functions: their kinds, ranges and names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from symnmf.errors import InputError, InputTypeError
from symnmf.kinds import FLAG, KINDS, NONE, SEQUENCE, TEXT, Kinds, is_sparse, number, whole
from symnmf.naming import nearest, shown
from symnmf.options import OPTIONS, names_in

F = TypeVar("F", bound=Callable[..., Any])

#: The range of a positive number whose powers are numbers too.
TINY_TO_HUGE = (1e-100, 1e100)

#: The kinds of arguments that are no options of an entry point, for all public functions at once.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    name: kinds
    for kinds, names in {
        ("axes", "none"): "ax",
        ("count",): "max_pixels per_cluster",
        ("flag",): "approximate assume_symmetric subsets",
        ("mapping", "none"): "settings",
        ("number",): "memory noise strength",
        ("path",): "path",
        ("path", "none"): "folder",
        ("result",): "result",
        ("sequence",): "found_communities hyperedges labels_pred labels_true true_communities",
        ("sequence", "none"): "features image_shape labels names truth",
        ("table",): "U membership",
        ("table", "none"): "data images",
        ("text",): "form noise_kind title",
        ("text", "none"): "repeated",
        ("whole",): "k least n",
        ("whole", "none"): "most n_nodes side",
    }.items()
    for name in names.split()
}

#: What other libraries call an argument, and what may be meant by it here.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "k": ("n_clusters", "rank"),
    "n_components": ("n_clusters", "rank"),
    "seed": ("random_state",),
    "metric": ("affinity",),
    "kernel": ("affinity",),
    "n_threads": ("n_jobs",),
    "timeout": ("max_time",),
    "resolution": ("n_clusters",),
}


def check(name: str, value: Any, kinds: Kinds) -> None:
    """Refuse a value that is of none of the kinds."""
    if any(kind.holds(value) for kind in kinds):
        if SEQUENCE in kinds:
            _check_elements(name, value)
        return
    words = [word for kind in kinds for word in kind.words]
    meant = nearest(value, words).rstrip() if isinstance(value, str) else ""
    raise InputError(
        f"{name} must be {' or '.join(kind.name for kind in kinds)}, got {shown(value)}"
        f"{'; ' + meant if meant else '.'}"
    )


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


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of entry points that are not of their kind, by their names."""
    for name, value in options.items():
        if name in OPTIONS:
            check(name, value, OPTIONS[name].kinds)


def check_names(names: Collection[str], known: Collection[str], function: str) -> None:
    """Refuse keywords that a function does not have, and ask for what may be meant."""
    for name in names:
        if name in known:
            continue
        meant = [word for word in ELSEWHERE.get(name, ()) if word in known]
        asked = f"did you mean {' or '.join(meant)}?" if meant else nearest(name, known).rstrip()
        raise InputTypeError(f"{function} has no argument {name!r}{'; ' + asked if asked else '.'}")


def _kinds_of(name: str, others: Mapping[str, tuple[str, ...]]) -> Kinds:
    names = others.get(name)
    if names is None and name in OPTIONS:
        return OPTIONS[name].kinds
    return tuple(KINDS[kind] for kind in names or ARGUMENTS.get(name, ()))


def checked(options: type | None = None, **others: tuple[str, ...]) -> Callable[[F], F]:
    """Refuse arguments of the wrong kind or name before a function is called.

    ``options`` is the TypedDict of what a function takes by ``**``; ``others`` are the kinds of
    arguments that mean something else in this function.
    """
    more = () if options is None else names_in(options)

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        loose = [p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
        names = [name for name in (*signature.parameters, *more) if name not in loose]
        known = {name: kinds for name in names if (kinds := _kinds_of(name, others))}
        called = _called(function)

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if more or not loose:
                check_names(options, names, called)
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError:
                positional = [*signature.parameters][: len(args)]
                _refuse_missing(signature, {*positional, *options}, known, called)
                return function(*args, **options)  # which says it in Python's own words
            given |= {name: options[name] for name in more if name in options}
            for name, kinds in known.items():
                if name in given:
                    check(name, given[name], kinds)
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


def _refuse_missing(
    signature: inspect.Signature, given: Collection[str], known: Mapping[str, Kinds], called: str
) -> None:
    """Refuse a call without an option that has no default, and say what it may be."""
    for name, parameter in signature.parameters.items():
        if parameter.default is parameter.empty and name not in given and name in OPTIONS:
            kinds = " or ".join(kind.name for kind in known[name])
            raise InputTypeError(f"{called} needs {name}, {kinds}.")


def checked_names(function: F) -> F:
    """Refuse keywords that a function does not have, and ask for what may be meant."""
    names = [*inspect.signature(function).parameters]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        check_names(options, names, _called(function))
        return function(*args, **options)

    return call  # type: ignore[return-value]


def _called(function: Callable[..., Any]) -> str:
    name = function.__qualname__.rpartition("<locals>.")[2]
    return name.removesuffix(".__init__")


#: Kinds of the parameters of solvers and rules, by the types that their classes state.
_FIELDS: dict[Any, Kinds] = {
    "float": (number(),),
    "float | None": (number(), NONE),
    "int": (whole(),),
    "int | None": (whole(), NONE),
    "str": (TEXT,),
    "bool": (FLAG,),
}


def check_fields(instance: Any) -> None:
    """Refuse parameters of a solver or a rule that are not of the type their class states."""
    for each in fields(instance):
        if each.type in _FIELDS:
            name = f"{each.name} of {type(instance).__name__}"
            check(name, getattr(instance, each.name), _FIELDS[each.type])


def check_ranges(instance: Any, **ranges: tuple[float, float]) -> None:
    """Refuse parameters of a solver that lie outside of their range, ends included."""
    for name, (least, most) in ranges.items():
        value = getattr(instance, name)
        if not least <= value <= most:
            raise InputError(
                f"{name} of {type(instance).__name__} must be from {least:g} to {most:g}, got "
                f"{shown(value)}."
            )

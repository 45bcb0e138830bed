"""The two things this library raises or warns about by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "InputError"]


class InputError(ValueError):
    """An argument or a file is not what the call needs.

    The message is one sentence that names the argument, what was wrong with it and what to do.
    It is a ``ValueError``, so scikit-learn's conventions (and its estimator checks) hold.
    """


def __getattr__(name: str) -> Any:
    # scikit-learn's own warning, so that its users' filters work; it takes half a second to import,
    # which a run that converges does not pay
    if name == "ConvergenceWarning":
        from sklearn.exceptions import ConvergenceWarning

        return ConvergenceWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

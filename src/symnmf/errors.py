"""The two things this library raises or warns about by name."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "InputError"]


class InputError(ValueError):
    """An argument or a file is not what the call needs.

    The message is one sentence that names the argument, what was wrong with it and what to do.
    It is a ``ValueError``, so scikit-learn's conventions (and its estimator checks) hold.
    """

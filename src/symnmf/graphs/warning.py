"""What the reader should know of a graph that is usable all the same."""

from __future__ import annotations

import inspect
import os
import warnings

import sklearn

#: Code between the reader's line and a finding: this package, and scikit-learn's ``fit_predict``.
_NOT_THE_READERS = tuple(
    os.path.dirname(os.path.abspath(module)) + os.sep
    for module in (os.path.dirname(__file__), sklearn.__file__)
)


class GraphWarning(UserWarning):
    """The graph is finite and usable, but the data had something the reader should know of."""


def warn(message: str, kind: type[Warning] = GraphWarning) -> None:
    """Warn at the reader's line, however deep the finding was made."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_READERS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)

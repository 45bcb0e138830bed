"""What this library raises and warns about by name, and how it warns."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sysconfig
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "InputError"]

#: Code between the reader's line and a finding: this package, and scikit-learn's ``fit_predict``.
_NOT_THE_READERS = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(os.path.abspath(__file__)),
        os.path.join(sysconfig.get_path("purelib"), "sklearn"),
        os.path.join(sysconfig.get_path("platlib"), "sklearn"),
    )
)

#: A phrase of NumPy's message on nested lists of unequal lengths, and what to say instead.
NUMPY_UNEVEN = "inhomogeneous shape"
UNEVEN = "its rows have unequal lengths; give each the same number of entries"


class InputError(ValueError):
    """An argument or a file is not what the call needs.

    The message is one sentence that names the argument, what was wrong with it and what to do.
    It is a ``ValueError``, so scikit-learn's conventions (and its estimator checks) hold.
    """


class InputTypeError(InputError, TypeError):
    """An InputError that is a TypeError too, where scikit-learn's conventions ask for one."""


@contextlib.contextmanager
def said_as_input_errors(argument: str = "") -> Iterator[None]:
    """Let what another library says of an argument be an InputError, in its own words."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        said = UNEVEN if NUMPY_UNEVEN in str(error) else str(error)
        said = " ".join((f"{argument} is not usable: {said}" if argument else said).split())
        raise kind(said if said.endswith(".") else f"{said}.") from error


def imported(module: str, extra: str, what: str) -> Any:
    """Import a library, or say which extra has it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InputError(f"{what} needs {name}: pip install 'symnmf[{extra}]'.") from None


def warn(message: str, kind: type[Warning]) -> None:
    """Warn at the reader's line, however deep the finding was made."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_READERS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def __getattr__(name: str) -> Any:
    # scikit-learn's own warning, so that its users' filters work; it takes half a second to import,
    # which a run that converges does not pay
    if name == "ConvergenceWarning":
        from sklearn.exceptions import ConvergenceWarning

        return ConvergenceWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

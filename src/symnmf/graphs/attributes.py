"""Tables of attributes: what their entries count before they are explained beside a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import numbers
from symnmf.interchange import column_names, to_host
from symnmf.naming import lookup, shown

#: Ways to scale a table.
TFIDF, COLUMNS, NONE = "tfidf", "columns", "none"
SCALINGS = ("auto", TFIDF, COLUMNS, NONE)


def scale_attributes(F: Any, scaling: str = "auto") -> Any:
    """Return a table of attributes, scaled so that common columns and long rows do not dominate.

    Parameters
    ----------
    F : array-like, scipy sparse or DataFrame, n x m
        One row for each node: words, tags, answers, measurements.
    scaling : {"auto", "tfidf", "columns", "none"}
        "tfidf" is for words and tags: a column counts less the more rows have it, and rows are
        scaled to length 1. "columns" divides each column by its root mean square, so that units do
        not matter. "auto" is "tfidf" if all entries are whole numbers of at least 0, or if F is
        sparse without negative entries, and "columns" otherwise.

    Returns
    -------
    ndarray or csr_array
        Of float64.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> symnmf.graphs.scale_attributes(np.array([[1, 1], [1, 0]])).round(2)
    array([[0.58, 0.81],
           [1.  , 0.  ]])
    """
    scaling = lookup(scaling, {name: name for name in SCALINGS}, "attribute_scaling")
    refuse_text(F, "attributes")
    F = to_host(F)
    with said_as_input_errors("attributes"):
        table = numbers(F if hasattr(F, "shape") else np.asarray(F), "attributes")
    held = table.data if sp.issparse(table) else table
    if not held.any():
        raise InputError("attributes has only zeros; leave it out.")
    positive = held.min(initial=0.0) >= 0
    if scaling == "auto":
        counted = sp.issparse(table) or bool((held == np.floor(held)).all())
        scaling = TFIDF if counted and positive else COLUMNS
    if scaling == NONE:
        return table.copy()
    if scaling == TFIDF:
        if not positive:
            raise InputError(
                "attributes has negative entries, which attribute_scaling='tfidf' does not "
                "support; use 'columns' or 'none'."
            )
        from sklearn.feature_extraction.text import TfidfTransformer

        weighted = TfidfTransformer().fit_transform(table)
        return sp.csr_array(weighted) if sp.issparse(table) else weighted.toarray()
    squares = table.multiply(table) if sp.issparse(table) else table**2
    size = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
    scaled = table @ sp.diags_array(1.0 / np.where(size > 0, size, 1.0))
    return sp.csr_array(scaled) if sp.issparse(table) else scaled


def aligned(F: Any, names: list[Any] | None) -> Any:
    """Return the rows of a DataFrame of attributes in the order of the nodes, if both have names.

    Anything else is in that order already.
    """
    index = getattr(F, "index", None)
    if names is None or index is None or callable(index):
        return F
    missing = [name for name in names if name not in index]
    if missing:
        raise InputError(
            f"attributes has no row for {missing[0]!r}; its index must have every node, or pass an "
            f"array in the order of the nodes."
        )
    if not index.is_unique:
        raise InputError("the index of attributes has a name twice; keep one row for each node.")
    return F.loc[names]


def refuse_text(X: Any, argument: str) -> None:
    """Name text or dates in an array or a data frame; let anything else pass."""
    columns: dict[str, Any] = {"it": X} if isinstance(X, np.ndarray) else {}
    if hasattr(X, "dtypes"):
        columns = {f"its column {name!r}": X[name] for name in column_names(X) or ()}
    for where, column in columns.items():
        values = np.asarray(column).ravel()
        kinds = {values.dtype.kind, getattr(getattr(column, "dtype", None), "kind", "")}
        held = "dates or times" if kinds & {"M", "m"} else None
        if not held and kinds & {"O", "S", "U"}:
            held = next((shown(value) for value in values.tolist() if _is_text(value)), None)
        if held:
            raise InputError(
                f"{argument} must hold numbers, and {where} holds {held}; leave it out, or turn it "
                f"into numbers, as OneHotEncoder and TfidfVectorizer of scikit-learn do."
            )


def _is_text(value: Any) -> bool:
    if not isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False

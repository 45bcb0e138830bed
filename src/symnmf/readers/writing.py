"""Tables written whole or not at all."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.kinds import is_sparse
from symnmf.outputs import write_atomically
from symnmf.readers.source import AnyPath, checked_path, shown, split_ending

APOSTROPHE = "'"
#: What a spreadsheet takes for the start of a formula, and what it may turn into that: full-width,
#: small, raised and lowered signs.
SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212"
SIGNS += "\u207c\u207a\u207b\u208c\u208a\u208b"
#: What some reader takes for the end of a cell or of a row, whatever the file's own separator is.
ENDS = ",;|\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
#: What some reader skips before a cell.
SKIPPED = r"[\s\0-\x1f\x7f\ufeff\u200b\"]*"

_FORMULA = re.compile(rf"((?:^|[{ENDS}]){SKIPPED})(?='*[{SIGNS}])|^(?='*[\t\r\n])")
_PROTECTED = re.compile(rf"((?:^|[{ENDS}]){SKIPPED})'(?='*[{SIGNS}])|^'(?='*[\t\r\n])")
#: A number that no reader takes for anything else. "-inf" and "+nan" are not: in a spreadsheet they
#: are formulas that refer to a name.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_QUOTED = re.compile(rf"[{ENDS}\0-\x1f\x7f\"]|^\s|\s$")


@checked()
def write_table(path: AnyPath, columns: Mapping[str, Sequence[object] | np.ndarray]) -> int:
    """Write columns as a .csv or .csv.gz file, atomically.

    The table is written to a temporary file in the same folder, flushed to the disk and renamed to
    ``path``. If anything fails, ``path`` is unchanged and nothing is left behind. The content of
    the table has no influence on where it is written.

    Parameters
    ----------
    path : str or path
        A file in an existing folder; an existing file is replaced.
    columns : mapping of str to sequence
        Columns of equal length; text, integers, floats, truth values, or None for an empty cell.

    Returns
    -------
    int
        How many cells were changed to keep spreadsheets from running them. An apostrophe is put
        before a sign that starts a formula (``=``, ``+``, ``-``, ``@`` and their full-width forms)
        at the start of a text cell, and after a separator or a line break inside it, where a reader
        with another separator would start a cell. The same holds for the header. Text that already
        has such an apostrophe gets another one, so that two cells never become the same. Numbers,
        including decimals written as text (``-5``), are not changed; ``-inf`` as text is protected,
        since a spreadsheet reads it as a formula. Floats are written with all their digits. Text
        with separators, line breaks or quotes is quoted.

    Raises
    ------
    InputError
        If the ending, the lengths of the columns or the type of a cell is wrong, or if the path
        cannot be written to.
    OSError
        If the disk is full or fails.
    """
    name = checked_path(path)
    ending, zipped = split_ending(name)
    if ending != ".csv":
        raise InputError(f"path must end in .csv or .csv.gz, got {shown(name, 300)}.")
    content, changed = table_bytes(columns)
    whole = gzip.compress(content, mtime=0) if zipped else content
    write_atomically(name, lambda stream: stream.write(whole))
    return changed


def table_bytes(
    columns: Mapping[str, Sequence[object] | np.ndarray],
) -> tuple[bytes, int]:
    """Columns as the content of a .csv file, and how many cells were changed to protect them."""
    rows, changed = _cells(columns)
    lines = [",".join(map(_field, row)) or '""' for row in rows]
    try:
        return "".join(f"{line}\n" for line in lines).encode("utf-8"), changed
    except UnicodeEncodeError as error:
        raise InputError("columns must hold valid Unicode, and a cell does not.") from error


def _field(cell: object) -> str:
    if not isinstance(cell, str):
        return "" if cell is None else str(cell)
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if _QUOTED.search(cell) else cell


def _cells(
    columns: Mapping[str, Sequence[object] | np.ndarray],
) -> tuple[list[tuple[object, ...]], int]:
    if not columns:
        raise InputError("columns must hold at least one column, got none.")
    lists = {}
    for name, column in columns.items():
        if not isinstance(name, str):
            raise InputError(f"columns must have text names, got {shown(name)}.")
        if is_sparse(column) or not isinstance(column, Iterable):
            raise InputError(
                f"columns must be sequences, and {shown(name)} is {type(column).__name__}."
            )
        lists[name] = column.tolist() if isinstance(column, np.ndarray) else list(column)
    lengths = {name: len(column) for name, column in lists.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must have equal lengths, got {shown(lengths, 200)}.")
    given = [list(lists), *zip(*lists.values(), strict=True)]
    rows = [tuple(_plain(cell) for cell in row) for row in given]
    safe = [tuple(_safe(cell) for cell in row) for row in rows]
    changed = sum(
        a is not b
        for old, new in zip(rows, safe, strict=True)
        for a, b in zip(old, new, strict=True)
    )
    return safe, changed


def _plain(cell: object) -> object:
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"columns must hold text and numbers, got {type(cell).__name__}.")
    return value


def _safe(cell: object) -> object:
    if not isinstance(cell, str) or _DECIMAL.fullmatch(cell):
        return cell
    safe = _FORMULA.sub(lambda found: (found[1] or "") + APOSTROPHE, cell)
    return cell if safe == cell else safe


def without_apostrophe(cell: str) -> str:
    """The text that :func:`write_table` wrote as ``cell``."""
    return _PROTECTED.sub(lambda found: found[1] or "", cell)

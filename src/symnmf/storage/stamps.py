"""Whether files were changed since they were opened."""

from __future__ import annotations

import os
from pathlib import Path

Stamps = dict[str, tuple[int, int, int]]


def stamps(source: object) -> Stamps:
    """Return size, time and number of a file, or of every file in a folder; {} for no path."""
    if not isinstance(source, str | os.PathLike):
        return {}
    path = Path(source)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file): _stamp(str(file)) for file in files}


def changed(before: Stamps) -> str | None:
    """Return the first file that is not as it was, or None. New files do not count."""
    for name, known in before.items():
        try:
            same = _stamp(name) == known
        except OSError:
            return name
        if not same:
            return name
    return None


def _stamp(name: str) -> tuple[int, int, int]:
    found = os.stat(name)
    return found.st_size, found.st_mtime_ns, found.st_ino

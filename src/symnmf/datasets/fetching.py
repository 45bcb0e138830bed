"""Download data sets from their public sources, and keep them where the loaders look."""

from __future__ import annotations

import hashlib
import http.client
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import numpy as np

from symnmf.archives import digest
from symnmf.arguments import checked
from symnmf.datasets.loading import STORED, Arrays, Folder, cache_folder, table
from symnmf.datasets.recipes import RECIPES
from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.outputs import check_output, write_atomically

#: Seconds that a server may be silent.
SECONDS = 60.0
#: Names of data sets, addresses, and the SHA-256 digests of what they held.
SOURCES = table("sources.csv")
CHANGED = (
    "is not today what our results were computed with, so it was not kept; please report it, or "
    "name a copy by mirror."
)


@checked(name=("text",), mirror=("text", "none"))
def fetch(name: str, *, folder: Folder = None, mirror: str | None = None) -> Path:
    """Download a data set, check that it is the one our results were computed with, and keep it.

    Parameters
    ----------
    name : str
        One of the names that :func:`symnmf.datasets.available` lists.
    folder : path, optional
        Where it is kept; by default the folder for caches, where the loaders find it.
    mirror : str, optional
        A server that holds copies of the sources, each under the name of its host, as in
        ``http://localhost:8000`` for ``http://localhost:8000/raw.githubusercontent.com/...``.

    Returns
    -------
    Path
        The file.
    """
    key = str(name).lower().replace("-", "_")
    lookup(key, RECIPES, "dataset")
    target = (cache_folder() if folder is None else Path(folder)) / STORED[key].filename
    try:  # before the download
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {str(target.parent)!r} cannot be made ({error}).") from error
    check_output(target, "folder")
    arrays = _made(key, mirror)
    if digest(arrays) != STORED[key].content:
        raise InputError(f"dataset {key!r} {CHANGED}")
    held: dict[str, Any] = dict(arrays)
    write_atomically(target, lambda stream: np.savez_compressed(stream, **held))
    return target


def _made(name: str, mirror: str | None) -> Arrays:
    parts = []
    for _, url, expected in (row for row in SOURCES if row[0] == name):
        content = _download(_mirrored(url, mirror))
        if hashlib.sha256(content).hexdigest() != expected:  # before anything reads it
            raise InputError(f"dataset {name!r} {CHANGED}")
        parts.append(content)
    try:
        return RECIPES[name](*parts)
    except InputError:
        raise
    except Exception as error:  # of scikit-learn's own download
        raise InputError(f"dataset {name!r} cannot be downloaded ({error}); try again.") from error


def _mirrored(url: str, mirror: str | None) -> str:
    parts = urlsplit(url)
    return url if mirror is None else f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}"


def _download(url: str) -> bytes:
    if not url.lower().startswith(("http://", "https://")):
        raise InputError(f"{url} is not an http or https address.")
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
        return content
    except (http.client.HTTPException, OSError, ValueError) as error:
        reason = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
        raise InputError(
            f"{url} cannot be read ({reason}); try again, or name a copy by mirror."
        ) from error

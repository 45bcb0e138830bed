"""Download data sets from their public sources, and keep them where the loaders look."""

from __future__ import annotations

import gzip
import http.client
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from symnmf.arguments import checked
from symnmf.datasets.loading import STORED, Arrays, Folder, cache_folder, digest
from symnmf.datasets.recipes import RECIPES, Recipe
from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.outputs import check_output, write_atomically

#: Seconds that a server may be silent.
SECONDS = 60.0


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
        ``http://localhost:8000`` for ``http://localhost:8000/snap.stanford.edu/data/...``.

    Returns
    -------
    Path
        The file.
    """
    key = str(name).lower().replace("-", "_")
    recipe = lookup(key, RECIPES, "dataset")
    target = (cache_folder() if folder is None else Path(folder)) / STORED[key].filename
    try:  # before the download
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"folder {str(target.parent)!r} cannot be made ({error}).") from error
    check_output(target, "folder")
    arrays = _made(key, recipe, mirror)
    if digest(arrays) != STORED[key].content:
        raise InputError(
            f"dataset {key!r}: what its source sends today is not what our results were computed "
            f"with, so it was not kept; please report it."
        )
    held: dict[str, Any] = dict(arrays)
    write_atomically(target, lambda stream: np.savez_compressed(stream, **held))
    return target


def _made(name: str, recipe: Recipe, mirror: str | None) -> Arrays:
    parts = [_download(_mirrored(url, mirror)) for url in recipe.urls]
    try:
        return recipe.prepare(*parts)
    except ImportError:
        raise InputError(
            f"dataset {name!r} needs networkx: pip install 'symnmf[graphs]'."
        ) from None
    except OSError as error:  # of scikit-learn's own download
        raise InputError(f"dataset {name!r} cannot be downloaded ({error}); try again.") from error
    except Exception as error:  # parsers raise whatever they stumble over
        raise InputError(
            f"dataset {name!r}: its source does not send what it did ({error})."
        ) from error


def _mirrored(url: str, mirror: str | None) -> str:
    if mirror is None:
        return url
    parts = urlsplit(url)
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}"


def _download(url: str) -> bytes:
    if not url.lower().startswith(("http://", "https://")):
        raise InputError(f"{url} is not an http or https address.")
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
        return gzip.decompress(content) if url.endswith(".gz") else content
    except urllib.error.HTTPError as error:
        raise InputError(
            f"{url} answered {error.code} ({error.reason}): the source has gone or moved; name a "
            f"copy by mirror, or report it."
        ) from error
    except (http.client.HTTPException, OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(
            f"{url} cannot be read ({getattr(error, 'reason', error)}); try again, or name a "
            f"copy by mirror."
        ) from error

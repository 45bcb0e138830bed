"""Download data sets from their public sources, and keep them where the loaders look."""

from __future__ import annotations

import http.client
import os
import time
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

#: Most bytes of a download, and of what it decompresses to.
MOST = 256 * 2**20
#: Seconds that a server may be silent, and that all of a download may take.
SECONDS = 60.0
LONGEST = 1800.0


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
    target = _place(cache_folder() if folder is None else Path(folder), key)
    arrays = _made(key, recipe, mirror)
    if digest(arrays) != STORED[key].content:
        raise InputError(
            f"dataset {key!r}: what its source sends today is not what our results were computed "
            f"with, so it was not kept; please report it."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    held: dict[str, Any] = dict(arrays)
    write_atomically(target, lambda stream: np.savez_compressed(stream, **held))
    return target


def _place(folder: Path, name: str) -> Path:
    """The file that a data set is kept in; refused before the download if it cannot be written."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if nearest == folder:
        check_output(folder / STORED[name].filename, "folder")
    elif not os.access(nearest, os.W_OK | os.X_OK) or not nearest.is_dir():
        raise InputError(
            f"folder {str(folder)!r} cannot be made in {str(nearest)!r}; choose another."
        )
    return folder / STORED[name].filename


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
    content, end = bytearray(), time.monotonic() + LONGEST
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            while len(content) <= MOST and (part := answer.read1(2**20)):
                content += part
                if time.monotonic() > end:
                    raise TimeoutError(f"it sent {len(content)} bytes in {LONGEST:g} seconds")
    except urllib.error.HTTPError as error:
        raise InputError(
            f"{url} answered {error.code} ({error.reason}): the source has gone or moved; name a "
            f"copy by mirror, or report it."
        ) from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise InputError(
            f"{url} cannot be reached ({getattr(error, 'reason', error)}); try again, or name a "
            f"copy by mirror."
        ) from error
    if len(content) > MOST:
        raise InputError(f"{url} sends more than {MOST} bytes, which is not the data set.")
    return _decompressed(url, bytes(content)) if url.endswith(".gz") else bytes(content)


def _decompressed(url: str, content: bytes) -> bytes:
    try:
        opener = zlib.decompressobj(wbits=31)
        plain = opener.decompress(content, MOST)
    except zlib.error as error:
        raise InputError(f"{url} sends a damaged gzip stream; try again.") from error
    if not opener.eof:
        raise InputError(f"{url} sends a gzip stream that is cut short or too long; try again.")
    return plain

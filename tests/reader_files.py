"""Files for the reader tests, and the check that one is refused in a good sentence."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.readers import read_matrix

Make = Callable[[str, bytes | str], Path]


def write_file(folder: Path, name: str, content: bytes | str) -> Path:
    """Write bytes or text to a file of the given name, gzipped where the name says so."""
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def refused(path: Path, *parts: str, read: Callable[..., Any] = read_matrix, **limits: Any) -> str:
    """The sentence with which ``path`` is refused, which names the file and holds ``parts``."""
    with pytest.raises(InputError) as caught:
        read(path, **limits)
    text = str(caught.value)
    assert path.name in text
    assert text.isprintable()
    assert text.endswith(".")
    for part in parts:
        assert part in text
    return text


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def dense(adjacency: Any) -> np.ndarray:
    assert isinstance(adjacency, sp.csr_array)
    return adjacency.toarray()


def stored(adjacency: Any) -> int:
    assert isinstance(adjacency, sp.csr_array)
    return adjacency.nnz

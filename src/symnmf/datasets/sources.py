"""Where the files of the data sets are, and whether they are the expected ones."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symnmf.errors import InputError

Array = NDArray[Any]
Folder = str | os.PathLike[str] | None


class File(NamedTuple):
    filename: str
    sha256: str
    source: str


_ORL_CODE = "GitHub: lixiao0982/Dropping-Symmetric-for-Symmetric-NMF (SNMFcode.zip, ORL.mat)"
_COIL_CODE = "GitHub: shixi-1210/Symmertic-nonnegative-matrix-factorization (Data/COIL20.mat)"
_MNIST = "MNIST (fetch=True downloads it through scikit-learn)"
_GML = "GitHub: vlivashkin/community-graphs (gml_graphs)"

FILES = {
    "orl": File(
        "ORL.npz", "579e9614124fda8249b3fa31574381394bf7f580a9129b2c00a88af8eef4f5d6", _ORL_CODE
    ),
    "coil20": File(
        "COIL20.npz", "4faa9a92bad82990ede28cfa25854acfe9c14567128d26efe05363e5d8642ac5", _COIL_CODE
    ),
    "mnist_train3147": File(
        "MNIST_train3147.npz",
        "ff2146a654163e42e723771a345d498d7259ba6b1dacf09d5857aab3f6e17ee5",
        _MNIST,
    ),
    "mnist_test3147": File(
        "MNIST_test3147.npz",
        "c1d4a75126fef4e655fd13d519203f927c4650305698367244cc9a8790295092",
        _MNIST,
    ),
    "mnist_test_sorted3147": File(
        "MNIST_test_sorted3147.npz",
        "2481f6147edc5ba88b2555f5d32caa77a9f41e5404530be28ced0509e220d506",
        _MNIST,
    ),
    "mnist_full": File(
        "MNIST_full.npz", "58c05ffd9880e3b6ddfe8c74b89ccc40c0da6f6152f4c5203a7c6a12919c2344", _MNIST
    ),
    "tdt2": File(
        "TDT2_first3147.npz",
        "54c25bcd1935f917961064f922ea6efb59d8888e3f8a26dd07caefae897f3a35",
        "the first 3147 rows of TDT2 as counts, with labels",
    ),
    "email_eu_core": File(
        "email_eu_core.npz",
        "7c8a4f8f89580f8be7c3913b89a7a8286efee224ac63368d92d1b3573f3ca9f8",
        "the SNAP collection (email-Eu-core)",
    ),
    "football": File(
        "football.npz", "1b12ea98939afdffdfbfdb4a607b318c7689e541fd655c86091b54ec973c785f", _GML
    ),
    "polbooks": File(
        "polbooks.npz", "8491532933bebc0cbbc2cce6073ab7eccc4d25f40333b405b3b84d0c5fc06ba8", _GML
    ),
    "ego_facebook": File(
        "ego_facebook.npz",
        "46eeb52bbffe6b1d3c186ded870f37768cd349fdc4f2358add373054d774266f",
        "the SNAP collection (ego-Facebook)",
    ),
    "ego_circles_348": File(
        "ego_circles_348.npz",
        "911777ce859948d3e48a96b2b8414127226d9e55643b2a427d01ba0cfd149cdb",
        "GitHub: shchur/overlapping-community-detection (data/facebook_ego)",
    ),
    "ego_circles_414": File(
        "ego_circles_414.npz",
        "877da8e9998f22700f5a7f81987a62785d58d2f6351fc0b17151db455c1e09c4",
        "GitHub: shchur/overlapping-community-detection (data/facebook_ego)",
    ),
    "ego_circles_686": File(
        "ego_circles_686.npz",
        "8f09653012618250c012eada52f92c4941bd0d856999579bd7992308a7d6ed18",
        "GitHub: shchur/overlapping-community-detection (data/facebook_ego)",
    ),
    "cora": File(
        "planetoid_cora.npz",
        "4564227c71ee17defb13200867fba234362167e94f4cc3b06b1e064c2b726450",
        "GitHub: kimiyoung/planetoid (data/ind.cora.*)",
    ),
    "dolphins": File(
        "dolphins.npz", "8ace65f5f1b8fd3f6eeaf680682e28caa3d1a661d0a369e09fcbabe2dcb97505", _GML
    ),
    "citeseer": File(
        "planetoid_citeseer.npz",
        "bcbfb4ce6876bc2891b4028cf26de32fe6c54e2e6a0f431c110e4d02428208ca",
        "GitHub: kimiyoung/planetoid (data/ind.citeseer.*)",
    ),
    "newsgroups": File(
        "20newsgroups.npz",
        "e554f3ba2fb4dfff62b40c497d9f2aee4353987b1ca91cab778ea01ba17f2307",
        "GitHub: sanghosuh/lens_nmf-matlab (data/20newsgroups.mat)",
    ),
    "com_dblp": File(
        "com_dblp.npz",
        "e6958fb696d9595fc415809e2cbdcfeee3c8eb92bb0a6b7ba9ccfe6af76c60fe",
        "the SNAP collection (com-DBLP)",
    ),
}


def cache_folder() -> Path:
    """Where fetched data sets are kept: ``$SYMNMF_CACHE``, else the user's folder for caches."""
    if os.environ.get("SYMNMF_CACHE"):
        return Path(os.environ["SYMNMF_CACHE"])
    root = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "symnmf"


def folders(folder: Folder) -> list[Path]:
    if folder is not None:
        return [Path(folder)]
    if os.environ.get("SYMNMF_DATA"):
        return [Path(os.environ["SYMNMF_DATA"]), cache_folder()]
    beside = [Path.cwd().parent, Path(__file__).resolve().parents[3].parent]
    return [*(place / "shared" / "data" for place in beside), cache_folder()]


def digest(arrays: Mapping[str, Any]) -> str:
    """A digest of arrays by their names, types, shapes and values, whatever file holds them."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def find(name: str, folder: Folder) -> Path | None:
    paths = (place / FILES[name].filename for place in folders(folder))
    return next((path for path in paths if path.is_file()), None)


def read(name: str, folder: Folder) -> dict[str, Array]:
    """The arrays of a dataset's file, once its contents have proved to be the expected ones."""
    filename, sha256, source = FILES[name]
    path = find(name, folder)
    if path is None:
        places = " or ".join(dict.fromkeys(map(str, folders(folder))))
        raise InputError(
            f"dataset {name!r} needs the file {filename}, which is not in {places}; call symnmf "
            f"datasets fetch {name}, or set SYMNMF_DATA or pass folder= to where it is (it was "
            f"made from {source})."
        )
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        if (arrays := _fetched(name, path)) is not None:
            return arrays
        raise InputError(
            f"{path} is not the expected {filename}: its SHA-256 begins {found[:12]} instead of "
            f"{sha256[:12]}; replace it with an undamaged copy."
        )
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def _fetched(name: str, path: Path) -> dict[str, Array] | None:
    """The arrays of a file that :func:`fetch` made, whose bytes differ; None for other content."""
    from symnmf.datasets.recipes import RECIPES

    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError):
        return None
    known = name in RECIPES and digest(arrays) == RECIPES[name].content
    return arrays if known else None

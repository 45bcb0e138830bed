"""``symnmf info``: what is installed, and which solvers there are."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from symnmf import __version__
from symnmf.cli import DONE
from symnmf.cli.output import print_json

PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "pandas", "pyarrow", "networkx"),
    *("igraph", "pynndescent", "zarr", "h5py", "anndata", "dask", "torch", "triton", "tqdm"),
)


def info(json: bool) -> int:
    """Show versions, threads, devices and solvers."""
    from symnmf.parallel import available_cores
    from symnmf.solvers import available

    content: dict[str, Any] = {
        "symnmf": __version__,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "threads": available_cores(),
        "devices": _devices(),
        "solvers": [vars(solver) for solver in available()],
    }
    if json:
        print_json(content)
        return DONE
    print(f"symnmf {__version__} on Python {content['python']}, {content['threads']} threads")
    for name, version in content["versions"].items():
        print(f"  {name:14} {version or 'absent'}")
    print(f"devices: {', '.join(content['devices']) or 'none that torch can use'}")
    print("solvers:", *available(), sep="\n  ")
    return DONE


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    """Name the devices that ``--device`` can reach."""
    try:
        import torch
    except ImportError:
        return []
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    known = enumerate(map(torch.cuda.get_device_properties, range(count)))
    return [f"cuda:{k} {it.name}, {it.total_memory / 2**30:.0f} GiB" for k, it in known]

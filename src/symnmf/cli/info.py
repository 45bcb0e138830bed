"""``symnmf info``: what is installed, which solvers there are."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from symnmf import __version__
from symnmf.cli import DONE
from symnmf.cli.output import print_json

CORE = ("numpy", "scipy", "scikit-learn", "numba")
EXTRAS = {
    "plots": ("matplotlib",),
    "pandas": ("pandas",),
    "tables": ("pyarrow",),
    "graphs": ("networkx", "igraph"),
    "approximate": ("pynndescent",),
    "blocks": ("zarr", "h5py"),
    "distributed": ("dask", "distributed"),
    "gpu": ("torch", "triton"),
    "progress": ("tqdm",),
    "anndata": ("anndata",),
}


def info(json: bool) -> int:
    """Show versions, threads, devices and solvers."""
    from symnmf.parallel import available_cores
    from symnmf.solvers import available

    content: dict[str, Any] = {
        "symnmf": __version__,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in CORE},
        "extras": {
            extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()
        },
        "threads": available_cores(),
        "devices": _devices(),
        "solvers": [vars(solver) for solver in available()],
    }
    if json:
        print_json(content)
    else:
        _show(content, [str(solver) for solver in available()])
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


def _show(content: dict[str, Any], solvers: list[str]) -> None:
    core = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    print(f"symnmf {content['symnmf']} on Python {content['python']}: {core}")
    print(f"threads: {content['threads']}")
    print(f"devices: {', '.join(content['devices']) or 'none that torch can use'}")
    print("\nextras:")
    for extra, packages in content["extras"].items():
        found = ", ".join(f"{name} {version or '(absent)'}" for name, version in packages.items())
        print(f"  {extra:12} {found}")
    print("\nsolvers:")
    for line in solvers:
        print(f"  {line}")

"""``symnmf info``: what is installed, which solvers there are, which data sets are present."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

import typer

from symnmf import __version__
from symnmf.cli import options
from symnmf.cli.output import print_json

CORE = ("numpy", "scipy", "scikit-learn", "numba")
EXTRAS = {
    "cli": ("typer", "rich"),
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


def info(json: options.Json = False) -> None:
    """Show versions, threads, solvers and the data sets that are present.

    \b
    Examples:
      symnmf info
      symnmf info --json
    """
    from symnmf import datasets
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
        "datasets": [entry._asdict() for entry in datasets.available()],
    }
    if json:
        print_json(content)
    else:
        _show(content, [str(solver) for solver in available()])


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
    typer.echo(f"symnmf {content['symnmf']} on Python {content['python']}: {core}")
    typer.echo(f"threads: {content['threads']}")
    typer.echo(f"devices: {', '.join(content['devices']) or 'none that torch can use'}")
    typer.echo("\nextras:")
    for extra, packages in content["extras"].items():
        found = ", ".join(f"{name} {version or '(absent)'}" for name, version in packages.items())
        typer.echo(f"  {extra:12} {found}")
    typer.echo("\nsolvers:")
    for line in solvers:
        typer.echo(f"  {line}")
    typer.echo("\ndata sets:")
    for entry in content["datasets"]:
        state = "present" if entry["present"] else "absent"
        size = f"{entry['n']:,} rows, {entry['n_clusters']:,} clusters"
        typer.echo(f"  {entry['name']:22} {entry['kind']:7} {size:31} {state}")

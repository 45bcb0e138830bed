"""Compare installed packages, and the least versions we allow, with a list of known weaknesses.

Run as ``python audit.py FOLDER``, a checkout of github.com/pypa/advisory-database. An installed
version with a known weakness is an error; a least version that has one is printed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


def in_range(version: Version, events: list[dict[str, str]]) -> bool:
    """Whether a version lies between where a weakness came in and where it was fixed."""
    inside = False
    for event in events:
        if "introduced" in event and version >= Version(event["introduced"]):
            inside = True
        if "fixed" in event and version >= Version(event["fixed"]):
            inside = False
        if "last_affected" in event and version > Version(event["last_affected"]):
            inside = False
    return inside


def affects(advisory: dict[str, Any], name: str, version: str) -> bool:
    """Whether a version of a package is among those that an advisory names."""
    for affected in advisory.get("affected", []):
        if canonicalize_name(affected["package"]["name"]) != name:
            continue
        ranges = [one for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM"]
        try:
            found = any(in_range(Version(version), one["events"]) for one in ranges)
        except InvalidVersion:
            found = False
        if found or version in affected.get("versions", []):
            return True
    return False


def weaknesses(folder: Path, versions: Mapping[Any, str]) -> Iterator[str]:
    """Yield a line for each known weakness of the given versions."""
    for name, version in sorted(versions.items()):
        for path in sorted((folder / "vulns" / name).glob("*.yaml")):
            advisory = yaml.safe_load(path.read_text())
            if not advisory.get("withdrawn") and affects(advisory, name, version):
                names = ", ".join([advisory["id"], *advisory.get("aliases", [])])
                yield f"{name} {version}: {names}"


def main(folder: Path) -> int:
    if not (folder / "vulns").is_dir():
        print(f"{folder} is no checkout of github.com/pypa/advisory-database")
        return 2
    installed = {canonicalize_name(one.name): one.version for one in distributions()}
    installed.pop("pip", None)  # installs, and is nothing that we depend on
    told = subprocess.run(
        [sys.executable, Path(__file__).with_name("minimum.py")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    pairs = [line.split("==") for line in told.splitlines()]
    least = {canonicalize_name(name): version for name, version in pairs}
    bad, old = list(weaknesses(folder, installed)), list(weaknesses(folder, least))
    known = sum((folder / "vulns" / name).is_dir() for name in installed)
    print(f"{len(installed)} installed packages, {known} of them with advisories")
    print("\n".join([*(f"installed: {one}" for one in bad), *(f"least: {one}" for one in old)]))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

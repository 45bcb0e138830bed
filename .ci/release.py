"""Check what a release needs besides tests: one version, a changelog, a citation, a clean tree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def faults() -> list[str]:
    found = []
    source = (ROOT / "src" / "symnmf" / "__init__.py").read_text()
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)[1]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"the version is {version}, not MAJOR.MINOR.PATCH")
    if f"v{version}" in git("tag").split():
        found.append(f"v{version} is tagged already; raise __version__")
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        found.append(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'")
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)^## ", changelog, re.MULTILINE | re.DOTALL)
    if waiting is None or waiting[1].strip():
        found.append("CHANGELOG.md must have an empty section '## [Unreleased]' on top")
    for name in ("CITATION.cff", "SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE"):
        if not (ROOT / name).is_file():
            found.append(f"{name} is absent")
    if git("status", "--porcelain"):
        found.append("the working tree is not clean")
    return found


if __name__ == "__main__":
    wrong = faults()
    for fault in wrong:
        print(f"release: {fault}", file=sys.stderr)
    if not wrong:
        print("release: what is left is by hand, see docs/development/releasing.md")
    sys.exit(bool(wrong))

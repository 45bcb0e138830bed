"""Prepare a release, and check what it needs besides tests.

python .ci/release.py                 check: one version, a changelog, a citation, a clean tree
python .ci/release.py --tag v1.2.3    the same for a version that has just been tagged
python .ci/release.py --prepare       date the section of the changelog, as of today (UTC)
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def current_version() -> str:
    source = (ROOT / "src" / "symnmf" / "__init__.py").read_text()
    return re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)[1]


def dated(changelog: str, version: str, day: str) -> str:
    """Return the changelog with its "Unreleased" entries under ``version``, as of ``day``."""
    head, mark, entries = changelog.partition("## [Unreleased]\n")
    if not mark or f"## [{version}]" in changelog:
        raise SystemExit(f"release: CHANGELOG.md has no 'Unreleased' entries for {version}")
    entries = re.sub(r"\A\n*This will be [^\n]*\n", "", entries)
    return f"{head}{mark}\n## [{version}] - {day}\n\n{entries.lstrip()}"


def faults(tag: str | None = None) -> list[str]:
    found = []
    version = current_version()
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"the version is {version}, not MAJOR.MINOR.PATCH")
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, but the version is {version}")
    if tag is None and f"v{version}" in git("tag").split():
        found.append(f"v{version} is tagged already; raise __version__")
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        found.append(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'; use --prepare")
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)^## ", changelog, re.MULTILINE | re.DOTALL)
    if waiting is None or waiting[1].strip():
        found.append("CHANGELOG.md must have an empty section '## [Unreleased]' on top")
    for name in ("CITATION.cff", "SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE"):
        if not (ROOT / name).is_file():
            found.append(f"{name} is missing")
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text()
    if f'version: "{version}"' not in recipe:
        found.append(f"packaging/conda-forge/recipe.yaml does not have the version {version}")
    if git("status", "--porcelain"):
        found.append("the working tree is not clean")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tag", help="the tag that started this, such as v1.2.3")
    parser.add_argument("--prepare", action="store_true")
    chosen = parser.parse_args()
    if chosen.prepare:
        changelog = ROOT / "CHANGELOG.md"
        day = datetime.now(UTC).date().isoformat()
        changelog.write_text(dated(changelog.read_text(), current_version(), day))
        return
    wrong = faults(chosen.tag)
    for fault in wrong:
        print(f"release: {fault}", file=sys.stderr)
    if not wrong:
        print("release: the remaining steps are manual, see docs/development/releasing.md")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

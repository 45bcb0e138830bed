"""Print the least version of every dependency that pyproject.toml states, as pip's constraints."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
needed = list(project["dependencies"])
for name, extra in project["optional-dependencies"].items():
    needed += [] if name in ("test", "docs", "dev") else extra
for one in needed:
    if found := re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one):
        print(f"{found[1]}=={found[2]}")

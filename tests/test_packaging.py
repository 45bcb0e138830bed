"""What a release is made of: versions agree, and the changelog gets its date."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

if not (ROOT / ".ci" / "release.py").is_file():
    pytest.skip("an sdist has neither workflows nor a recipe", allow_module_level=True)


def release_script():
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_changelog_is_dated_by_the_release():
    before = "# Changelog\n\n## [Unreleased]\n\nThis will be 1.2.0.\n\n### Added\n\n- a\n"
    after = release_script().dated(before, "1.2.0", "2030-01-02")
    assert after == (
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-02\n\n### Added\n\n- a\n"
    )
    with pytest.raises(SystemExit, match="entries for"):
        release_script().dated(after, "1.2.0", "2030-01-02")


def test_the_real_changelog_can_be_dated():
    release = release_script()
    text = (ROOT / "CHANGELOG.md").read_text()
    version = release.current_version()
    if f"## [{version}]" in text:
        pytest.skip("this version is dated already")
    after = release.dated(text, version, "2030-01-02")
    assert f"## [Unreleased]\n\n## [{version}] - 2030-01-02\n\n### " in after
    assert len(after) > len(text) - 100


def test_every_classified_python_is_tested_by_the_workflow():
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if ":: Python :: 3." in c]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    matrix = re.search(r"python: \[(.+)\]", workflow)[1]
    assert re.findall(r'"([\d.]+)"', matrix) == named
    assert f">={named[0]}" == PROJECT["requires-python"]


def test_the_conda_recipe_states_the_dependencies_of_pyproject():
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\ntests:")[0]
    stated = {tuple(line.split(" >=")) for line in re.findall(r"^    - (.+ >=.+)$", run, re.M)}
    wanted = PROJECT["dependencies"]
    expected = {tuple(one.split(">=")) for one in wanted} | {("python", "${{ python_min }}")}
    assert stated == expected
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe

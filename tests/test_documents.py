"""Every code block of README and docs runs unchanged, page by page, in the order of the page.

A block marked ``output`` holds what the Python block before it prints.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import symnmf
from shell import command

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|bash|console|output)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
SKIPPED = re.compile(r"<!-- not run: (?P<reason>.+?) -->\s*$")
#: Commands that take minutes or do something to the machine; all others that begin with symnmf run.
LONG = ("symnmf reproduce", "symnmf rank digits")


def pages() -> list[Path]:
    """README and the others beside it, and every page of docs that is not generated."""
    own = [path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"]
    generated = {"_build", "gallery", "generated"}
    return own + [
        path for path in sorted((ROOT / "docs").rglob("*.md")) if not generated & {*path.parts}
    ]


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    reason: str | None  # why it is not run


def blocks(path: Path) -> list[Block]:
    text = path.read_text()
    found = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["code"].splitlines(True))
        skipped = SKIPPED.search(text[: match.start()])
        line = text[: match.start()].count("\n") + 1
        reason = skipped["reason"] if skipped else None
        found.append(Block(match["language"], code, line, reason))
    return found


def commands(block: Block) -> list[list[str]]:
    """Return the calls of ``symnmf`` in a block of shell, without those that take minutes."""
    lines = block.code.replace("\\\n", " ").splitlines()
    calls = [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]
    return [
        shlex.split(call)[1:]
        for call in calls
        if call.startswith("symnmf ") and not call.startswith(LONG)
    ]


def runs(block: Block) -> bool:
    return block.reason is None and (block.language == "python" or bool(commands(block)))


WITH_CODE = [path for path in pages() if any(runs(block) for block in blocks(path))]


def is_a_guide(page: Path) -> bool:
    """Guides promise that a reader can paste them into an empty folder, shell commands included."""
    return page.parent.name == "howto" or page.name == "tutorial.md"


def write_example_files(folder: Path) -> None:
    """Write the files that README and the reference pages use without making them."""
    rng = np.random.default_rng(0)
    group = np.arange(48) % 3
    chance = np.where(group[:, None] == group, 0.6, 0.05)
    linked = np.triu(rng.random((48, 48)) < chance, 1)
    edges = "".join(f"p{i} p{j}\n" for i, j in np.argwhere(linked))
    (folder / "friends.edges").write_text(edges)
    X = np.asarray(symnmf.datasets.synthetic(60, 5, 0.1, random_state=0)[0])
    np.savez(folder / "X.npz", X=X)
    points = rng.normal(size=(60, 3)) + 4 * (np.arange(60) % 4)[:, None]
    np.savetxt(folder / "mine.csv", points, delimiter=",")
    words = rng.random((48, 9)) < np.where(group[:, None] == np.arange(9) % 3, 0.5, 0.1)
    lines = [["name", *(f"w{j}" for j in range(9))]]
    lines += [[f"p{i}", *map(str, row.astype(int))] for i, row in enumerate(words)]
    (folder / "words.csv").write_text("".join(",".join(line) + "\n" for line in lines))


def run_command(arguments: list[str]) -> int:
    return command(*arguments).exit_code


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("default")
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    for module in ("matplotlib", "networkx", "anndata"):
        pytest.importorskip(module, reason=f"pages show the extras too, and {module} is absent")
    monkeypatch.chdir(tmp_path)
    if not is_a_guide(page):
        write_example_files(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    printed = ""
    for block in blocks(page):
        if block.language == "output":
            assert printed.rstrip() == block.code.rstrip(), f"{page}, line {block.line}"
        elif not runs(block):
            continue
        elif block.language == "python":
            code = "\n" * block.line + block.code  # a traceback names the line of the page
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(code, str(page), "exec", dont_inherit=True), names)
            printed = stream.getvalue()
        else:
            for arguments in commands(block):
                assert run_command(arguments) in (0, 3), f"{page}: symnmf {shlex.join(arguments)}"


def test_most_blocks_are_run_and_the_others_say_why():
    python = [b for page in pages() for b in blocks(page) if b.language == "python"]
    left = [block for block in python if not runs(block)]
    assert len(python) >= 40
    assert len(left) <= len(python) // 10


def public_things():
    """Yield every public name: of the package, and of the modules it lists."""
    for name in symnmf.__all__:
        thing = getattr(symnmf, name)
        if not inspect.ismodule(thing):
            yield f"symnmf.{name}", thing
            continue
        for inner in thing.__all__:
            yield f"symnmf.{name}.{inner}", getattr(thing, inner)


def listed_things() -> dict[str, object]:
    """Return what the reference lists, by the name it is listed under, but for what is returned."""
    found = {}
    for path in (ROOT / "docs" / "reference").glob("*.rst"):
        if path.stem == "objects":
            continue
        text, module = path.read_text(), ""
        for line in text.splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif module and (match := re.match(r"(?:   |\.\. autodata:: )([A-Za-z_]\w*)$", line)):
                full = f"{module}.{match[1]}"
                if hasattr(importlib.import_module(module), match[1]):
                    found[full] = getattr(importlib.import_module(module), match[1])
    return found


def test_the_reference_lists_every_public_name_and_no_other():
    listed = listed_things()
    values = list(listed.values())
    missing = [
        name for name, thing in public_things() if not any(thing is value for value in values)
    ]
    assert not missing
    public = [thing for _, thing in public_things()]
    private = [
        name for name, thing in listed.items() if not any(thing is other for other in public)
    ]
    assert not private
    assert listed


def test_every_public_name_has_a_docstring():
    silent = [
        name
        for name, thing in public_things()
        if callable(thing) and not (inspect.getdoc(thing) or "").strip()
    ]
    assert not silent


def test_the_changelog_has_the_form_it_says_it_has():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[Unreleased\]$", text, re.MULTILINE)
    for title in re.findall(r"^## (.+)$", text, re.MULTILINE):
        assert re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title), title
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_page_of_promises_states_the_versions_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "development" / "releasing.md").read_text()
    stated = dict(
        re.findall(r"^\| ([\w-]+)(?: \(extra `\w+`\))? \| ([\d.]+) \|", page, re.MULTILINE)
    )
    extras = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    for name in extras.keys() - {"all", "test", "docs", "dev"}:
        wanted += extras[name]
    least = dict(re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one).groups() for one in wanted)
    assert stated == least | {"Python": project["requires-python"].removeprefix(">=")}


#: What people look for first, and the page that shows it.
TASKS = {
    "keep the index of a data frame": "tables.md",
    "save and load a model": "pipelines.md",
    "search a grid of parameters": "pipelines.md",
    "get soft memberships": "memberships.md",
    "explain a cluster": "memberships.md",
    "find outliers": "new-points.md",
    "resume a run": "large.md",
}


@pytest.mark.parametrize("task", TASKS)
def test_a_common_task_is_two_clicks_from_the_start_and_its_code_is_run(task):
    guides = ROOT / "docs" / "howto"
    assert ":link: howto/index" in (ROOT / "docs" / "index.md").read_text()
    assert f"]({TASKS[task]})" in (guides / "index.md").read_text()
    assert guides / TASKS[task] in WITH_CODE


def test_the_first_picture_of_the_readme_is_on_the_first_screen():
    text = (ROOT / "README.md").read_text()
    assert text[: text.index("![")].count("\n") <= 25

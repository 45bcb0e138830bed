"""Plain English: phrases that readers had to read twice do not come back."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Pattern, and what to write instead.
BANNED = {
    r"\bstands? where\b": "is a drop-in replacement for",
    r"\b(?:can|cannot|could|may) be had\b": "is (not) available, is (not) supported",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\b(?:rooms|doors?|homes)\b": "memory, entry point, storage backend",
    r"\bat home\b": "say what it is for",
    r"\bwherever \w+ lives?\b": "on every storage backend",
    r"\bwhere (?:X|U|it|they|(?:the )?factors) (?:lives?|lies?|stands?)\b": "on the device of X",
    r"\bone text runs\b": "the same code runs on every backend",
    r"\b(?:as it stands|as they stand)\b": "unchanged",
    r"\bspeaks? of\b": "is about, describes",
    r"\bnothing of (?:X|it|them|anybody|others)\b": "no part of",
    r"\bin the place of\b": "instead of",
    r"\bthe bits\b": "bit for bit",
    r"\bgoes? on (?:from|where it)\b": "resumes",
    r"\bwhat was reached\b": "the current result",
    r"\bthings? to themselves\b": "items",
    r"\bwhere there (?:is|are|was|were)\b": "if there is",
    r"\bmost telling\b": "most distinctive",
    r"\bthe clock on the wall\b": "wall-clock time",
    r"\b(?:has|have) no say\b": "does not count",
}
#: Where the word itself is the subject.
ALLOWED = {"tests/test_words.py"}


@cache
def texts() -> dict[str, str]:
    """Return every text that a person wrote, on one line, by its path in the repository."""
    found = [*ROOT.glob("*.md"), ROOT / "Makefile", *ROOT.glob(".ci/*")]
    for folder in ("src", "tests", "benchmarks", "examples"):
        found += ROOT.glob(f"{folder}/**/*.py")
    generated = {"_build", "gallery", "generated"}
    for ending in ("md", "rst", "py"):
        found += [
            path for path in ROOT.glob(f"docs/**/*.{ending}") if not generated & {*path.parts}
        ]
    lines = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in found}
    return {
        name: re.sub(r"[ ]*\n[ ]*(?:#:?[ ])?", " ", text)
        for name, text in lines.items()
        if name not in ALLOWED
    }


@pytest.mark.parametrize("pattern", BANNED)
def test_no_page_or_comment_uses_a_banned_phrase(pattern):
    phrase = re.compile(pattern, re.IGNORECASE)
    found = [f"{name}: {hit[0]}" for name, text in texts().items() for hit in phrase.finditer(text)]
    assert not found, f"write {BANNED[pattern]!r} instead:\n" + "\n".join(found)

"""Tables are written exactly, safely and whole."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symnmf.errors import InputError
from symnmf.readers import write_table
from symnmf.readers.writing import table_bytes, without_apostrophe

RNG = np.random.default_rng(0)


def test_write_table_round_trip(tmp_path: Path) -> None:
    values = RNG.normal(size=50) * 10.0 ** RNG.integers(-300, 300, 50)
    names = [f"n{i}" for i in range(49)] + ['Zoë, "the"\nfirst']
    for path in (tmp_path / "a.csv", tmp_path / "a.csv.gz"):
        assert write_table(path, {"name": names, "value": values, "k": np.arange(50)}) == 0
        opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["name"] for row in rows] == names
        assert [float(row["value"]) for row in rows] == values.tolist()
        assert [int(row["k"]) for row in rows] == list(range(50))


def test_write_table_disarms_formulas_and_says_how_many(tmp_path: Path) -> None:
    changed = ["=1+1", "+a", "-a", "@x", "\tx", "-INFINITY", "+nan", "-Inf", "-1_000", "-0x1", "-."]
    kept = ["-5", "+.5E-3", "-1e999", "1e999", "inf", "nan", "a=b", ""]
    numbers = [-1, -2.5, True, None, np.float64(-0.1), np.int8(-3), 0, float("nan")]
    numbers += [0] * (len(changed) + len(kept) - len(numbers))
    columns = {"=name": changed + kept, "value": numbers}
    assert write_table(tmp_path / "a.csv", columns) == 1 + len(changed)
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == ["'=name", *(f"'{text}" for text in changed), *kept]
    assert [row[1] for row in rows[1:9]] == ["-1", "-2.5", "True", "", "-0.1", "-3", "0", "nan"]


def test_write_table_refusals_leave_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    for columns, sentence in [
        ({}, "at least one column"),
        ({"a": [1], "b": [1, 2]}, "equal lengths"),
        ({"a": [[1]]}, "text and numbers, got list"),
        ({"a": ["\ud800"]}, "valid Unicode"),
        ({1: [1]}, "text names"),
    ]:
        with pytest.raises(InputError, match=sentence):
            write_table(path, columns)  # type: ignore[arg-type]
    for bad, sentence in [
        (tmp_path / "a.txt", "must end in .csv"),
        (tmp_path / "absent" / "a.csv", "No such file"),
    ]:
        with pytest.raises(InputError, match=re.escape(sentence)):
            write_table(bad, {"a": [1]})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_write_table_replaces_whole_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            write_table(path, {"a": [1]})
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]
    write_table(path, {"../../a": ["../../b"]})
    assert path.read_text() == "../../a\n../../b\n"
    assert os.listdir(tmp_path) == ["a.csv"]
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        write_table(tmp_path / "d.csv", {"a": [1]})


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_written_files_have_the_usual_permissions(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", {"a": [1]})
    (tmp_path / "b.csv").write_text("1")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_no_two_names_become_one_cell(tmp_path: Path) -> None:
    names = ["=x", "'=x", "''=x", "x", "'x", "-5", "'-5", "it's"]
    write_table(tmp_path / "a.csv", {"name": names})
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        cells = [row["name"] for row in csv.DictReader(file)]
    assert len(set(cells)) == len(names)
    assert [without_apostrophe(cell) for cell in cells] == names


#: Every way in which a program may cut the file into cells.
READERS = [{"delimiter": delimiter} for delimiter in ",;\t|"]
SIGNS = tuple("=+-@") + tuple("\uff1d\uff0b\uff0d\uff20")


def cells_of_any_reader(text: str) -> Iterator[str]:
    for options in READERS:
        # readers that end a row at any line break, whether or not it is quoted
        for rows in ([text], text.splitlines(), re.split("[\r\n]", text)):
            for row in rows:
                with contextlib.suppress(csv.Error):
                    for cells in csv.reader(io.StringIO(row, newline=""), **options):
                        yield from cells


HOSTILE = st.text(
    st.sampled_from("=+-@\uff1d\uff0b,;|\t\r\n\u2028\x0b\"' a1\ufeff(")
    | st.characters(codec="utf-8"),
    max_size=12,
)


@settings(max_examples=300)
@example(names=["x\r=HYPERLINK(1)"])
@example(names=["a;=1+1"])
@example(names=["\uff1d1+1"])
@example(names=["a", 'b;"=1+1"'])
@example(names=["'\t=x"])
@example(names=["\ufeff=1"])
@example(names=["-INFINITY", "+nan", "a;-Inf", "-1E5", "-1e999"])
@given(names=st.lists(HOSTILE, min_size=1, max_size=4))
def test_no_reader_finds_a_formula_a_row_or_a_column(names: list[str]) -> None:
    content, _ = table_bytes({"name": names, "cluster": list(range(len(names)))})
    text = content.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[1:] for row in rows] == [["cluster"], *([str(k)] for k in range(len(names)))]
    assert [without_apostrophe(row[0]) for row in rows[1:]] == names
    for cell in cells_of_any_reader(text):
        shown = cell.lstrip(' \t\r\n"\ufeff')
        whole_number = re.fullmatch(r"[+-][0-9.eE+-]*", shown.split(",")[0].rstrip()) is not None
        assert not shown.startswith(SIGNS) or whole_number, (names, cell)

"""How many of our files and functions a call goes through, and how deep: the way a reader must go.

Each call is made once before, at one thread, so that what compiles is not counted.

    python benchmarks/walks.py
    PYTHONPATH=../other-checkout/src python benchmarks/walks.py
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import symnmf

HOUSE = str(Path(symnmf.__file__).parent)


def walk(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Return the files, the functions and the greatest depth of a call, ours alone."""
    functions: set[tuple[str, str, int]] = set()
    depth = deepest = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        if not code.co_filename.startswith(HOUSE) or code.co_name == "<module>":
            return
        if event == "call":
            functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
            depth += 1
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _, _ in functions}), len(functions), deepest


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is walked through."""
    import networkx as nx
    from sklearn.datasets import load_digits, load_iris

    digits, miserables = load_digits().data, nx.les_miserables_graph()
    table = folder / "iris.csv"
    np.savetxt(table, load_iris().data, delimiter=",", header="a,b,c,d", comments="", fmt="%.1f")
    B = np.random.default_rng(0).random((300, 10))

    def command() -> None:
        from symnmf.cli import main

        sys.argv = ["symnmf", "cluster", str(table), "-k", "3", "-o", str(folder / "labels.csv")]
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit):
            main()

    return {
        "factorize(X, 10)": lambda: symnmf.factorize(B @ B.T, 10, random_state=0, n_jobs=1),
        "SymNMF(10).fit(digits)": lambda: symnmf.SymNMF(10, random_state=0, n_jobs=1).fit(digits),
        "communities(les mis, 6)": lambda: symnmf.communities(miserables, 6, random_state=0),
        "symnmf cluster iris.csv -k 3": command,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    print("| call | files | functions | depth |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, call in calls(Path(folder)).items():
            try:
                call()
                counted = walk(call)
            except Exception as error:
                print(f"{name}: {error!r}", file=sys.stderr)
                continue
            print("| " + " | ".join([name, *map(str, counted)]) + " |")


if __name__ == "__main__":
    main()

"""What the first call in a process takes, from ``python -c`` to its result, all imports included.

Each call is made in fresh processes, on 200 rows: ``factorize`` on a dense similarity, and
``communities`` and ``SymNMF`` with the number of clusters given. They take turns with the imports
that any such call needs, ``import numpy, scipy.sparse, numba, sklearn.base``. The table has the
medians of their CPU seconds, of the process and the system, with one thread of BLAS: once with the
kernels in numba's cache, and once with an empty cache each time. With ``--beside`` another checkout
takes turns with this one. Sources are copied first, so that nothing is written into a checkout.
With ``--sources`` Python keeps no bytecode of them and compiles them in every process.

    python benchmarks/first_call.py
    python benchmarks/first_call.py --sources --beside ../other-checkout/src
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

START = """
import numpy as np, scipy.sparse as sp, symnmf
rng, kind = np.random.default_rng(0), np.arange(200) % 5
"""
CALLS = {
    "the imports alone": "import numpy, scipy.sparse, numba, sklearn.base",
    "factorize": START + "B = rng.random((200, 5)); symnmf.factorize(B @ B.T, 5)",
    "communities": START
    + """
A = np.triu(rng.random((200, 200)) < np.where(np.equal.outer(kind, kind), 0.3, 0.02), 1)
symnmf.communities(sp.csr_array((A + A.T).astype(float)), 5)
""",
    "SymNMF": START + "symnmf.SymNMF(4).fit(rng.normal(size=(200, 4)) + 6 * np.eye(4)[kind % 4])",
    "symnmf --help": """
import sys
from symnmf.cli import main
sys.argv = ["symnmf", "--help"]
main()
""",
}


def cpu(code: str, source: Path, cache: Path, told: dict[str, str]) -> float:
    """Return the CPU seconds of a process that runs this code."""
    path = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **told, **path},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--beside", type=Path, help="the src folder of another checkout")
    parser.add_argument("--sources", action="store_true")
    given = parser.parse_args()
    told = {"PYTHONDONTWRITEBYTECODE": "1" if given.sources else ""}
    here = Path(__file__).resolve().parents[1] / "src"
    with tempfile.TemporaryDirectory() as folder:
        versions = {}
        for name, source in (("this", here), ("other", given.beside)):
            if source is not None:
                copied = Path(folder, name)
                shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
                versions[name] = copied
        for source in versions.values():
            for code in CALLS.values():
                cpu(code, source, source / "cache", told)
        times: dict[tuple[str, str, bool], list[float]] = {}
        for _ in range(given.repeats):
            for call, code in CALLS.items():
                for name, source in versions.items():
                    for cold in (False, True):
                        with tempfile.TemporaryDirectory(dir=folder) as empty:
                            cache = Path(empty) if cold else source / "cache"
                            spent = cpu(code, source, cache, told)
                        times.setdefault((call, name, cold), []).append(spent)
    print(f"{'':18} {'version':8} {'cached':>8} {'compiled':>9}")
    for call in CALLS:
        for name in versions:
            read, made = (statistics.median(times[call, name, cold]) for cold in (False, True))
            print(f"{call:18} {name:8} {read:8.2f} {made:9.2f}")


if __name__ == "__main__":
    main()

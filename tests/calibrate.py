"""How often judgements are wrong, over many draws of every kind of data.

    python tests/calibrate.py --draws 200 --jobs 16 --out table.md

The table is that of docs/concepts/are-they-real.md; it is written anew as draws come in. Beside it
every draw is kept as a line of JSON. The exit status is 1 where a rate is not what is stated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom

from kinds_of_data import PLANTED, WITHOUT, Kind
from symnmf.cluster.judgement import CHANCE, LEVEL, UNKNOWN, Evidence, evidence_of
from symnmf.graphs import build

EVERY: dict[str, Kind] = WITHOUT | PLANTED

#: The stated rate of false alarms, and the chance that a right rule breaks one of the bounds.
STATED, MISTAKEN = 0.05, 1e-4

#: Draws of a kind that are also judged, to see that number and words agree.
JUDGED = 20

#: Draws that go to a worker at once, and from which on rates are compared more closely.
AT_ONCE, MANY = 10, 200


@dataclass(frozen=True)
class Draw:
    """What is said of one draw."""

    number: int
    untested: bool
    p: float
    contradicts: bool = False

    @property
    def several(self) -> bool:
        """Whether the word would be "clear" or "weak"."""
        return self.p <= LEVEL and not self.untested


def evidence(name: str, seed: int) -> Evidence:
    """Return the evidence in one draw."""
    kind = EVERY[name]
    data = kind.make(np.random.default_rng(seed))
    if not kind.points:
        return evidence_of(data, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of components, in some draws
        graph = build(data, normalize=False)
    return evidence_of(graph, points=data, seed=seed)


def contradicts(here: Evidence) -> bool:
    """Whether number and words differ: one cluster is found where any labels are chance."""
    count = here.selection.recommendation
    fine = here.of_all(here.fine)
    words = {
        here.judge(labels, number).word
        for labels, number in ((fine, int(fine.max()) + 1), (here.selection.labels, count))
    }
    return (words == {CHANCE}) != (count == 1) or (words == {UNKNOWN}) != bool(here.untested)


def drawn(name: str, seeds: Iterable[int]) -> list[Draw]:
    found = []
    for seed in seeds:
        here = evidence(name, seed)
        found.append(
            Draw(
                here.selection.recommendation,
                bool(here.untested),
                here.p,
                seed < JUDGED and contradicts(here),
            )
        )
    return found


def faults_of(name: str, draws: Sequence[Draw]) -> list[str]:
    """Return where the draws of a kind differ from what is stated, at bounds of ``MISTAKEN``."""
    kind, count, found = EVERY[name], len(draws), []
    several = sum(draw.several for draw in draws)
    most = binom.ppf(1 - MISTAKEN, count, STATED)
    if kind.labels is None and several > most:
        found.append(f"{name}: several clusters in {several} of {count} draws")
    if kind.untested and sum(draw.untested for draw in draws) < count - most:
        found.append(f"{name}: edges that depend on each other are tested")
    if several < binom.ppf(MISTAKEN, count, kind.power):
        found.append(f"{name}: clusters in only {several} of {count} draws")
    if any(draw.contradicts for draw in draws):
        found.append(f"{name}: the number and the words contradict each other")
    return found


def faults_of_all(draws: Mapping[str, Sequence[Draw]]) -> list[str]:
    """Return the same of all kinds whose null hypothesis is exact, together."""
    p = [one.p for name, some in draws.items() if EVERY[name].exact for one in some]
    rate = float(np.mean(np.array(p) <= LEVEL))
    if STATED / 3 <= rate <= STATED + 0.01:
        return []
    return [f"false alarms in {rate:.1%} of {len(p)} draws from the null hypothesis"]


def row(name: str, draws: Sequence[Draw]) -> str:
    labels = EVERY[name].labels
    true = 1 if labels is None else int(labels.max()) + 1
    several = np.mean([draw.several for draw in draws])
    untested = np.mean([draw.untested for draw in draws])
    right = np.mean([draw.number == true for draw in draws])
    return f"| {name} | {true} | {len(draws)} | {several:.1%} | {untested:.1%} | {right:.1%} |"


def table(draws: Mapping[str, Sequence[Draw]]) -> str:
    head = "| data | true number | draws | several clusters found | cannot tell | number right |"
    rows = [row(name, draws[name]) for name in EVERY if draws[name]]
    return "\n".join([head, "| --- " * 6 + "|", *rows]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=MANY)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("out/calibration.md"))
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for library in ("OPENBLAS", "OMP", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"  # of workers, which begin anew
    draws: dict[str, list[Draw]] = {name: [] for name in EVERY}
    missing: set[str] = set()
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(options.jobs, context) as pool,
        options.out.with_suffix(".jsonl").open("w") as kept,
    ):
        waiting = {
            pool.submit(drawn, name, range(first, min(first + AT_ONCE, options.draws))): name
            for first in range(0, options.draws, AT_ONCE)
            for name in EVERY
        }
        for done, task in enumerate(as_completed(waiting), 1):
            name = waiting[task]
            try:
                some = task.result()
            except ImportError as error:  # of networkx, which makes some of the graphs
                missing.add(f"{name}: {error}")
                continue
            draws[name] += some
            kept.writelines(json.dumps({"kind": name, **asdict(one)}) + "\n" for one in some)
            kept.flush()
            options.out.write_text(table(draws))
            if done % len(EVERY) == 0:
                print(f"{done} of {len(waiting)} parts", flush=True)
    faults = [fault for name in EVERY for fault in faults_of(name, draws[name])]
    if options.draws >= MANY:
        faults += faults_of_all(draws)
    print("\n".join([*sorted(missing), *faults]) or "all rates are as stated")
    return 1 if faults or missing else 0


if __name__ == "__main__":
    sys.exit(main())

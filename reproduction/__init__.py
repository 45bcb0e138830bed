"""The paper's figures and table again, with a verdict on every claim of its section 4.

:func:`reproduce` runs what is asked for, and writes tables, pictures and one HTML report.
Importing this package imports none of the experiments.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reproduction.experiment import Experiment
    from reproduction.tasks import Task

__all__ = ["available", "expected_seconds", "reproduce"]

NAMES = ("figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "figure7", "table1")


def available() -> list[str]:
    """Return the names of the experiments."""
    return list(NAMES)


def load(name: str) -> Experiment:
    """Return an experiment by its name."""
    from symnmf.naming import lookup

    lookup(name, dict.fromkeys(NAMES), "experiment")
    module = importlib.import_module(f"reproduction.{name}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def _chosen(names: Sequence[str], seeds: int | None, jobs: int | None) -> list[Experiment]:
    from symnmf.errors import InputError

    if isinstance(names, str):
        raise InputError(f"names must be a list of experiments, got the string {names!r}.")
    for argument, value in (("seeds", seeds), ("jobs", jobs)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 1):
            raise InputError(f"{argument} must be None or a whole number from 1, got {value!r}.")
    return [load(name) for name in dict.fromkeys(names or NAMES)]


def _tasks(experiment: Experiment, quick: bool, seeds: int | None, absent: set[str]) -> list[Task]:
    planned = experiment.plan(quick, experiment.seed_list(quick, seeds))
    return [task for task in planned if task.problem.dataset not in absent]


def _absent(experiments: Sequence[Experiment]) -> set[str]:
    from reproduction.tasks import FILES
    from symnmf.datasets.loading import find

    needed = {name for experiment in experiments for name in experiment.needs}
    return {name for name in needed if find(FILES.get(name, name)) is None}


def expected_seconds(
    names: Sequence[str],
    *,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
) -> float:
    """Return about how long :func:`reproduce` will take from nothing, on idle cores.

    It is the sum over all tasks of iterations times a cost per iteration measured on a machine of
    two cores, shared out over ``jobs`` workers but for those whose clock matters, which run alone;
    runs that end before their limit take less.
    """
    from symnmf.parallel import available_cores

    experiments = _chosen(names, seeds, jobs)
    absent = _absent(experiments)
    tasks = {task for e in experiments for task in _tasks(e, quick, seeds, absent)}
    workers = available_cores() if jobs is None else jobs
    alone = sum(task.cost for task in tasks if task.alone)
    together = [task.cost for task in tasks if not task.alone]
    return alone + max([sum(together) / workers, *together])


def reproduce(
    names: Sequence[str],
    *,
    quick: bool = False,
    out: str | Path = "out/reproduction",
    seeds: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int, str], Any] | None = None,
) -> Path:
    """Run experiments and write a report on them.

    Parameters
    ----------
    names : sequence of str
        From :func:`available`; all of them where empty.
    quick : bool
        Fewer iterations, settings and seeds: minutes instead of hours.
    out : path
        A folder for everything. ``out/tasks`` keeps every finished run, so that a second call
        resumes where the first was interrupted, and repeats nothing.
    seeds : int or None
        How many seeds; None for each experiment's own number.
    jobs : int or None
        Worker processes of one thread each; None for all cores. Runs whose clock matters follow
        one at a time. With more than one, a script must call this under
        ``if __name__ == "__main__":``.
    progress : callable or None
        Called with the number of finished tasks, the number of all, and the name of the latest.

    Returns
    -------
    Path
        The report, ``out/report.html``. Beside it lie ``summary.md``, ``claims.csv`` and, for
        every experiment, its table (csv) and picture (png and svg).
    """
    from reproduction.claims import judge
    from reproduction.report import Section, write
    from reproduction.runs import Runs
    from reproduction.tasks import execute

    experiments = _chosen(names, seeds, jobs)
    importlib.import_module("reproduction.drawing").need_matplotlib()
    folder = Path(out)
    kept = folder / "tasks"
    absent = _absent(experiments)
    plans = {e.name: _tasks(e, quick, seeds, absent) for e in experiments}
    execute([task for plan in plans.values() for task in plan], kept, jobs, progress)
    sections = []
    for experiment in experiments:
        runs = Runs.read(plans[experiment.name], kept, quick)
        verdicts = [judge(claim, runs) for claim in experiment.claims]
        missing = [name for name in experiment.needs if name in absent]
        sections.append(Section(experiment, runs, verdicts, missing))
    return write(sections, folder, quick=quick, seeds=seeds, jobs=jobs)

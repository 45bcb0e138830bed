"""``python -m reproduction``: the paper's figures and table."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import reproduction
from symnmf.errors import InputError

#: Seconds between two lines on how far the runs are.
LOG_EVERY = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the paper's experiments again and check what it claims.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="figures and tables; 'all', or none to list them"
    )
    parser.add_argument("--quick", action="store_true", help="small problems, few seeds: minutes")
    parser.add_argument(
        "--out", type=Path, default=Path("out/reproduction"), help="the folder for all results"
    )
    parser.add_argument("--seeds", type=int, help="seeds per experiment")
    parser.add_argument("--jobs", type=int, help="processes; all cores by default")
    arguments = parser.parse_args()
    if not arguments.names:
        for name in reproduction.available():
            print(f"{name:10} {reproduction.load(name).title}")
        return
    try:
        run(arguments)
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(f"interrupted; the same command resumes with the runs saved in {arguments.out}.")


def run(arguments: argparse.Namespace) -> None:
    """Run what is asked for, and print a line on each experiment's verdicts."""
    names = reproduction.available() if "all" in arguments.names else arguments.names
    scale = {"quick": arguments.quick, "seeds": arguments.seeds, "jobs": arguments.jobs}
    minutes = reproduction.expected_seconds(names, **scale) / 60
    print(
        f"{', '.join(names)}: about {minutes:.0f} minutes from nothing; finished runs in "
        f"{arguments.out} count.",
        file=sys.stderr,
    )
    page = reproduction.reproduce(names, out=arguments.out, progress=logger(), **scale)
    for line in verdicts(page.with_name("claims.csv")):
        print(line, file=sys.stderr)
    print(page)


def verdicts(path: Path) -> Iterator[str]:
    """Give a line per experiment on how the paper's sentences came out."""
    words: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["noise"] != "mirrored":
                words.setdefault(row["experiment"], {})[row["sentence"]] = row["verdict"]
    for name, of_sentences in words.items():
        counts = Counter(of_sentences.values())
        noun = "sentence" if len(of_sentences) == 1 else "sentences"
        summary = ", ".join(f"{count} {word}" for word, count in counts.items())
        yield f"{name}: {len(of_sentences)} {noun} of the paper: {summary}."


def logger() -> Callable[[int, int, str], None]:
    """Return what prints tasks done, tasks in all and the latest, now and then."""
    latest = -LOG_EVERY

    def log(done: int, total: int, name: str) -> None:
        nonlocal latest
        if done == total or time.monotonic() - latest >= LOG_EVERY:
            latest = time.monotonic()
            print(f"{done} of {total} tasks: {name}", file=sys.stderr)

    return log


if __name__ == "__main__":
    main()

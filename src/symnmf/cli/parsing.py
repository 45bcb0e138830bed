"""The commands and their options; what an option of the library means is declared once for all."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from symnmf import __version__
from symnmf.kinds import FLAG, NONE
from symnmf.naming import nearest
from symnmf.options import AUTO, OPTIONS, REQUIRED, Option

PROGRAM = "symnmf"
USAGE = """usage: symnmf COMMAND ...

Cluster data and graphs by symmetric nonnegative matrix factorization, X ≈ UUᵀ.

commands:
{commands}

Every command has --help. Exit codes: 0 done; 1 the machine failed; 2 wrong usage or input; 3 not
converged; 130 stopped by Ctrl-C or SIGTERM. After the last two, what was computed is written."""

INPUT = """a file (.csv .tsv .parquet .npz .npy .mtx .h5ad, or a graph .edges .txt .ncol .gml
.graphml .net .hyperedges; each also .gz), or a data set such as digits or karate"""

#: Options of the command alone: their names and what argparse is told of them.
OWN: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "output": (("-o", "--output"), {"metavar": "FILE", "help": "a .csv or .csv.gz; - for stdout"}),
    "U": (("-o", "--output"), {"metavar": "FILE", "required": True, "help": "a .csv with U, or an "
                               ".npz with the whole run, for symnmf.Result.load"}),
    "truth": (("--truth",), {"metavar": "FILE", "help": "known classes of the rows"}),
    "plot": (("--plot",), {"metavar": "FILE", "help": "a picture: .png, .svg or .pdf"}),
    "report": (("--report",), {"metavar": "FILE", "help": "a page with pictures, .html"}),
    "scale": (("--scale",), {"choices": ("standard", "robust"), "help": "bring columns of points "
                             "to one scale, by mean and deviation or by median and quartiles"}),
    "solvers": (("-s", "--solver"), {"metavar": "SOLVER", "dest": "solvers", "action": "append",
                                     "help": "a name that symnmf info lists; repeat for several"}),
    "attributes": (("--attributes",), {"metavar": "FILE", "default": argparse.SUPPRESS, "help": "a "
                                       "table with a row for each node, explained with the graph"}),
    "json": (("--json",), {"action": "store_true", "help": "print one JSON object"}),
    "quiet": (("-q", "--quiet"), {"action": "store_true", "help": "no progress on stderr"}),
    "action": (("action",), {"nargs": "?", "choices": ("list", "fetch"), "default": "list"}),
    "names": (("names",), {"nargs": "*", "metavar": "NAME", "help": "data sets, or all"}),
    "mirror": (("--mirror",), {"help": "a server with copies of the sources, by their hosts"}),
}  # fmt: skip

TABLE = ("columns", "name_column", "header", "decimal", "missing")
MODEL = ("ignore_diagonal", "allow_negative", "l1", "ridge", "loss")
LIMITS = ("tol", "max_iter", "max_time", "random_state", "n_jobs", "device")
RUN = ("solver", "coupling", "init", "n_init", *LIMITS, "checkpoint")


@dataclass(frozen=True)
class Command:
    """What a command does, and its options by the headings of its help."""

    text: str
    examples: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    reads: bool = True


COMMANDS = {
    "cluster": Command(
        "Cluster the rows of a table, the rows of a similarity matrix or the nodes of a graph.",
        (
            "points.csv -o labels.csv",
            "points.csv -k 10 --columns height,weight --scale standard -o labels.csv",
            "friends.edges -k 4 -o labels.csv --report page.html",
            "citations.edges -k 7 --attributes words.csv -o labels.csv",
            "digits -k 10 --seed 0 --json",
        ),
        {
            "options": ("n_clusters", "output", "plot", "report", "truth", "json", "quiet"),
            "tables": (*TABLE, "scale"),
            "from data to a graph": (
                *("affinity", "n_neighbors", "normalize", "degree_offset", "components"),
                *("negative_weight", "attributes", "attribute_weight"),
            ),
            "clusters": ("overlapping", "threshold", "row_sparse", "order", "assign_labels"),
            "what is minimised": MODEL,
            "the run": RUN,
        },
    ),
    "factorize": Command(
        "Factorize a symmetric matrix or a graph, X ≈ UUᵀ, and print the certificate.",
        (
            "X.npz -r 20 -o U.npz",
            "X.mtx.gz -r 20 -o U.csv --solver symanls --max-time 60",
            "X.npz -r 20 -o U.npz --checkpoint run.npz",
            "seen.csv -r 20 -o U.npz --missing nan",
        ),
        {
            "options": ("rank", "U", "normalize", "json", "quiet"),
            "tables": TABLE,
            "what is minimised": MODEL,
            "the run": RUN,
        },
    ),
    "compare": Command(
        "Run several solvers from the same starts and compare error and time.",
        ("digits -r 10", "X.npz -r 20 -s a-symhals -s pgd --plot curves.png -o table.csv"),
        {
            "options": ("rank", "solvers", "output", "plot", "json"),
            "tables": TABLE,
            "the run": ("coupling", "init", "n_init", *LIMITS),
        },
    ),
    "info": Command(
        "Show versions, threads, devices and solvers.", ("", "--json"), {"options": ("json",)},
        reads=False,
    ),
    "datasets": Command(
        "List the data sets, or download some.", ("list", "fetch coil20 football", "fetch all"),
        {"options": ("action", "names", "mirror")}, reads=False,
    ),
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, what may be meant, and where help is."""
        typed = re.search(r"(?:unrecognized arguments: |no command: )([^\s=]+)", message)
        known = [name for action in self._actions for name in action.option_strings]
        known = known if self.prog != PROGRAM else list(COMMANDS)
        meant = (self._named_in_python(typed[1]) or nearest(typed[1], known)) if typed else ""
        print(f"symnmf: {message}; {meant}see {self.prog} --help.", file=sys.stderr)
        sys.exit(2)

    def _named_in_python(self, typed: str) -> str:
        """Ask for the option that an argument of Python stands for; empty if there is none."""
        name = typed.removeprefix("--").replace("-", "_")
        flags = [action.option_strings[-1] for action in self._actions if action.dest == name]
        return f"did you mean {flags[0]!r}? " if flags else ""


def parse(arguments: list[str]) -> tuple[Callable[..., int], dict[str, Any]]:
    """Return the function of a command, and the options that it was given."""
    name, *rest = arguments or ["--help"]
    if name == "--version":
        print(f"symnmf {__version__}")
        sys.exit(0)
    if name not in COMMANDS:
        if name not in ("-h", "--help"):
            Parser(prog=PROGRAM).error(f"no command: {name}")
        lines = (f"  {name:10} {command.text}" for name, command in COMMANDS.items())
        print(USAGE.format(commands="\n".join(lines)))
        sys.exit(0)
    options = vars(_parser(name, COMMANDS[name]).parse_args(rest))
    for option in (options.keys() & OPTIONS.keys()) - OWN.keys():
        if options[option] is not None:
            from symnmf.arguments import check

            kinds = tuple(kind for kind in OPTIONS[option].kinds if kind is not NONE)
            check(OPTIONS[option].shell, options[option], kinds)
    return getattr(importlib.import_module(f"symnmf.cli.{name}"), name), options


def _parser(name: str, command: Command) -> Parser:
    examples = "\n".join(f"  symnmf {name} {line}".rstrip() for line in command.examples)
    parser = Parser(
        prog=f"symnmf {name}",
        usage=f"symnmf {name} {'INPUT ' * command.reads}[options]",
        description=command.text,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if command.reads:
        parser.add_argument("input", metavar="INPUT", help=INPUT)
    for heading, names in command.options.items():
        group = parser if heading == "options" else parser.add_argument_group(heading)
        for option in names:
            if option in OWN:
                flags, settings = OWN[option]
                group.add_argument(*flags, **settings)
            else:
                _add(group, OPTIONS[option], AUTO if option == "n_clusters" else None)
    return parser


def _add(parser: Any, option: Option, default: Any) -> None:
    """Take an option of the library; one that is not given has the library's own default."""
    settings: dict[str, Any] = {"dest": option.name, "help": _text(option, default)}
    settings["default"] = argparse.SUPPRESS if default is None else default
    if FLAG in option.kinds:
        only = option.kinds == (FLAG,)
        settings["action"] = "store_true" if only else argparse.BooleanOptionalAction
    else:
        settings["required"] = option.default is REQUIRED and option.name == "rank"
        words = [word for kind in option.kinds for word in kind.words]
        settings["type"] = partial(_value, tuple(words))
        words += ["N" for kind in option.kinds if kind.type in ("int", "float")]
        settings["metavar"] = "|".join(words) or option.name.upper()
    parser.add_argument(option.shell, **settings)


def _value(words: tuple[str, ...], text: str) -> int | float | str:
    """A number where the text is one and none of the words that the option takes."""
    for kind in () if text in words else (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(option: Option, default: Any) -> str:
    """The meaning of an option without the marks that docstrings have."""
    text = re.sub(r":\w+:`([^`]*)`|``([^`]*)``", lambda match: match[1] or match[2], option.text)
    default = option.default if default is None else default
    if default not in (None, False, REQUIRED):
        text = f"{text.rstrip('.')} (default {default})"
    return text.replace("%", "%%")

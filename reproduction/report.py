"""One HTML page that needs nothing else, a summary in Markdown, and the tables beside them."""

from __future__ import annotations

import base64
import datetime
import io
import platform
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from reproduction.claims import Part, PartVerdict, Verdict, gathered
from reproduction.experiment import Experiment
from reproduction.runs import Runs, Table, write_csv
from symnmf import __version__
from symnmf.outputs import write_atomically
from symnmf.parallel import available_cores

WORDS = ("holds", "partly", "fails", "undecided", "not checked")


@dataclass(frozen=True, eq=False)
class Section:
    """One experiment with what came of it."""

    experiment: Experiment
    runs: Runs
    verdicts: Sequence[Verdict]
    missing: Sequence[str] = ()

    @property
    def counts(self) -> Counter[str]:
        return Counter(verdict.word for verdict in self.verdicts)

    @property
    def skipped(self) -> str:
        if not self.missing:
            return ""
        what = "Skipped" if not self.runs.curves else "Without"
        return (
            f"{what}: {', '.join(self.missing)}, whose files are absent; set SYMNMF_DATA to their "
            f"folder."
        )


def write(
    sections: Sequence[Section], folder: Path, *, quick: bool, seeds: int | None, jobs: int | None
) -> Path:
    """Write everything and return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = _facts(sections, quick, seeds, jobs)
    pictures = {}
    for section in sections:
        name = section.experiment.name
        if section.runs.curves:
            write_csv(section.experiment.table(section.runs), folder / f"{name}.csv")
            pictures[name] = _pictures(section, folder)
    write_csv(claim_table(sections), folder / "claims.csv")
    _write(folder / "summary.md", markdown(sections, facts).encode())
    page = folder / "report.html"
    _write(page, html(sections, facts, pictures).encode())
    return page


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda stream: stream.write(content))


def _pictures(section: Section, folder: Path) -> bytes:
    """Write the picture as PNG and SVG; return the SVG."""
    import matplotlib

    figure = section.experiment.draw(section.runs.shown())
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the places are found; finding them again takes seconds
    drawn = {}
    # a fixed salt and no date: the same numbers give the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "symnmf"}):
        for kind, metadata in (("png", {}), ("svg", {"Date": None})):
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
            drawn[kind] = stream.getvalue()
    for kind, content in drawn.items():
        path = folder / f"{section.experiment.name}.{kind}"
        _write(path, content)
    return drawn["svg"]


def _facts(
    sections: Sequence[Section], quick: bool, seeds: int | None, jobs: int | None
) -> dict[str, str]:
    import numba
    import scipy
    import sklearn

    names = [section.experiment.name for section in sections]
    each = ", ".join(f"{s.experiment.name} {len(s.runs.seeds)}" for s in sections)
    spent = np.concatenate([*{c.task: c["spent"] for s in sections for c in s.runs}.values(), []])
    return {
        "Made by": f"reproduction.reproduce({names}, quick={quick}, seeds={seeds}, jobs={jobs})",
        "Mode": "quick: fewer iterations, settings and seeds than the full run"
        if quick
        else "full",
        "Seeds": f"0, 1, ... ({each})",
        "Runs": f"{len(spent)}, {spent.sum() / 60:.1f} minutes of processor time in the solvers",
        "Versions": f"symnmf {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, numba "
        f"{numba.__version__}",
        "Machine": f"{_processor()}, {available_cores()} cores, {platform.system()} "
        f"{platform.release()}",
        "Settings": "the paper's unless said otherwise: adaptive lambda from 1e-5, uniform(0, 1) "
        "start, L = 2, all methods from the same start; one thread per run, processor time",
        "Date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def claim_table(sections: Sequence[Section]) -> Table:
    """Return the verdicts as a table: one row per part of a sentence."""
    rows = []
    for section in sections:
        for verdict in section.verdicts:
            for noise, judged in _ways(verdict):
                rows += [
                    {
                        "experiment": section.experiment.name,
                        "sentence": verdict.claim.key,
                        "noise": noise,
                        "verdict": judged.word,
                        "part": part.what,
                        "part_verdict": part.word,
                        "held": part.count,
                        "figures": " | ".join(_by_seed(part)),
                    }
                    for part in judged.parts or [PartVerdict(judged.reason, {})]
                ]
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else {})}


def _ways(verdict: Verdict) -> list[tuple[str, Verdict]]:
    second = [("mirrored", verdict.mirrored)] if verdict.mirrored is not None else []
    return [("as the paper writes it", verdict), *second]


def _by_seed(part: PartVerdict) -> list[str]:
    words = {True: "holds", False: "does not hold", None: "undecided"}
    if len(part.outcomes) == 1:
        return [outcome.figures for outcome in part.outcomes.values()]
    return [
        f"seed {seed} ({words[outcome.holds]}): {outcome.figures}"
        for seed, outcome in part.outcomes.items()
    ]


def _text(words: str) -> str:
    """Escape words, write the letters they name, and raise and lower what ^ and _ say."""
    for name, letter in (("sigma", "σ"), ("lambda", "λ"), ("beta-", "β-"), ("sqrt(", "√(")):
        words = re.sub(rf"(?<!\w){re.escape(name)}", letter, words)
    words = re.sub(r"(\d)x10\^", r"\1 × 10^", words.replace("||", "‖").replace("2/pi", "2/π"))
    words = re.sub(r"(?<=[\w*‖])\^(-?\w+)", r"<sup>\1</sup>", escape(words))
    return re.sub(r"(?<=[A-Zλ‖])_(\w)", r"<sub>\1</sub>", words)


def _badge(word: str, text: str = "") -> str:
    return f'<span class="badge {word.replace(" ", "-")}">{escape(text or word)}</span>'


def html(sections: Sequence[Section], facts: dict[str, str], pictures: dict[str, bytes]) -> str:
    """Return the page."""
    details = "".join(
        f"<dt>{escape(name)}</dt><dd>{_fact(name, value)}</dd>" for name, value in facts.items()
    )
    body = "".join(_section(s, pictures.get(s.experiment.name)) for s in sections)
    style = files("reproduction").joinpath("report.css").read_text()
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>The paper’s experiments again</title><style>{style}</style></head><body>"
        f"<h1>The paper’s experiments again</h1><p>{_text(INTRODUCTION)}</p>"
        f"<p>{_text(NOISE)}</p><dl>{details}</dl><h2>Verdicts</h2>{_totals(sections)}"
        f"{body}</body></html>\n"
    )


def counts(sections: Sequence[Section]) -> list[list[str]]:
    """Return the table of verdicts: experiments by words, and the sums of both kinds of noise."""
    rows = [["Experiment", "sentences", *WORDS]]
    for section in sections:
        numbers = [str(section.counts[word]) for word in WORDS]
        rows.append([_heading(section), str(len(section.verdicts)), *numbers])
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    mirrored = [v.mirrored for v in verdicts if v.mirrored is not None]
    both = [v for v in verdicts if v.mirrored is not None]
    for name, group in (
        ("All", verdicts),
        ("Those run with both kinds of noise: as the paper writes it", both),
        ("The same with mirrored noise", mirrored),
    ):
        total = Counter(verdict.word for verdict in group)
        rows.append([name, str(len(group)), *(str(total[word]) for word in WORDS)])
    return rows if mirrored else rows[:-2]


def _totals(sections: Sequence[Section]) -> str:
    rows = counts(sections)
    heads = "".join(f"<th>{_badge(word)}</th>" for word in WORDS)
    lines = []
    links = [f'<a href="#{escape(s.experiment.name)}">' for s in sections]
    for index, (name, *numbers) in enumerate(rows[1:]):
        of_one = index < len(links)
        shown = f"{links[index]}{escape(name)}</a>" if of_one else f"<b>{escape(name)}</b>"
        cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
        lines.append(f"<tr><td>{shown}</td>{cells}</tr>")
    return (
        '<div class="scroll"><table class="totals"><tr><th>Experiment</th><th>sentences</th>'
        f'{heads}</tr>{"".join(lines)}</table></div><p class="muted">{escape(LEGEND)}</p>'
    )


INTRODUCTION = (
    "Every sentence of the paper’s section 4 that says something about the figures stands beside "
    "the picture it is about, with a verdict on the numbers of this run. A sentence is split into "
    "its cases (methods, panels, levels of the error), and each case holds or does not, or is "
    "undecided, for every seed. Thresholds are this library’s where the paper gives none, and are "
    "named. The paper’s own curves come from other random data."
)
NOISE = (
    "The noise. The paper adds sigma |N| with every entry of N drawn apart, so its X is not "
    "symmetric, and that is what is run here: updates of U see X, those of V see X transposed, and "
    "methods with one factor, and ADMM, see (X + X^T) / 2, which is all that E depends on. Write "
    "X = S + A with A antisymmetric. A cannot be fitted by U U^T: it adds ||A||^2 / ||X||^2 to "
    "every E. And it pulls the two factors apart: U - V tends to A U / lambda, so lambda never "
    "quite stops growing under the adaptive rule, and under Kuang’s rule it has to grow to about "
    "sigma sqrt((1 - 2/pi) n / 2) 10^8 before ||U - V|| / ||V|| is below 10^-8, 7.4e7 at n = 300 "
    "and sigma = 0.1, the paper’s 7x10^7. Mirrored noise, which makes X symmetric, is run beside "
    "it on the first seed."
)
LEGEND = (
    "holds: in every decided case, and no part is open. partly: in some. fails: in none, and some "
    "speak against it. undecided: otherwise, where more than half of the cases are."
)


def _fact(name: str, value: str) -> str:
    return f"<code>{escape(value)}</code>" if name == "Made by" else escape(value)


def _heading(section: Section) -> str:
    kind, number = section.experiment.name[:-1], section.experiment.name[-1]
    return f"{kind.capitalize()} {number}: {section.experiment.title}"


def _section(section: Section, picture: bytes | None) -> str:
    experiment = section.experiment
    parts = [
        f'<section id="{escape(experiment.name)}"><h2>{escape(_heading(section))}</h2>',
        f"<p>{_text(experiment.settings(section.runs.quick))}</p>",
    ]
    if section.skipped:
        parts.append(f"<p><b>{escape(section.skipped)}</b></p>")
    if experiment.compared is not None and section.runs.curves:
        parts.append(_html_table(experiment.compared(section.runs)))
    parts.append('<div class="pair"><div>')
    parts += [_article(verdict) for verdict in section.verdicts]
    parts.append("</div>")
    if picture is not None:
        data = base64.b64encode(picture).decode()
        parts.append(
            f'<figure><img alt="{escape(experiment.title)}" '
            f'src="data:image/svg+xml;base64,{data}"></figure>'
        )
    parts.append("</div></section>")
    return "".join(parts)


def _html_table(rows: list[list[str]]) -> str:
    head = "".join(f"<th>{_text(cell)}</th>" for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in rows[1:]
    )
    return f'<div class="scroll"><table class="compared"><tr>{head}</tr>{body}</table></div>'


def _article(verdict: Verdict) -> str:
    claim, word = verdict.claim, verdict.word
    second = verdict.mirrored
    mirrored = (
        f" &nbsp; mirrored noise: {_badge(second.word)} {escape(second.sentence)}" if second else ""
    )
    return (
        f'<article id="{escape(claim.key)}">'
        f'<blockquote class="{word.replace(" ", "-")}">{_text(claim.quote)}</blockquote>'
        f'<p class="counts">{_badge(word)} {escape(verdict.sentence)}{mirrored}</p>'
        f'<p class="counts muted">Read as: {_text(claim.reading)}</p>'
        f"<table>{''.join(_part_row(part) for part in verdict.parts)}</table>"
        f"{_paper_table(claim.paper() if claim.paper is not None else [])}</article>"
    )


def _part_row(part: PartVerdict) -> str:
    first, *others = _by_seed(part)
    shown = _text(first)
    if others:
        rest = "<br>".join(_text(line) for line in others)
        shown = f"<details><summary>{shown}</summary>{rest}</details>"
    return (
        f"<tr><td>{_badge(part.word)}</td><td>{_text(part.what)}</td>"
        f'<td class="number">{escape(part.count)}</td><td>{shown}</td></tr>'
    )


def _paper_table(parts: Sequence[Part]) -> str:
    if not parts:
        return ""
    rows = "".join(_part_row(part) for part in gathered((0, part) for part in parts))
    return f'<p class="counts">The same check on the paper’s own table:</p><table>{rows}</table>'


def markdown(sections: Sequence[Section], facts: dict[str, str]) -> str:
    """Return the summary: facts, verdicts, and the paper's table beside ours."""
    lines = ["# The paper's experiments again", "", INTRODUCTION, "", NOISE, ""]
    lines += [f"- **{name}**: {value}" for name, value in facts.items()]
    lines += ["", *_markdown_table(counts(sections)), "", LEGEND]
    for section in sections:
        lines += ["", f"## {_heading(section)}", ""]
        lines.append(section.experiment.settings(section.runs.quick))
        if section.skipped:
            lines += ["", f"**{section.skipped}**"]
        if section.experiment.compared is not None and section.runs.curves:
            rows = section.experiment.compared(section.runs)
            lines += ["", *_markdown_table(rows)]
        claims = [["Verdict", "The paper", "Cases", "Mirrored noise"]]
        claims += [
            [
                f"{v.word}: {v.sentence}" if v.parts else v.sentence,
                v.claim.quote,
                " | ".join(f"{part.what}: {part.word}" for part in v.parts),
                v.mirrored.word if v.mirrored else "",
            ]
            for v in section.verdicts
        ]
        lines += ["", *_markdown_table(claims)]
    return "\n".join(lines) + "\n"


def _markdown_table(rows: list[list[str]]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(_markdown_cell(cell) for cell in cells) + " |"

    return [line(rows[0]), "|" + " --- |" * len(rows[0]), *(line(row) for row in rows[1:])]


def _markdown_cell(text: str) -> str:
    """Keep a cell in its cell, and its stars and underscores as they are."""
    for character in "\\`*_[]<>":
        text = text.replace(character, f"\\{character}")
    return text.replace(" | ", "<br>").replace("|", "\\|")

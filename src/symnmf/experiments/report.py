"""One HTML page that needs nothing else, a summary in Markdown, and the tables beside them."""

from __future__ import annotations

import base64
import datetime
import io
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from symnmf import __version__
from symnmf.archives import write_atomically
from symnmf.experiments.claims import Verdict
from symnmf.experiments.experiment import Experiment
from symnmf.experiments.runs import Runs, Table, write_csv
from symnmf.parallel import available_cores

WORDS = ("holds", "mixed", "fails", "not checked")

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .3rem; } h2 { font-size: 1.3rem; margin-top: 3rem;
  border-bottom: 2px solid #ddd; padding-bottom: .2rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .86rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .55rem;
  border-bottom: 1px solid #e2e2e2; }
th { background: #f5f5f3; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
q { font-style: italic; } .muted { color: #5a5a5a; font-size: .84rem; }
.badge { display: inline-block; padding: .1rem .5rem; border-radius: .7rem; font-weight: 600;
  white-space: nowrap; font-size: .8rem; }
.holds { background: #d3ece4; color: #00543d; } .mixed { background: #fbe9c3; color: #6b4700; }
.fails { background: #f8d9c9; color: #852f00; } .not-checked { background: #e6e6e6; color: #444; }
code { background: #f5f5f3; padding: .1rem .3rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } dl { display: grid; grid-template-columns: max-content 1fr;
  gap: .2rem 1rem; font-size: .9rem; } dt { font-weight: 600; } dd { margin: 0; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
"""


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

    figure = section.experiment.draw(section.runs)
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
    work = {c.task: float(c["seconds"][-1]) for s in sections for c in s.runs}
    return {
        "Made by": f"symnmf.experiments.reproduce({names}, quick={quick}, seeds={seeds}, "
        f"jobs={jobs})",
        "Mode": "quick: fewer iterations, settings and seeds than the full run"
        if quick
        else "full",
        "Seeds": f"0, 1, ... ({each})",
        "Runs": f"{len(work)}, {sum(work.values()) / 60:.1f} minutes in the solvers together",
        "Versions": f"symnmf {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, numba "
        f"{numba.__version__}",
        "Machine": f"{_processor()}, {available_cores()} cores, {platform.system()} "
        f"{platform.release()}",
        "Settings": "the paper's unless said otherwise: adaptive lambda from 1e-5, uniform(0, 1) "
        "start, L = 2, all methods from the same start; one thread per run",
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
    """Return the claims as a table: one row each."""
    rows = [
        {
            "experiment": section.experiment.name,
            "claim": verdict.claim.key,
            "verdict": verdict.sentence,
            "held": verdict.held,
            "seeds": len(verdict.outcomes),
            "quote": verdict.claim.quote,
            "checked": verdict.claim.checked,
            "thresholds_of_ours": verdict.claim.ours,
            "figures": _figures(verdict),
        }
        for section in sections
        for verdict in section.verdicts
    ]
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else {})}


def _figures(verdict: Verdict) -> str:
    if len(verdict.outcomes) == 1:
        return next(iter(verdict.outcomes.values())).figures
    return " | ".join(
        f"seed {seed} ({'true' if outcome.holds else 'false'}): {outcome.figures}"
        for seed, outcome in verdict.outcomes.items()
    )


def _badge(word: str, text: str) -> str:
    return f'<span class="badge {word.replace(" ", "-")}">{escape(text)}</span>'


def html(sections: Sequence[Section], facts: dict[str, str], pictures: dict[str, bytes]) -> str:
    """Return the page."""
    rows = "".join(
        f'<tr><td><a href="#{escape(s.experiment.name)}">{escape(_heading(s))}</a></td>'
        + "".join(f'<td class="number">{s.counts[word]}</td>' for word in WORDS)
        + "</tr>"
        for s in sections
    )
    total = Counter(verdict.word for s in sections for verdict in s.verdicts)
    sums = "".join(f'<td class="number"><b>{total[word]}</b></td>' for word in WORDS)
    heads = "".join(f"<th>{_badge(word, LEGEND[word])}</th>" for word in WORDS)
    details = "".join(
        f"<dt>{escape(name)}</dt><dd>{_fact(name, value)}</dd>" for name, value in facts.items()
    )
    body = "".join(_section(s, pictures.get(s.experiment.name)) for s in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper’s experiments again</title><style>{STYLE}</style></head><body>"
        f"<h1>The paper’s experiments again</h1><p>{escape(INTRODUCTION)}</p><dl>{details}</dl>"
        f"<h2>Verdicts</h2><table><tr><th>Experiment</th>{heads}</tr>{rows}"
        f"<tr><td><b>All {sum(total.values())} claims</b></td>{sums}</tr></table>"
        f"{body}</body></html>\n"
    )


INTRODUCTION = (
    "Every sentence of the paper’s section 4 that says something about the figures is listed with "
    "what was checked of it, and comes out true or false for every seed on the numbers of this "
    "run. Thresholds are this library’s where the paper gives none, and are named. A claim that "
    "does not hold here is reported as such; the paper’s own curves come from other random data."
)
LEGEND = {
    "holds": "holds in every seed",
    "mixed": "in some",
    "fails": "in none",
    "not checked": "not checked",
}


def _fact(name: str, value: str) -> str:
    return f"<code>{escape(value)}</code>" if name == "Made by" else escape(value)


def _heading(section: Section) -> str:
    kind, number = section.experiment.name[:-1], section.experiment.name[-1]
    return f"{kind.capitalize()} {number}: {section.experiment.title}"


def _section(section: Section, picture: bytes | None) -> str:
    experiment = section.experiment
    parts = [
        f'<section id="{escape(experiment.name)}"><h2>{escape(_heading(section))}</h2>',
        f"<p>{escape(experiment.settings(section.runs.quick))}</p>",
    ]
    if section.skipped:
        parts.append(f"<p><b>{escape(section.skipped)}</b></p>")
    if picture is not None:
        data = base64.b64encode(picture).decode()
        parts.append(
            f'<figure><img alt="{escape(experiment.title)}" '
            f'src="data:image/svg+xml;base64,{data}"></figure>'
        )
    if experiment.compared is not None and section.runs.curves:
        parts.append(_html_table(experiment.compared(section.runs)))
    parts.append(
        "<table><tr><th>Verdict</th><th>The paper</th><th>Checked</th><th>Figures</th></tr>"
        + "".join(_claim_row(verdict) for verdict in section.verdicts)
        + "</table></section>"
    )
    return "".join(parts)


def _html_table(rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows[1:]
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _claim_row(verdict: Verdict) -> str:
    claim = verdict.claim
    figures = "<br>".join(escape(part) for part in _figures(verdict).split(" | "))
    ours = f'<br><span class="muted">Ours: {escape(claim.ours)}</span>' if claim.ours else ""
    return (
        f'<tr id="{escape(claim.key)}"><td>{_badge(verdict.word, verdict.sentence)}</td>'
        f"<td><q>{escape(claim.quote)}</q></td><td>{escape(claim.checked)}{ours}</td>"
        f"<td>{figures}</td></tr>"
    )


def markdown(sections: Sequence[Section], facts: dict[str, str]) -> str:
    """Return the summary: facts, verdicts, and the paper's table beside ours."""
    lines = ["# The paper's experiments again", "", INTRODUCTION, ""]
    lines += [f"- **{name}**: {value}" for name, value in facts.items()]
    lines += ["", "| Experiment | " + " | ".join(LEGEND[word] for word in WORDS) + " |"]
    lines.append("| --- |" + " ---: |" * len(WORDS))
    for section in sections:
        counts = " | ".join(str(section.counts[word]) for word in WORDS)
        lines.append(f"| {_heading(section)} | {counts} |")
    for section in sections:
        lines += ["", f"## {_heading(section)}", ""]
        lines.append(section.experiment.settings(section.runs.quick))
        if section.skipped:
            lines += ["", f"**{section.skipped}**"]
        if section.experiment.compared is not None and section.runs.curves:
            rows = section.experiment.compared(section.runs)
            lines += ["", *_markdown_table(rows)]
        claims = [["Verdict", "The paper", "Checked", "Figures"]]
        claims += [
            [v.sentence, v.claim.quote, f"{v.claim.checked} {v.claim.ours}".strip(), _figures(v)]
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

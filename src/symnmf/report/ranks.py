"""A page about the search for the number of clusters."""

from __future__ import annotations

from html import escape
from pathlib import Path

from symnmf.outputs import write_atomically
from symnmf.report.markup import Cell, facts, section, table, whole_page
from symnmf.report.page import as_figure
from symnmf.selection import RankSelection
from symnmf.selection.figures import draw_alone, panels_of

#: Headings of the columns that the page shows; the table has more.
HEADINGS = {
    "rank": "clusters",
    "heldout_error": "error on hidden pairs",
    "heldout_spread": "its standard error",
    "heldout_auc": "AUC on hidden pairs",
    "ami": "agreement of runs (AMI)",
    "null_ami": "AMI without clusters",
    "ami_excess": "excess: judged",
    "eigenvalue": "eigenvalue",
    "null_eigenvalue": "eigenvalue without clusters",
    "description": "description length, nats",
    "gap": "eigengap",
}

#: What each panel shows.
CAPTIONS = {
    "heldout": "Error on pairs that were hidden; the smaller the better",
    "stability": "How much runs agree, beyond those on a matrix with the same degrees only",
    "eigengap": "How far the eigenvalues of the normalised matrix fall after each number",
    "eigenvalues": "The leading eigenvalues, and what they are without clusters",
}


def write_rank_report(path: str | Path, found: RankSelection, *, title: str = "X") -> Path:
    """Write a self-contained HTML page about a search (needs the extra ``plots``)."""
    kind = "no" if found.recommendation is None or found.status == "stopped" else "yes"
    said = "\n".join(f"{name:14} {choice}" for name, choice in found.choices.items())
    if found.bethe_hessian is not None:
        said += f"\n{'Bethe-Hessian':14} {found.bethe_hessian} negative eigenvalues"
    shown = [name for name in HEADINGS if name in found.table]
    rows: list[list[Cell]] = []
    for place, rank in enumerate(found.table["rank"].tolist()):
        cells: list[Cell] = [(rank, str(rank))]
        values = [float(found.table[name][place]) for name in shown[1:]]
        cells += [(value, f"{value:.4g}") for value in values]
        rows.append(cells)
    pictures = "".join(
        as_figure(CAPTIONS[name], draw_alone(found, name)) for name in panels_of(found)
    )
    body = [
        f'<section class="certificate {kind}"><h2>Recommendation</h2>'
        f"<p><strong>{escape(found.verdict)}.</strong> {escape(found.reason)}</p>"
        f"<pre>{escape(said)}</pre></section>",
        section("What was tried", facts(_tried(found))),
        section("Scores", f'<div class="panels">{pictures}</div>'),
        section("Table", table("ranks", [HEADINGS[name] for name in shown], rows)),
    ]
    content = whole_page(f"How many clusters: {title}", "".join(body)).encode()
    target = Path(path)
    write_atomically(target, lambda stream: stream.write(content))
    return target


def _tried(found: RankSelection) -> list[tuple[str, str]]:
    """Return what the search was told, and how far it came."""
    told = found.settings
    if not told:  # no range was given
        return [(f"{found.table['rank'][-1] if found.table else 0}", "eigenvalues")]
    ranks = told["ranks"]
    every = ranks == list(range(ranks[0], ranks[-1] + 1)) if ranks else True
    span = f"{ranks[0]} to {ranks[-1]}" if len(ranks) > 1 else "".join(map(str, ranks))
    some = "numbers of clusters" if every else f"numbers of clusters, {len(ranks)} of them"
    done, total, seed = told["fits_done"], told["fits"], told["random_state"]
    return [
        (span or "1", some),
        (str(told["n_folds"]), "folds of pairs"),
        (str(told["n_runs"]), "runs compared"),
        (f"{done}" if done == total else f"{done} of {total}", "fits"),
        ("a generator" if seed is None else str(seed), "seed"),
    ]

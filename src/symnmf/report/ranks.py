"""A page about the search for the number of clusters."""

from __future__ import annotations

from html import escape
from pathlib import Path

from symnmf.archives import write_atomically
from symnmf.report.page import Cell, _page, _section, _table
from symnmf.report.pictures import as_figure
from symnmf.selection import RankSelection

#: Headings of the columns of the table, and those that are left out of the page.
HEADINGS = {
    "rank": "clusters",
    "heldout_error": "error on hidden pairs",
    "heldout_spread": "its standard error",
    "heldout_auc": "AUC on hidden pairs",
    "ami": "agreement of labels (AMI)",
    "null_ami": "the same without clusters",
    "cosine": "agreement of columns",
    "pac": "ambiguous pairs (PAC)",
    "dispersion": "dispersion",
    "gap": "eigengap",
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
    body = [
        f'<section class="certificate {kind}"><h2>Recommendation</h2>'
        f"<p><strong>{escape(found.verdict)}.</strong> {escape(found.reason)}</p>"
        f"<pre>{escape(said)}</pre></section>",
        _section(
            "Scores",
            as_figure("Score of each criterion against the number of clusters", found.plot()),
        ),
        _section("Table", _table("ranks", [HEADINGS[name] for name in shown], rows)),
    ]
    content = _page(f"How many clusters: {title}", "".join(body)).encode()
    target = Path(path)
    write_atomically(target, lambda stream: stream.write(content))
    return target

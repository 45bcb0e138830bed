"""Putting the page together; see :mod:`symnmf.report`."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from symnmf import __version__, plots
from symnmf.arguments import checked
from symnmf.cluster.about import about
from symnmf.cluster.fitted import Fitted
from symnmf.cluster.quality import Quality, plain
from symnmf.errors import InputError, said_as_input_errors
from symnmf.kinds import is_sparse
from symnmf.metrics import clustering_accuracy
from symnmf.outputs import write_atomically
from symnmf.placing import top_features
from symnmf.report.markup import (
    Cell,
    cluster_cell,
    facts,
    name_cell,
    number_cell,
    section,
    short,
    table,
    text,
    whole_page,
)
from symnmf.run.certificate import Certificate
from symnmf.run.result import OUTSIDE, Result
from symnmf.storage.wrapping import is_storage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from symnmf.community import Communities
    from symnmf.estimator import SymNMF

#: Rows of the searchable table that a browser still sorts without a wait.
MAX_ROWS = 5000
#: Nodes up to which a drawing of the graph can be read.
DRAWN_UP_TO = 300
TYPICAL, TOP_FEATURES = 6, 8

ABOUT_ERROR = (
    "The relative squared error is the part of the squared similarities that U Uᵀ does not "
    "reproduce: 0 is a perfect fit and 1 is none. For sparse graphs 0.5 to 0.9 is usual, since "
    "single edges cannot be reproduced by a few clusters. Compare it only between fits of the "
    "same similarities."
)


@checked()
def write_report(
    path: str | Path,
    fit: Result | SymNMF | Communities | Fitted,
    A: Any = None,
    *,
    title: str = "Symmetric NMF clustering",
    names: Sequence[Any] | np.ndarray | None = None,
    truth: Any = None,
    images: Any = None,
    image_shape: tuple[int, int] | None = None,
    data: Any = None,
    features: Sequence[Any] | np.ndarray | None = None,
    settings: Mapping[str, Any] | None = None,
    max_rows: int = MAX_ROWS,
) -> Path:
    """Write a self-contained HTML page about a clustering (needs the extra ``plots``).

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    fit : Result, SymNMF or Communities
        What :func:`symnmf.factorize` returned, a fitted estimator, or what
        :func:`symnmf.communities` found.
    A : array or sparse, n x n
        What was factorized; needed with a Result only.
    title : str
        The heading.
    names : sequence or None
        The names of the rows; None for their numbers.
    truth : array-like of shape (n,) or None
        Known classes; adds scores, and the commonest class of each cluster.
    images, image_shape : array of shape (n, height * width) and (height, width), or None
        Adds a sheet of the most typical images of each cluster.
    data, features : array of shape (n, d) and sequence of length d, or None
        The data, and names of their columns, such as words; adds the most distinctive ones of each
        cluster. Not needed for a fit with ``attributes``.
    settings : mapping or None
        The settings of the run, to be listed on the page.
    max_rows : int
        The largest number of rows in the searchable table; the page says so if there are more.

    Returns
    -------
    Path
        ``path``.
    """
    page = _Page(fit, A, names, truth)
    words = None
    if features is not None and data is not None:
        top = top_features(data, page.membership, features, TOP_FEATURES)
        words = [[word for word, _ in mine] for mine in top]
    elif page.result.W is not None:
        words = about(page.result, page.U.shape[1], TOP_FEATURES)
    sheet = None
    if images is not None and image_shape is not None:
        sheet = plots.typical_members(images, page.U, image_shape, labels=page.labels)
    stamp = {"symnmf": __version__, "written": f"{datetime.now():%Y-%m-%d %H:%M}"}
    parts = [
        _verdict(page.quality),
        facts(page.facts()),
        section("Clusters", page.clusters(words)),
        section("Pictures", page.pictures(sheet)),
        _certificate(page.certificate),
        section("Rows", page.rows(max_rows)),
        section("Settings", _settings({**(settings or {}), **stamp})),
    ]
    content = whole_page(title, "\n".join(part for part in parts if part))
    write_atomically(path, lambda stream: stream.write(content.encode("utf-8", "replace")))
    return Path(path)


class _Page:
    """What the page is about, and the parts of it that hold data."""

    def __init__(self, fit: Any, A: Any, names: Any, truth: Any) -> None:
        self.listed: Mapping[str, Sequence[str]] = {}
        self.quality: Quality | None = None
        if isinstance(fit, Result):
            if A is None:
                raise InputError(
                    "A must be the matrix that was factorized; a Result does not hold it."
                )
            self.result, self.certificate = fit, fit.certificate(A)
            self.U, self.membership, self.labels = fit.U, fit.membership, fit.labels
        else:
            fitted = getattr(fit, "_fitted", fit)
            if not isinstance(fitted, Fitted):
                raise InputError(
                    f"fit must be a Result, a fitted SymNMF or Communities, got "
                    f"{type(fit).__name__}; fit it first."
                )
            self.result, self.certificate = fitted.result, fitted.certificate
            self.U, self.membership, self.labels = fitted.U, fitted.membership, fitted.labels
            self.quality, self.listed = fitted.quality, fitted.listed
            A = fitted.similarities.A if A is None else A
            names = fitted.similarities.names if names is None else names
        if is_storage(A):
            raise InputError(
                f"A is a {type(A).__name__}, of which only products are made; a page needs the "
                f"entries of an array or a sparse matrix."
            )
        self.A = A if sp.issparse(A) else np.asarray(A)
        n = self.U.shape[0]
        with said_as_input_errors():
            self.names = list(range(n)) if names is None else list(names)
            self.truth = None if truth is None else np.asarray(truth)
        for argument, values in (("names", self.names), ("truth", self.truth)):
            if values is not None and len(values) != n:
                raise InputError(
                    f"{argument} must hold {n} entries, one per row, got {len(values)}."
                )
        largest = np.asarray(self.membership).max(axis=1)
        self.shares = np.where(self.labels == OUTSIDE, 0.0, largest)

    def facts(self) -> list[tuple[str, str]]:
        """Return the main figures and what they are."""
        n, r = self.U.shape
        nonempty = np.unique(self.labels[self.labels != OUTSIDE]).size
        shown = [
            (f"{n:,}", "rows"),
            (f"{nonempty}" if nonempty == r else f"{nonempty} of {r}", "clusters"),
        ]
        if self.quality is not None:
            shown += [
                (f"{self.quality.largest:.0%}", "in the largest cluster"),
                (plain(self.quality.modularity), "modularity"),
            ]
            if len(self.quality.errors) > 1:
                starts = f"agreement of {len(self.quality.errors)} starts"
                shown.append((plain(self.quality.agreement), starts))
        if self.truth is not None:
            truth = self.truth.astype(str)
            shown += [
                (plain(clustering_accuracy(truth, self.labels)), "accuracy"),
                (plain(normalized_mutual_info_score(truth, self.labels)), "mutual information"),
                (plain(adjusted_rand_score(truth, self.labels)), "adjusted Rand index"),
            ]
        return [
            *shown,
            (f"{self.result.error:.4f}", "relative squared error"),
            (f"{self.result.n_iter}", f"iterations of {self.result.solver}"),
            (self.result.status.replace("_", " "), "how the run ended"),
        ]

    def clusters(self, words: list[list[Any]] | None) -> str:
        """Return the table of clusters, without columns that would be empty."""
        quality, verdict = self.quality, getattr(self.quality, "verdict", None)
        typical = plots.most_typical(self.U, TYPICAL, self.labels)
        lines: list[dict[str, Cell]] = []
        for cluster in np.unique(self.labels).tolist():
            mine = np.flatnonzero(self.labels == cluster)
            line: dict[str, Cell] = {
                "cluster": cluster_cell(cluster),
                "size": (len(mine), f"{len(mine):,}"),
                "mean membership": number_cell(float(self.shares[mine].mean())),
            }
            if 0 <= cluster < self.U.shape[1]:
                line["typical members"] = ", ".join(
                    short(self.names[i], 40) for i in typical.get(cluster, ())
                )
                if quality is not None:
                    line["conductance"] = number_cell(quality.conductance[cluster])
                if verdict is not None and cluster < len(verdict.clusters):
                    line["a cluster?"] = verdict.clusters[cluster]
                if words is not None:
                    line["most distinctive columns"] = ", ".join(
                        short(word, 40) for word in words[cluster]
                    )
            if self.truth is not None:
                classes, counts = np.unique(self.truth[mine].astype(str), return_counts=True)
                most = int(counts.argmax())
                line["commonest class"] = str(classes[most])
                line["its share"] = number_cell(float(counts[most] / len(mine)))
            lines.append(line)
        heads = [
            head
            for head in dict.fromkeys(key for line in lines for key in line)
            if any(line.get(head, "") not in ("", None) for line in lines)
        ]
        return table("clusters", heads, [[line.get(head, "") for head in heads] for line in lines])

    def pictures(self, sheet: Figure | None) -> str:
        """Return the pictures, as figures of HTML."""
        names = [short(name, 14) for name in self.names]
        small = sp.issparse(self.A) and len(names) <= DRAWN_UP_TO and find_spec("networkx")
        shown = [
            ("The graph, coloured by cluster", plots.drawing(self.A, self.labels, names))
            if small
            else ("The rows, in two dimensions", plots.points(self.U, self.labels)),
            ("Similarity matrix, by cluster", plots.similarity(self.A, self.labels)),
            ("Memberships", plots.memberships(self.membership, self.labels)),
        ]
        if len(self.result.history):
            shown.append(("Convergence", plots.convergence(self.result)))
        figures = [as_figure(title, figure) for title, figure in shown]
        if sheet is not None:
            title = "Most typical members of each cluster"
            figures.insert(1, as_figure(title, sheet, "photographs"))
        return f'<div class="pictures">{"".join(figures)}</div>'

    def rows(self, most: int) -> str:
        """Return the searchable table of rows."""
        n = len(self.names)
        heads = ["name", "cluster", "membership"]
        heads += [name.replace("_", " ") for name in self.listed]
        heads += ["class"] if self.truth is not None else []
        lines: list[list[Cell]] = []
        for i in range(min(n, most)):
            line: list[Cell] = [
                name_cell(self.names[i]),
                cluster_cell(int(self.labels[i])),
                number_cell(float(self.shares[i])),
            ]
            line += [words[i] for words in self.listed.values()]
            line += [name_cell(self.truth[i])] if self.truth is not None else []
            lines.append(line)
        note = ""
        if n > most:
            note = f"<p class=note>The first {most:,} of {n:,} rows; labels.csv has them all.</p>"
        return note + table("rows", heads, lines, search=True)


def _verdict(quality: Quality | None) -> str:
    """Say whether the clusters are real, before anything else."""
    if quality is None:
        return ""
    verdict = quality.verdict
    content = f"<p>{escape(_sentence(quality.warning))}</p>" if quality.warning else ""
    if not verdict.doubtful:
        content = f"<p>{escape(_sentence(verdict.reason))}</p>{content}"
    word = quality.word.capitalize()
    kind = "no" if quality.warning else "yes"
    return (
        f'<section class="certificate {kind}"><h2>Are they clusters?</h2>'
        f"<p><strong>{text(word)}</strong></p>{content}</section>"
    )


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:].rstrip('.')}."


def _certificate(certificate: Certificate) -> str:
    kind = "yes" if certificate.certified else "no"
    verdict, _, details = str(certificate).partition("\n")
    lines = "\n".join(line.strip() for line in details.splitlines())
    return (
        f'<section class="certificate {kind}"><h2>The optimiser</h2>'
        "<p>This says whether the factorization was solved, not whether the clusters are good.</p>"
        f"<p><strong>{text(verdict)}</strong></p><pre>{escape(lines)}</pre>"
        f"<p class=note>{escape(ABOUT_ERROR)}</p></section>"
    )


def _settings(settings: Mapping[str, Any]) -> str:
    items = "".join(
        # the entries of a sparse matrix are no setting, and nobody has checked its indices
        f"<tr><th scope=row>{text(name)}</th>"
        f"<td>{text(repr(value) if is_sparse(value) else value)}</td></tr>"
        for name, value in settings.items()
    )
    return f'<table class="settings">{items}</table>'


def as_figure(title: str, figure: Figure, kind: str = "chart") -> str:
    """Return a matplotlib figure as HTML; a "chart" changes its colours with the page's."""
    buffer = io.BytesIO()
    _box_unknown_letters(figure)
    figure.savefig(buffer, format="png", dpi=130, facecolor="white")
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure class="{kind}"><figcaption>{title}</figcaption>'
        f'<img alt="{title}" src="{source}"></figure>'
    )


def _box_unknown_letters(figure: Figure) -> None:
    """Show letters that the font lacks as boxes, as it would, but in silence; tables have them."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    for label in figure.findobj(Text):
        known = get_font(findfont(label.get_fontproperties())).get_charmap()
        shown = "".join(c if ord(c) in known or c in "\n\t" else "\u25a1" for c in label.get_text())
        label.set_text(shown)

"""The page of :mod:`symnmf.report`."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import __version__, plots
from symnmf.arguments import checked
from symnmf.cluster.about import about
from symnmf.cluster.fitted import Fitted
from symnmf.cluster.quality import Quality, plain
from symnmf.errors import InputError, said_as_input_errors
from symnmf.interchange import to_host
from symnmf.kinds import is_sparse
from symnmf.metrics.partitions import agreement
from symnmf.outputs import write_atomically
from symnmf.placing import top_features
from symnmf.report.markup import (
    Cell,
    judged,
    name_cell,
    number_cell,
    section,
    short,
    table,
    text,
    whole_page,
)
from symnmf.run.certificate import Certificate
from symnmf.run.result import OUTSIDE
from symnmf.storage.wrapping import is_storage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from symnmf.community import Communities
    from symnmf.estimator import SymNMF

#: Rows of the searchable table that a browser still sorts without a wait.
MAX_ROWS = 5000
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
    fit: SymNMF | Communities,
    *,
    title: str = "Symmetric NMF clustering",
    names: Sequence[Any] | np.ndarray | None = None,
    truth: Any = None,
    images: Any = None,
    image_shape: tuple[int, int] | None = None,
    data: Any = None,
    features: Sequence[Any] | np.ndarray | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write a self-contained HTML page about a clustering (needs the extra ``plots``).

    Parameters
    ----------
    path : path
        The file to write; an existing file is replaced.
    fit : SymNMF or Communities
        A fitted estimator, or what :func:`symnmf.communities` found.
    title : str
        The heading.
    names : sequence or None
        The names of the rows; None for those of the fit, or their numbers.
    truth : array-like of shape (n,) or None
        Known classes; adds scores, and the commonest class of each cluster.
    images, image_shape : array of shape (n, height * width) and (height, width), or None
        Adds a sheet of the most typical images of each cluster.
    data, features : array of shape (n, d) and sequence of length d, or None
        The data, and names of their columns, such as words; adds the most distinctive ones of each
        cluster. Not needed for a fit with ``attributes``.
    settings : mapping or None
        The settings of the run, to be listed on the page.

    Returns
    -------
    Path
        ``path``.
    """
    fitted = getattr(fit, "_fitted", fit)
    if not isinstance(fitted, Fitted):
        raise InputError(
            f"fit must be a fitted SymNMF or Communities, got {type(fit).__name__}; fit it first."
        )
    if is_storage(fitted.similarities.A):
        raise InputError(
            f"fit is of a {type(fitted.similarities.A).__name__}, of which only products are made; "
            f"a page needs the entries of an array or a sparse matrix."
        )
    with said_as_input_errors():
        names = fitted.names if names is None else list(names)
        truth = None if truth is None else np.array(list(truth))
    for argument, values in (("names", names), ("truth", truth)):
        if values is not None and len(values) != len(fitted.U):
            raise InputError(
                f"{argument} must hold {len(fitted.U)} entries, one per row, got {len(values)}."
            )
    words = None
    if features is not None and data is not None:
        top = top_features(data, fitted.membership, features, TOP_FEATURES)
        words = [[word for word, _ in mine] for mine in top]
    elif fitted.result.W is not None:
        words = about(fitted.result, fitted.U.shape[1], TOP_FEATURES)
    sheet = None
    if images is not None and image_shape is not None:
        sheet = plots.typical_members(images, fitted.U, image_shape, labels=to_host(fitted.labels))
    stamp = {"symnmf": __version__, "written": f"{datetime.now():%Y-%m-%d %H:%M}"}
    parts = [
        _verdict(fitted.quality),
        _facts(fitted, truth),
        section("Clusters", table("clusters", _clusters(fitted, names, truth, words))),
        section("Pictures", _pictures(fitted, sheet)),
        _certificate(fitted.certificate),
        section("Rows", _rows(fitted, names, truth)),
        section("Settings", _settings({**(settings or {}), **stamp})),
    ]
    content = whole_page(title, "\n".join(parts))
    write_atomically(path, lambda stream: stream.write(content.encode("utf-8", "replace")))
    return Path(path)


def _verdict(quality: Quality) -> str:
    """Say whether the clusters are real, before anything else."""
    sentences = [] if quality.verdict.doubtful else [quality.verdict.reason]
    sentences += [quality.warning] if quality.warning else []
    whole = [f"{clause[0].upper()}{clause[1:].rstrip('.')}." for clause in sentences]
    content = "".join(f"<p>{escape(sentence)}</p>" for sentence in whole)
    return judged("Are they clusters?", not quality.warning, quality.word.capitalize(), content)


def _facts(fitted: Fitted, truth: np.ndarray | None) -> str:
    """Return the main figures and what they are."""
    (n, r), quality, result = fitted.U.shape, fitted.quality, fitted.result
    shown = [
        (f"{n:,}", "rows"),
        (
            f"{quality.clusters}" if quality.clusters == r else f"{quality.clusters} of {r}",
            "clusters",
        ),
        (f"{quality.largest:.0%}", "in the largest cluster"),
        (plain(quality.modularity), "modularity"),
    ]
    if len(quality.errors) > 1:
        shown.append((plain(quality.agreement), f"agreement of {len(quality.errors)} starts"))
    if truth is not None:
        scores = agreement(truth.astype(str), to_host(fitted.labels))
        shown += [(plain(score), name.replace("_", " ")) for name, score in scores.items()]
    shown += [
        (f"{result.error:.4f}", "relative squared error"),
        (f"{result.n_iter}", f"iterations of {result.solver}"),
        (result.status.replace("_", " "), "how the run ended"),
    ]
    items = "".join(
        f"<div><dd>{text(value)}</dd><dt>{text(what)}</dt></div>" for value, what in shown
    )
    return f'<dl class="facts">{items}</dl>'


def _clusters(
    fitted: Fitted, names: list[Any], truth: np.ndarray | None, words: list[list[Any]] | None
) -> list[dict[str, Cell]]:
    """Return a line for each cluster, and one for the rows in none."""
    quality, labels, shares = fitted.quality, to_host(fitted.labels), _shares(fitted)
    typical = plots.most_typical(fitted.U, TYPICAL, labels)
    lines: list[dict[str, Cell]] = []
    for cluster in np.unique(labels).tolist():
        mine = np.flatnonzero(labels == cluster)
        line: dict[str, Cell] = {
            "cluster": _label(cluster),
            "size": (len(mine), f"{len(mine):,}"),
            "mean membership": number_cell(float(shares[mine].mean())),
        }
        if cluster != OUTSIDE:
            line["typical members"] = ", ".join(short(names[i], 40) for i in typical[cluster])
            line["conductance"] = number_cell(quality.conductance[cluster])
            if cluster < len(quality.verdict.clusters):
                line["a cluster?"] = quality.verdict.clusters[cluster] or ""
            if words is not None:
                line["most distinctive columns"] = ", ".join(
                    short(word, 40) for word in words[cluster]
                )
        if truth is not None:
            classes, counts = np.unique(truth[mine].astype(str), return_counts=True)
            line["commonest class"] = str(classes[counts.argmax()])
            line["its share"] = number_cell(float(counts.max() / len(mine)))
        lines.append(line)
    return lines


def _label(cluster: int) -> Cell:
    return "none" if cluster == OUTSIDE else cluster


def _shares(fitted: Fitted) -> np.ndarray:
    """The largest membership of each row that is in a cluster."""
    largest = to_host(fitted.membership).max(axis=1)
    return np.where(to_host(fitted.labels) == OUTSIDE, 0.0, largest)


def _pictures(fitted: Fitted, sheet: Figure | None) -> str:
    """Return the pictures, as figures of HTML."""
    A, labels = fitted.similarities.A, to_host(fitted.labels)
    shown = [_picture("The rows, in two dimensions", plots.points(fitted.U, labels))]
    if sheet is not None:
        shown.append(_picture("Most typical members of each cluster", sheet, "photographs"))
    matrix = plots.similarity(A if sp.issparse(A) else np.asarray(A), labels)
    shown.append(_picture("Similarity matrix, by cluster", matrix))
    if len(fitted.result.history):
        shown.append(_picture("Convergence", plots.convergence(fitted.result)))
    return f'<div class="pictures">{"".join(shown)}</div>'


def _picture(title: str, figure: Figure, kind: str = "chart") -> str:
    """Return a matplotlib figure as HTML; a "chart" changes its colours with the page's."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, facecolor="white")
    source = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<figure class="{kind}"><figcaption>{title}</figcaption>'
        f'<img alt="{title}" src="{source}"></figure>'
    )


def _rows(fitted: Fitted, names: list[Any], truth: np.ndarray | None) -> str:
    """Return the searchable table of rows."""
    labels, shares, listed = to_host(fitted.labels), _shares(fitted), fitted.listed
    lines: list[dict[str, Cell]] = []
    for i, name in enumerate(names[:MAX_ROWS]):
        line: dict[str, Cell] = {"name": name_cell(name), "cluster": _label(int(labels[i]))}
        line["membership"] = number_cell(float(shares[i]))
        line |= {title.replace("_", " "): words[i] for title, words in listed.items()}
        line |= {} if truth is None else {"class": name_cell(truth[i])}
        lines.append(line)
    note = ""
    if len(names) > MAX_ROWS:
        note = f"<p class=note>The first {MAX_ROWS:,} of {len(names):,} rows.</p>"
    return note + table("rows", lines, search=True)


def _certificate(certificate: Certificate) -> str:
    verdict, _, details = str(certificate).partition("\n")
    lines = "\n".join(line.strip() for line in details.splitlines())
    return judged(
        "The optimiser",
        certificate.certified,
        verdict,
        "<p>This says whether the factorization was solved, not whether the clusters are good.</p>"
        f"<pre>{escape(lines)}</pre><p class=note>{escape(ABOUT_ERROR)}</p>",
    )


def _settings(settings: Mapping[str, Any]) -> str:
    items = "".join(
        # the entries of a sparse matrix are no setting, and nobody has checked its indices
        f"<tr><th scope=row>{text(name)}</th>"
        f"<td>{text(repr(value) if is_sparse(value) else value)}</td></tr>"
        for name, value in settings.items()
    )
    return f'<table class="settings">{items}</table>'

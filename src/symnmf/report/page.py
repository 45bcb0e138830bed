"""Putting the page together; see :mod:`symnmf.report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import plots
from symnmf.arguments import checked
from symnmf.cluster import Fitted
from symnmf.cluster.about import about
from symnmf.errors import InputError, said_as_input_errors
from symnmf.kinds import is_sparse
from symnmf.metrics import adjusted_rand, clustering_accuracy, normalized_mutual_info
from symnmf.outputs import write_atomically
from symnmf.placing import top_features
from symnmf.quality import Quality, plain
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
from symnmf.report.pictures import pictures
from symnmf.report.profiles import profiles, sizes
from symnmf.run.certificate import Certificate
from symnmf.run.result import OUTSIDE, Result
from symnmf.storage.wrapping import is_storage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from symnmf.community import Communities
    from symnmf.estimator import SymNMF

#: Rows of the searchable table that a browser still sorts without a wait.
MAX_ROWS = 5000
TYPICAL = 6
NOWHERE = OUTSIDE
TOP_FEATURES = 8
MOST_CLASSES = 40  # clusters or classes up to which a table of pairs can be read


@checked()
def write_report(
    path: str | Path,
    fit: Result | SymNMF | Communities | Fitted,
    A: Any = None,
    *,
    title: str = "Symmetric NMF clustering",
    labels: Any = None,
    names: Sequence[Any] | np.ndarray | None = None,
    truth: Any = None,
    images: Any = None,
    image_shape: tuple[int, int] | None = None,
    settings: Mapping[str, Any] | None = None,
    certificate: Certificate | None = None,
    quality: Quality | None = None,
    features: Sequence[Any] | np.ndarray | None = None,
    data: Any = None,
    all_clusters: Sequence[str] | None = None,
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
    labels : array-like of shape (n,) or None
        The cluster of each row, -1 for none; None for the largest entry of each row of U.
    names : sequence or None
        The names of the rows; None for their numbers.
    truth : array-like of shape (n,) or None
        Known classes; adds scores, and the purity of each cluster.
    images, image_shape : array of shape (n, height * width) and (height, width), or None
        Adds a sheet of the most typical images of each cluster.
    settings : mapping or None
        The settings of the run, to be listed on the page.
    certificate : Certificate or None
        None computes it.
    quality : Quality or None
        How the clusters look; needed with a Result only.
    features, data : sequence of length d and array of shape (n, d), or None
        Names of the columns of the data, such as words; adds the most distinctive ones of each
        cluster. Not needed for a fit with ``attributes``.
    all_clusters : sequence of str or None
        All clusters of each row, shown next to its label; None uses those of a fit whose clusters
        overlap, with the strengths.
    max_rows : int
        The largest number of rows in the searchable table; the page says so if there are more.

    Returns
    -------
    Path
        ``path``.
    """
    subject = _subject(fit, A, labels, names, truth, certificate, quality)
    if all_clusters is not None:
        with said_as_input_errors():
            all_clusters = [str(one) for one in all_clusters]
        _check_length("all_clusters", all_clusters, len(subject.names))
        subject = replace(subject, listed={"all_clusters": all_clusters})
    words = None
    if features is not None and data is not None:
        found = top_features(data, subject.membership, features, TOP_FEATURES)
        words = [[word for word, _ in mine] for mine in found]
    elif subject.result.W is not None:
        words = about(subject.result, subject.U.shape[1], TOP_FEATURES)
    stamp = {"symnmf": version("symnmf"), "written": f"{datetime.now():%Y-%m-%d %H:%M}"}
    sheet = None
    if images is not None and image_shape is not None:
        sheet = plots.typical_members(images, subject.U, image_shape, labels=subject.labels)
    made = None
    if features is not None and data is not None:
        made = profiles(data, subject.labels, list(features))
    parts = [
        _verdict(subject.quality),
        _summary(subject),
        _about_error(subject),
        section("Clusters", _clusters(subject, words)),
        section("Clusters and known classes", _confusion(subject)),
        section("Pictures", _pictures(subject, sheet, made)),
        section("Links between clusters", _links(subject)),
        _certificate(subject.certificate),
        section("Rows", _rows(subject, max_rows)),
        section("Settings", _settings({**(settings or {}), **stamp})),
    ]
    page = whole_page(title, "\n".join(part for part in parts if part)).encode("utf-8", "replace")
    write_atomically(path, lambda stream: stream.write(page))
    return Path(path)


@dataclass(frozen=True)
class _Subject:
    """What the page is about."""

    result: Result
    A: Any
    labels: np.ndarray
    names: list[Any]
    truth: np.ndarray | None
    certificate: Certificate
    quality: Quality | None
    membership: np.ndarray
    listed: Mapping[str, Sequence[str]]

    @property
    def U(self) -> np.ndarray:
        return self.result.U

    @property
    def shares(self) -> np.ndarray:
        """The largest share of each row; 0 where the row belongs nowhere."""
        largest = self.membership.max(axis=1)
        return np.where(self.labels == NOWHERE, 0.0, largest)


def _subject(
    fit: Result | SymNMF | Communities | Fitted,
    A: Any,
    labels: Any,
    names: Any,
    truth: Any,
    certificate: Certificate | None,
    quality: Quality | None,
) -> _Subject:
    listed: dict[str, list[str]] = {}
    if isinstance(fit, Result):
        result = fit
        if A is None:
            raise InputError("A must be the matrix that was factorized; a Result does not hold it.")
        certificate = fit.certificate(A) if certificate is None else certificate
        membership, own = result.membership, result.labels
    else:
        fitted = getattr(fit, "_fitted", fit)
        if not isinstance(fitted, Fitted):
            raise InputError(
                f"fit must be a Result, a fitted SymNMF or Communities, got {type(fit).__name__}; "
                f"fit it first."
            )
        result, similar = fitted.result, fitted.similarities
        A = similar.A if A is None else A
        names = similar.names if names is None else names
        certificate = fitted.certificate if certificate is None else certificate
        quality = fitted.quality if quality is None else quality
        membership, listed, own = fitted.membership, fitted.listed, fitted.labels
    if is_storage(A):
        raise InputError(
            f"A is a {type(A).__name__}, of which only products are made; a page needs the entries "
            f"of an array or a sparse matrix."
        )
    n = result.U.shape[0]
    with said_as_input_errors():
        labels = own if labels is None else np.asarray(labels)
        if labels.dtype.kind not in "iu":
            raise InputError("labels must be the number of each row's cluster, -1 for none.")
        names = list(range(n)) if names is None else list(names)
        truth = None if truth is None else np.asarray(truth)
    for argument, given in (("labels", labels), ("names", names), ("truth", truth)):
        if given is not None:
            _check_length(argument, given, n)
    return _Subject(
        result, A, labels, names, truth, certificate, quality, np.asarray(membership), listed
    )


def _check_length(argument: str, given: Any, n: int) -> None:
    if len(given) != n:
        raise InputError(f"{argument} must hold {n} entries, one per row, got {len(given)}.")


# Parts of the page ----------------------------------------------------------------------------


def _summary(subject: _Subject) -> str:
    result, quality = subject.result, subject.quality
    n, r = result.U.shape
    found = np.unique(subject.labels[subject.labels != NOWHERE]).size
    shown = [
        (f"{n:,}", "rows"),
        (f"{found}" if found == r else f"{found} of {r}", "clusters"),
    ]
    if quality is not None:
        shown += [
            (f"{quality.largest:.0%}", "in the largest cluster"),
            (plain(quality.modularity), "modularity"),
        ]
        if len(quality.errors) > 1:
            spread = max(quality.errors) - min(quality.errors)
            shown += [
                (plain(quality.agreement), f"agreement of {len(quality.errors)} starts"),
                (f"{spread:.2g}", "spread of their errors"),
            ]
    shown += [
        (f"{result.error:.4f}", "relative squared error"),
        (f"{result.n_iter}", f"iterations of {result.solver}"),
        (result.status.replace("_", " "), "how the run ended"),
    ]
    if subject.truth is not None:
        truth = subject.truth.tolist()
        shown += [
            (plain(clustering_accuracy(truth, subject.labels)), "accuracy"),
            (plain(normalized_mutual_info(truth, subject.labels)), "mutual information"),
            (plain(adjusted_rand(truth, subject.labels)), "adjusted Rand index"),
        ]
    return facts(shown)


def _certificate(certificate: Certificate) -> str:
    kind = "yes" if certificate.certified else "no"
    verdict, _, details = str(certificate).partition("\n")
    lines = "\n".join(line.strip() for line in details.splitlines())
    return (
        f'<section class="certificate {kind}"><h2>The optimiser</h2>'
        "<p>This says whether the factorization was solved, not whether the clusters are good.</p>"
        f"<p><strong>{text(verdict)}</strong></p><pre>{escape(lines)}</pre></section>"
    )


def _verdict(quality: Quality | None) -> str:
    """Whether the clusters are real, before anything else."""
    if quality is None or (quality.verdict is None and not quality.warning):
        return ""
    verdict = quality.verdict
    told = f"<p>{text(_sentence(quality.warning))}</p>" if quality.warning else ""
    if verdict is not None and not verdict.doubtful:
        told = f"<p>{text(_sentence(verdict.reason))}</p>{told}"
    word = "Judge for yourself" if verdict is None else quality.word.capitalize()
    kind = "no" if quality.warning else "yes"
    return (
        f'<section class="certificate {kind}"><h2>Are they clusters?</h2>'
        f"<p><strong>{text(word)}</strong></p>{told}</section>"
    )


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _about_error(subject: _Subject) -> str:
    """Say what the error means, and how low it could be where that is known."""
    told = (
        "The relative squared error is the part of the squared similarities that U Uᵀ does not "
        "reproduce: 0 is a perfect fit and 1 is none. For sparse graphs 0.5 to 0.9 is usual, since "
        "single edges cannot be reproduced by a few clusters. Compare it only between fits of the "
        "same similarities."
    )
    bound = subject.certificate.bound
    if bound is not None and bound.known:
        told += f" {_sentence(bound.sentence.rstrip('.'))}"
    return f"<p class=note>{escape(told)}</p>"


def _pictures(subject: _Subject, sheet: Figure | None, made: Figure | None) -> str:
    of_clusters = None if subject.quality is None else sizes(subject.quality)
    names = [short(name, 14) for name in subject.names]
    return pictures(
        subject.A,
        subject.membership,
        subject.labels,
        names,
        subject.result.history,
        subject.result.solver,
        sheet,
        [
            ("What makes each cluster, in standard deviations of each column", made),
            ("Sizes and conductance", of_clusters),
        ],
    )


def _confusion(subject: _Subject) -> str:
    """Rows of each cluster by known class, where the table stays readable."""
    if subject.truth is None:
        return ""
    truth = subject.truth if subject.truth.dtype.kind in "iu" else subject.truth.astype(str)
    classes, codes = np.unique(truth, return_inverse=True)
    clusters, rows = np.unique(subject.labels, return_inverse=True)
    if max(len(classes), len(clusters)) > MOST_CLASSES:
        return ""
    counts = np.zeros((len(clusters), len(classes)), dtype=int)
    np.add.at(counts, (rows, codes), 1)
    body: list[list[Cell]] = [
        [cluster_cell(int(cluster)), *((int(c), f"{c:,}") for c in line)]
        for cluster, line in zip(clusters, counts, strict=True)
    ]
    return table("confusion", ["cluster", *map(str, classes)], body)


def _links(subject: _Subject) -> str:
    """The share of each cluster's weight that leads to each cluster."""
    clusters = np.unique(subject.labels[subject.labels != NOWHERE])
    if not 1 < len(clusters) <= MOST_CLASSES:
        return ""
    inside = np.flatnonzero(subject.labels != NOWHERE)
    place = np.searchsorted(clusters, subject.labels[inside])
    shape = (len(subject.labels), len(clusters))
    members = sp.csr_array((np.ones(len(inside)), (inside, place)), shape=shape)
    weight = members.T @ (subject.A @ members)
    weight = np.asarray(weight.toarray() if sp.issparse(weight) else weight, dtype=np.float64)
    share = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    body: list[list[Cell]] = [
        [int(cluster), *((float(v), f"{v:.1%}") for v in line)]
        for cluster, line in zip(clusters, share, strict=True)
    ]
    return table("links", ["from", *(f"to {c}" for c in clusters)], body)


def _clusters(subject: _Subject, words: list[list[Any]] | None) -> str:
    quality = subject.quality
    head = ["cluster", "size", "mean membership", "typical members"]
    if quality is not None:
        head.append("conductance")
        if quality.verdict is not None:
            head.append("a cluster?")
    if words is not None:
        head.append("most distinctive columns")
    if subject.truth is not None:
        head += ["purity", "commonest class"]
    typical = plots.most_typical(subject.U, TYPICAL, subject.labels)
    shares = subject.shares
    rows: list[list[Cell]] = []
    for cluster in np.unique(subject.labels).tolist():
        mine = np.flatnonzero(subject.labels == cluster)
        members = ", ".join(short(subject.names[i], 40) for i in typical.get(cluster, ()))
        row: list[Cell] = [
            cluster_cell(cluster),
            (len(mine), f"{len(mine):,}"),
            number_cell(float(shares[mine].mean())),
            members,
        ]
        known = 0 <= cluster < subject.U.shape[1]
        if quality is not None:
            row.append(number_cell(quality.conductance[cluster]) if known else "")
            if quality.verdict is not None:
                judged = known and cluster < len(quality.verdict.clusters)
                row.append(quality.verdict.clusters[cluster] if judged else "")
        if words is not None:
            told = ", ".join(short(word, 40) for word in words[cluster]) if known else ""
            row.append(told)
        if subject.truth is not None:
            classes, counts = np.unique(subject.truth[mine].astype(str), return_counts=True)
            most = int(counts.argmax())
            row += [number_cell(float(counts[most] / len(mine))), str(classes[most])]
        rows.append(row)
    return table("clusters", head, rows)


def _rows(subject: _Subject, most: int) -> str:
    n = len(subject.names)
    head = ["name", "cluster", "membership"]
    head += [name.replace("_", " ") for name in subject.listed]
    if subject.truth is not None:
        head.append("class")
    shares = subject.shares
    rows: list[list[Cell]] = []
    for i in range(min(n, most)):
        row: list[Cell] = [
            name_cell(subject.names[i]),
            cluster_cell(int(subject.labels[i])),
            number_cell(float(shares[i])),
        ]
        row += [words[i] for words in subject.listed.values()]
        if subject.truth is not None:
            row.append(name_cell(subject.truth[i]))
        rows.append(row)
    note = ""
    if n > most:
        note = (
            f"<p class=note>The first {most:,} of {n:,} rows; the table of labels has them all.</p>"
        )
    return note + table("rows", head, rows, search=True)


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    items = "".join(
        # the entries of a sparse matrix are no setting, and nobody has checked its indices
        f"<tr><th scope=row>{text(name)}</th>"
        f"<td>{text(repr(value) if is_sparse(value) else value)}</td></tr>"
        for name, value in settings.items()
    )
    return f'<table class="settings">{items}</table>'

"""What ``symnmf cluster`` found, and how it is written and told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from symnmf.cli import attributes, inputs
from symnmf.cli.output import (
    counted,
    how_it_ended,
    note,
    print_json,
    save_picture,
    say,
    summary,
)

if TYPE_CHECKING:
    from symnmf.cluster import Fitted, Pipeline


@dataclass(frozen=True)
class Found:
    """A clustering, and what is written of it."""

    loaded: inputs.Loaded
    pipeline: Pipeline
    fitted: Fitted
    truth: Any

    def settings(self) -> dict[str, Any]:
        """Return how the similarities came about."""
        similar = self.fitted.similarities
        points = not self.pipeline.precomputed
        return {
            "affinity": self.pipeline.affinity,
            "normalized": points or similar.degree_offset is not None,
            "degree_offset": similar.degree_offset,
            **attributes.settings(self.fitted),
        }

    def table(self) -> dict[str, Any]:
        """Return the columns of the table of labels."""
        fitted = self.fitted
        shares = fitted.membership.max(axis=1).round(6)
        names = self.loaded.names
        return {
            "row" if names is None else "name": names or list(range(len(shares))),
            "cluster": fitted.labels,
            "membership": shares,
            **fitted.listed,
        }

    def scores(self) -> dict[str, float]:
        """Return how well the labels agree with known classes, if there are any."""
        if self.truth is None:
            return {}
        from symnmf import metrics

        truth, labels = self.truth.tolist(), self.fitted.labels
        return {
            "accuracy": metrics.clustering_accuracy(truth, labels),
            "normalized_mutual_info": normalized_mutual_info_score(truth, labels),
            "adjusted_rand": adjusted_rand_score(truth, labels),
        }

    def save_plot(self, path: Path) -> None:
        """Draw the similarities by cluster."""
        from symnmf import plots

        similar = self.fitted.similarities
        drawn = similar.graph if self.pipeline.order == 3 else similar.A
        save_picture(plots.similarity(drawn, self.fitted.labels), path)

    def save_report(self, path: Path, command: str) -> None:
        """Write the page."""
        from symnmf.report import write_report

        fitted, loaded = self.fitted, self.loaded
        told = {
            "command": command,
            "clusters": fitted.result.U.shape[1],
            "starts": fitted.starts,
            "seed": fitted.seed,
            "solver": fitted.result.solver,
            "tol": fitted.limits.tol,
            **{name: value for name, value in self.settings().items() if value is not None},
        }
        write_report(
            path,
            fitted,
            title=f"Clusters of {loaded.title}",
            names=loaded.names,
            truth=self.truth,
            images=loaded.data if loaded.image_shape else None,
            image_shape=loaded.image_shape,
            features=loaded.features,
            data=loaded.original if loaded.features is not None else None,
            settings=told,
        )


def tell(found: Found, tol: float, *, json: bool, with_labels: bool, code: int) -> None:
    """Say how the run went, or print it as one object."""
    import numpy as np

    from symnmf.cluster.quality import size_range
    from symnmf.run.result import OUTSIDE

    fitted = found.fitted
    labels, result, quality = fitted.labels, fitted.result, fitted.quality
    alone = int((labels == OUTSIDE).sum())
    clusters, sizes = np.unique(labels[labels != OUTSIDE], return_counts=True)
    scores = found.scores()
    if json:
        print_json(
            {
                "input": found.loaded.title,
                "rows": len(labels),
                **found.settings(),
                "sizes": dict(zip(clusters.tolist(), sizes.tolist(), strict=True)),
                **attributes.described(fitted),
                **({"without_cluster": alone} if alone else {}),
                **scores,
                "seed": fitted.seed,
                **_how_many(fitted),
                "quality": {
                    **asdict(quality),
                    "lopsided": quality.lopsided,
                    "warning": quality.warning,
                },
                **summary(result, fitted.certificate),
                "exit_code": code,
                **({"table": found.table()} if with_labels else {}),
            }
        )
        return
    if not len(clusters):
        say(f"No row has a similarity to any other, so all {len(labels)} are without a cluster.")
        return
    say(f"Are they clusters? {quality.word}: {quality.verdict.reason}.")
    told = quality.advise(fitted.advice, verdict=False)
    if told:
        note(f"{told}.", "warning")
    if fitted.selection is not None:
        say(f"How many: {fitted.selection.recommendation}. {fitted.selection.reason}")
    say(
        f"{counted(len(labels), 'row')} in {counted(len(clusters), 'cluster')} of "
        f"{size_range(sizes.tolist())}; {how_it_ended(result, tol)}."
    )
    if alone:
        have = "has" if alone == 1 else "have"
        say(f"{counted(alone, 'row')} that belong nowhere {have} the cluster -1.")
    say(f"The clusters: {quality}.")
    attributes.tell(fitted)
    if scores:
        agreement = (f"{name.replace('_', ' ')} {value:.3f}" for name, value in scores.items())
        say(f"Against the known classes: {', '.join(agreement)}.")
    say(f"The optimiser: {fitted.certificate.verdict}")


def _how_many(fitted: Fitted) -> dict[str, Any]:
    """Return how the number of clusters was found, where it was not given."""
    found = fitted.selection
    if found is None:
        return {}
    table = {name: column.tolist() for name, column in found.table.items()}
    return {
        "how_many": {
            "clusters": found.recommendation,
            "reason": found.reason,
            "alternatives": table,
        }
    }

"""What an entry point that clusters was asked for, checked before data are looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.graphs.pairwise import DISTANCES
from symnmf.options import AUTO, CommunityOptions, ProblemOptions, changed, defaults, names_in
from symnmf.run.multistart import Plan

PRECOMPUTED = "precomputed"

#: What is known of the rows.
KNOWN = ("labels", "must_link", "cannot_link")

#: Options that hide entries or let them count less.
HIDING = ("mask", "weights", "missing")

#: Which entries of X count and what is minimised: what :class:`symnmf.Problem` is given besides X.
OBJECTIVE = tuple(
    name
    for name in names_in(ProblemOptions)
    if name not in ("loss", "attributes", "attribute_weight", "layer_weights")
)

OPTIONS = (
    *("n_clusters", "affinity", "n_neighbors", "gamma", "degree", "coef0", "kernel_params"),
    *names_in(CommunityOptions),
)

#: What cannot be combined: an option or a kind of data, and options that it leaves no room for.
EXCLUDED = {
    "affinity='precomputed'": ("n_neighbors",),
    "points": ("degree_offset", "normalize=False"),
    "mask": ("weights",),
    "order=3": (*HIDING, "attributes", "loss"),
    "n_clusters='auto'": HIDING,
    "loss": ("weights", "missing", "allow_negative", "l1", "ridge", "links", "attributes"),
    "labels": (*HIDING, "attributes"),
    "must_link": (*HIDING, "attributes"),
    "cannot_link": (*HIDING, "attributes"),
    "a hypergraph": (*HIDING, "allow_negative", "loss=bernoulli", *KNOWN),
    "layers": (*HIDING, "order=3", *KNOWN),
    "a Problem": (
        *("components", "order=3", "normalize=True", "degree_offset", "loss", "attributes"),
        *(*OBJECTIVE, *KNOWN),
    ),
    "a LowRank": ("components", "order=3", *KNOWN),
    "a matrix that is not in memory": (
        *("components", "order=3", "normalize=True", "degree_offset"),
        *KNOWN,
    ),
    "row_sparse=True": (
        *("order=3", "threshold", "normalize=False", "init", "solver", "coupling", "device"),
        *("loss", "attributes", *OBJECTIVE),
    ),
}


class Task(SimpleNamespace):
    """A value for every option of an entry point, and what it knows of the data.

    ``argument`` is what the data are called in messages. A graph is normalised unless that is
    switched off. ``points`` are what given similarities were made of, to judge clusters by.
    ``labels``, ``must_link`` and ``cannot_link`` are those of :meth:`symnmf.SymNMF.fit`.
    """

    def __init__(
        self,
        argument: str = "X",
        *,
        is_graph: bool = False,
        points: Any = None,
        column_names: Any = None,
        labels: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(**(defaults(OPTIONS) | options))
        self.argument, self.is_graph = argument, is_graph
        self.points, self.column_names = points, column_names
        self.labels, self.must_link, self.cannot_link = labels, must_link, cannot_link
        self.precomputed = isinstance(self.affinity, str) and self.affinity == PRECOMPUTED
        if self.precomputed:
            self.refuse_with("affinity='precomputed'")
        else:
            self.refuse_with("points", f"affinity={self.affinity!r}")
        for name in ("mask", "order=3", "n_clusters='auto'", "loss", *KNOWN):
            if self.says(name):
                self.refuse_with(name)
        self.plan = Plan.of(1 if self.automatic else int(self.n_clusters), vars(self))

    def says(self, option: str) -> bool:
        """Whether an option is not at its default, or is at the value in ``order=3``."""
        name, _, value = option.partition("=")
        own = getattr(self, name)
        if value:
            return isinstance(own, str | int | np.integer) and str(own) == value.strip("'")
        return own is not None if name in KNOWN else own is not None and bool(changed({name: own}))

    def refuse_with(self, what: str, called: str = "") -> None:
        """Refuse the options that something leaves no room for."""
        for option in EXCLUDED[what]:
            if self.says(option):
                raise InputError(
                    f"{option} cannot be combined with {called or what}; leave one of them out."
                )

    @property
    def automatic(self) -> bool:
        """Whether the number of clusters is still to be found."""
        return isinstance(self.n_clusters, str) and self.n_clusters == AUTO

    @property
    def rows(self) -> str:
        """What the rows of the data are called."""
        return "nodes" if self.is_graph else "samples"

    @property
    def has_points(self) -> bool:
        """Whether the rows of the data are points, and neither similarities nor distances."""
        return not self.precomputed and self.affinity != DISTANCES

    @property
    def hides(self) -> bool:
        """Whether some entries were not observed, or count less."""
        return any(map(self.says, HIDING))

    @property
    def constrained(self) -> bool:
        """Whether something is known of the rows."""
        return any(map(self.says, KNOWN))

    @property
    def shared_by(self) -> float | str | None:
        """The rule by which rows belong to several clusters; None for one cluster each."""
        rule: float | str | None = self.threshold if self.overlapping else None
        return rule

    @property
    def objective(self) -> dict[str, Any]:
        """What :class:`symnmf.Problem` is given besides X."""
        return {name: getattr(self, name) for name in OBJECTIVE if self.says(name)}

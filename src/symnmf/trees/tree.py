"""A tree of splits, and its labels at any cut."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symnmf.arguments import check
from symnmf.errors import InputError
from symnmf.kinds import whole
from symnmf.run.result import OUTSIDE


@dataclass(frozen=True)
class Split:
    """One cluster cut in two.

    Attributes
    ----------
    left, right : int
        The numbers of the two parts, the larger first; clusters are numbered from 0, all rows, in
        the order in which they were split off.
    strength : float
        The modularity that it adds, at most 1/2. A split never has more than the one it is under,
        so that the strongest of them are a tree.
    reason : str
        Why the cluster was taken for two.
    """

    left: int
    right: int
    strength: float
    reason: str


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """What :func:`symnmf.hierarchy` found.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The leaf of each row, numbered from the largest to the smallest; -1 for a row without
        similarities.
    splits : dict of int to Split
        The clusters that were split, by their number.
    parts : ndarray of shape (n,)
        The number of the smallest cluster that each row is in; -1 for none.
    names : list or None
        The names of the rows, if the data have names.
    """

    labels: np.ndarray
    splits: dict[int, Split]
    parts: np.ndarray = field(repr=False)
    names: list[Any] | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """How many leaves there are."""
        return len(self.splits) + 1 if (self.parts >= 0).any() else 0

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return labels with ``n_clusters`` clusters: the strongest splits, from the root down.

        They are numbered from the largest to the smallest; -1 for a row without similarities.
        """
        whole = isinstance(n_clusters, int | np.integer) and not isinstance(n_clusters, bool)
        if not whole or not 1 <= n_clusters <= max(self.n_clusters, 1):
            raise InputError(
                f"n_clusters must be a whole number from 1 to the {self.n_clusters} leaves of the "
                f"tree, got {n_clusters!r}."
            )
        kept = self.strongest[: int(n_clusters) - 1]
        return numbered(self._under(set(kept)))

    @property
    def strongest(self) -> list[int]:
        """The clusters that were split, the strongest splits first and none before its parent."""
        return sorted(self.splits, key=lambda node: (-self.splits[node].strength, node))

    @property
    def linkage(self) -> np.ndarray:
        """The tree over its leaves as ``scipy.cluster.hierarchy`` writes one.

        Leaves have the numbers of ``labels``, and the height of a split is its strength.
        """
        found = {int(part): int(label) for part, label in zip(self.parts, self.labels, strict=True)}
        number = {part: label for part, label in found.items() if part != OUTSIDE}
        count = dict.fromkeys(number.values(), 1)
        rows: list[list[float]] = []
        for node in reversed(self.strongest):
            split = self.splits[node]
            one, other = sorted((number[split.left], number[split.right]))
            number[node] = self.n_clusters + len(rows)
            count[number[node]] = count[one] + count[other]
            rows.append([one, other, split.strength, count[number[node]]])
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def plot(self, ax: Any = None) -> Any:
        """Draw the tree as a dendrogram over its leaves; return the matplotlib Figure."""
        from symnmf.trees.drawing import dendrogram

        return dendrogram(self, ax)

    def __str__(self) -> str:
        clusters, splits = self.n_clusters, len(self.splits)
        lines = [
            f"{clusters} cluster{'s' * (clusters != 1)} in a tree of "
            f"{splits} split{'s' * (splits != 1)}"
        ]
        waiting = deque([(0, 0)])
        while waiting:
            node, depth = waiting.popleft()
            if node in self.splits and depth < 4:
                split = self.splits[node]
                lines.append(f"{'  ' * depth}{self.size(node)} rows, strength {split.strength:.3f}")
                waiting.extendleft([(split.right, depth + 1), (split.left, depth + 1)])
            elif node not in self.splits:
                lines.append(f"{'  ' * depth}{self.size(node)} rows")
        return "\n".join(lines)

    def size(self, node: int) -> int:
        """Return how many rows a cluster of the tree has."""
        check("node", node, (whole(),))
        known = {0, *self.splits, *self.parts[self.parts >= 0].tolist()}
        if node not in known:
            raise InputError(f"node must be the number of a cluster of the tree, got {node}.")
        return int(np.isin(self.parts, list(self._leaves(node))).sum())

    def _leaves(self, node: int) -> set[int]:
        waiting, found = [node], set()
        while waiting:
            one = waiting.pop()
            if one in self.splits:
                waiting += [self.splits[one].left, self.splits[one].right]
            else:
                found.add(one)
        return found

    def _under(self, kept: set[int]) -> np.ndarray:
        """Return the number of the cluster that each row is in with only some of the splits."""
        labels = np.full(len(self.parts), OUTSIDE)
        waiting = [0]
        while waiting:
            node = waiting.pop()
            if node in kept:
                waiting += [self.splits[node].left, self.splits[node].right]
            else:
                labels[np.isin(self.parts, list(self._leaves(node)))] = node
        return labels


def numbered(parts: np.ndarray) -> np.ndarray:
    """Return labels from the largest cluster to the smallest, equal ones by their first row."""
    inside = parts != OUTSIDE
    found, first, codes, sizes = np.unique(
        parts[inside], return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    labels = np.full(len(parts), OUTSIDE, dtype=np.int64)
    labels[inside] = place[codes]
    return labels

"""The state of a run: what a solver changes and what a checkpoint keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from symnmf.kernels import reductions
from symnmf.parallel import Threads


@dataclass
class State:
    """Where a run is.

    Attributes
    ----------
    U, V : ndarray of shape (n, r)
        The factors. A method that works on the original problem has ``V is U``.
    penalty : float
        lambda; 0 for a method without one.
    iteration : int
        Iterations done.
    product : ndarray or None
        X @ U, where the last step left it behind.
    gram_U, gram_V : ndarray or None
        U^T U and V^T V, where known. A step that changes a factor forgets its Gram matrix.
    memory : dict of str to ndarray
        What a solver or a penalty remembers between steps; kept in checkpoints.
    spare : list of ndarray
        Arrays of the shape of U that a step may overwrite, so that large factors are not paid
        for page by page in every iteration; empty after a resume.
    """

    U: np.ndarray
    V: np.ndarray
    penalty: float = 0.0
    iteration: int = 0
    product: np.ndarray | None = None
    gram_U: np.ndarray | None = None
    gram_V: np.ndarray | None = None
    memory: dict[str, np.ndarray] = field(default_factory=dict)
    spare: list[np.ndarray] = field(default_factory=list, repr=False)

    def room(self) -> np.ndarray:
        """Return an array like U to write to: a spare one, or a new one."""
        return self.spare.pop() if self.spare else np.empty_like(self.U)

    def known_gram_U(self, threads: Threads) -> np.ndarray:
        """Return U^T U, computed once."""
        if self.gram_U is None:
            self.gram_U = reductions.gram(self.U, threads)
        return self.gram_U

    def known_gram_V(self, threads: Threads) -> np.ndarray:
        """Return V^T V, computed once."""
        if self.V is self.U:
            return self.known_gram_U(threads)
        if self.gram_V is None:
            self.gram_V = reductions.gram(self.V, threads)
        return self.gram_V

    def widen(self, dtype: np.dtype) -> None:
        """Go on in another precision, for methods on the original problem."""
        self.spare.clear()
        self.moved(self.U.astype(dtype))

    def moved(self, U: np.ndarray, *, product: np.ndarray | None = None) -> None:
        """Put a new U (and V with it) in place, for methods on the original problem."""
        self.U = self.V = U
        self.product, self.gram_U, self.gram_V = product, None, None

"""One reading of X for several starts: their products are computed side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from symnmf.ops import Factor
from symnmf.pools import PATIENCE
from symnmf.storage.symmetric import Entries, Square, SymmetricMatrix

#: What a start asked for: its seat, the right factor and where the product goes.
Request = tuple[int, Factor, Factor]


class SharedReading:
    """Collects the products that several starts ask for and computes them as one.

    X @ [V_1 ... V_k] reads X once instead of k times. Every start runs in a thread of its own
    and holds a seat while it runs; the wide product is due when all who hold one have asked. A
    start that ends, in whatever way, gives its seat up and is waited for no longer, so nobody
    waits for ever. Only one start computes at any time, on the threads of X: ``n_jobs`` means
    what it means for a single start, and who comes first does not change the results.

    Parameters
    ----------
    X : SymmetricMatrix
        Where the products come from.
    seats : int
        Starts that will take part, each once.
    """

    def __init__(self, X: SymmetricMatrix, seats: int) -> None:
        self.X = X
        self._taken_up = seats
        self._asked: list[Request] = []
        self._products: dict[int, Factor] = {}
        self._round = 0
        self._failure: tuple[int, BaseException] | None = None
        # its lock is the right to compute: held by a start except while it waits
        self._turn = threading.Condition()

    @contextmanager
    def seat(self, number: int) -> Iterator[SymmetricMatrix]:
        """Take part for the length of a ``with`` block; gives X for the use of this start."""
        with self._turn:
            try:
                yield Seat(self, number)
            finally:
                self._taken_up -= 1
                self._compute_if_due()

    def multiply(self, number: int, V: Factor, out: Factor) -> Factor:
        """Return X @ V when the others have asked for their products too."""
        mine = self._round
        self._asked.append((number, V, out))
        self._compute_if_due()
        # a start that has no memory left to wake the others with must not leave them waiting
        while not self._turn.wait_for(lambda: self._round > mine, PATIENCE):
            self._compute_if_due()
        if self._failure is not None and self._failure[0] == mine:
            error = self._failure[1]
            kind = MemoryError if isinstance(error, MemoryError) else RuntimeError
            raise kind("the product of several starts failed") from error
        return self._products.pop(number)

    def _compute_if_due(self) -> None:
        if not self._asked or len(self._asked) < self._taken_up:
            return
        # in the order of seats, not of arrival: BLAS may round the last columns differently
        batch = sorted(self._asked, key=lambda request: request[0])
        self._asked = []
        try:
            self._multiply_all(batch)
        except Exception as error:  # it concerns every start in the batch, not the last to ask
            self._failure = (self._round, error)
        self._round += 1
        self._turn.notify_all()

    def _multiply_all(self, batch: list[Request]) -> None:
        if len(batch) == 1:
            number, V, out = batch[0]
            # a backend may write to `out` and need not: what it returns is the product
            self._products[number] = self.X.matmul(V, out=out)
            return
        ops = self.X.ops
        wide = self.X.matmul(ops.beside(*(V for _, V, _ in batch)))
        left = 0
        for number, V, out in batch:
            right = left + V.shape[1]
            self._products[number] = ops.columns(wide, left, right, out)
            left = right


class Seat(SymmetricMatrix):
    """X as one start sees it: products are asked for, the rest is X's own."""

    def __init__(self, reading: SharedReading, number: int) -> None:
        X = reading.X
        super().__init__(X.shape[0], X.dtype, X.ops)
        self._X, self._reading, self._number = X, reading, number

    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        product = self.ops.empty(V) if out is None else out
        return self._reading.multiply(self._number, V, product)

    def compute_sqnorm(self) -> float:
        return self._X.sqnorm

    def residual_sqnorm(self, U: Factor, V: Factor) -> float | None:
        return self._X.residual_sqnorm(U, V)

    def parts(self) -> Iterator[tuple[Square, Factor]]:
        return self._X.parts()

    @property
    def has_parts(self) -> bool:
        return self._X.has_parts

    @property
    def entries(self) -> Entries | None:
        return self._X.entries

    def largest(self) -> float:
        return self._X.largest()

    def digest(self) -> str:
        return self._X.digest()

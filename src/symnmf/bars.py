"""What watches a fit: a bar for terminals and notebooks, and the caller's function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symnmf.errors import imported

#: Called with the number of a start and its latest snapshot; a true return value stops the fit.
Watcher = Callable[[int, Any], Any]


@contextmanager
def watched(
    progress: bool, starts: int, callback: Callable[[Any], Any] | None, *others: Watcher | None
) -> Iterator[Watcher | None]:
    """Give one watcher for all inside a ``with`` block, or None where there is none.

    A bar shows ``progress`` (needs the extra ``progress``); ``callback`` takes snapshots alone.
    """
    watchers = [watcher for watcher in others if watcher is not None]
    if callback is not None:
        watchers.append(lambda _, now: callback(now))
    if not progress:
        yield _together(watchers)
        return
    tqdm = imported("tqdm.auto", "progress", "progress=True").tqdm
    lock = threading.Lock()
    seen: dict[int, int] = {}
    with tqdm(desc="symnmf", unit=" iterations", dynamic_ncols=True) as line:

        def show(start: int, now: Any) -> None:
            with lock:  # starts may run in threads of their own
                line.update(now.iteration - seen.get(start, 0))
                seen[start] = now.iteration
                line.set_postfix_str(
                    f"start {start + 1}/{starts}, error {now.error:.5g}, "
                    f"stationarity {now.stationarity:.1e}",
                    refresh=False,
                )

        yield _together([show, *watchers])


def _together(watchers: list[Watcher]) -> Watcher | None:
    if not watchers:
        return None
    # each sees every snapshot
    return lambda start, now: any(tuple(watcher(start, now) for watcher in watchers))

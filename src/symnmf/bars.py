"""A bar for terminals and notebooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from symnmf.errors import InputError


@contextmanager
def bar(shown: bool, starts: int) -> Iterator[Callable[[int, Any], None] | None]:
    """Show how far a fit is inside a ``with`` block (needs the extra ``progress``)."""
    if not shown:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise InputError("progress=True needs tqdm: pip install 'symnmf[progress]'.") from None
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

        yield show


def together(*watchers: Any) -> Callable[[int, Any], bool] | None:
    """Return one watcher that calls those that are not None, or None without any."""
    present = [watcher for watcher in watchers if watcher is not None]
    if not present:
        return None

    def see(start: int, now: Any) -> bool:
        answers = [bool(watcher(start, now)) for watcher in present]  # each sees every snapshot
        return any(answers)

    return see

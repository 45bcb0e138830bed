"""Run a task graph on a Dask cluster, and retry if workers die or lack the package."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

from symnmf.errors import InputError

log = logging.getLogger(__name__)

#: Seconds between two looks at a cluster that works.
LOOK_EVERY = 1.0
#: Seconds that a scheduler may take to answer; a busy machine is not a dead one.
ANSWER = 60.0
#: Times that a product is asked for again after its workers died under it.
RETRIES = 20


def current_client() -> Any:
    """Return the current client of a cluster, or None."""
    from dask.base import get_scheduler

    current = get_scheduler()
    client = getattr(current, "__self__", None)
    return client if type(client).__module__.startswith("distributed") else None


def client_of(X: Any) -> Any:
    """Return the client of the cluster that an array is on already, or None."""
    values = dict(X.dask).values()
    futures = (one for one in values if type(one).__module__.startswith("distributed"))
    return next((one.client for one in futures if hasattr(one, "client")), None)


def check_open(client: Any) -> None:
    """Refuse a client that is closed, or whose scheduler is gone."""
    status = "closed" if client is None else client.status
    if status not in ("running", "connecting", "newly-created"):
        raise _without_scheduler(f"its client is {status}")


def _without_scheduler(why: str) -> InputError:
    return InputError(
        f"the Dask cluster that X is on cannot be reached: {why}; connect a new Client, make X "
        f"again there and resume from the last checkpoint."
    )


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Say in one sentence that a scheduler no longer answers."""
    try:
        yield
    except OSError as error:  # distributed's CommClosedError is one, and so is a timeout
        raise _without_scheduler("its scheduler does not answer") from error


def check_workers(patience: float) -> None:
    """Refuse a cluster without workers, or one that lacks the package anywhere."""
    client = current_client()
    if client is None:
        return
    check_open(client)
    with _answered():
        _check_packages(client, patience)


def _worker_count(dask_scheduler: Any) -> int:
    """Run on the scheduler: how many workers it has."""
    return len(dask_scheduler.workers)


def _check_packages(client: Any, patience: float) -> None:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    # a client whose scheduler died waits for it for ever unless it is told how long
    limit = {"callback_timeout": max(ANSWER, patience)}
    if client.run_on_scheduler(find_spec, "symnmf", **limit) is None:
        raise InputError(
            "symnmf is not installed where the Dask scheduler runs; install it there, the same "
            "version as here."
        )
    _wait_for_workers(client, patience)
    found = client.run(find_spec, "symnmf", on_error="return", **limit)
    lacking = [name for name, spec in found.items() if spec is None]
    if lacking:
        raise InputError(
            f"symnmf is not installed on {len(lacking)} of {len(found)} Dask workers, such as "
            f"{lacking[0]}; install it there, the same version as here."
        )
    # workers of another release cannot unpack its tasks, and die of them
    for package in ("dask", "symnmf"):
        try:
            here = version(package)
        except PackageNotFoundError:  # it is run from a folder
            continue
        for name, there in client.run(version, package, on_error="ignore", **limit).items():
            if there.split(".")[:2] != here.split(".")[:2]:
                raise InputError(
                    f"{package} is {there} on the worker {name} and {here} here; install the same "
                    f"version everywhere."
                )


def _wait_for_workers(client: Any, patience: float) -> None:
    from distributed import TimeoutError as TooLong

    try:
        client.wait_for_workers(1, timeout=patience)
    except (TooLong, TimeoutError, OSError) as error:
        raise _short_of_workers(patience) from error


def _short_of_workers(patience: float) -> InputError:
    return InputError(
        f"the Dask cluster has had no workers for {patience:g} seconds; start some and go on from "
        f"the last checkpoint, or raise patience of symnmf.storage.DaskMatrix."
    )


def compute_on(client: Any, graph: dict[Any, Any], keys: list[Any], patience: float) -> list[Any]:
    """Compute keys of a graph; ask again where workers died under it once too often."""
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    for attempt in range(RETRIES + 1):
        check_open(client)
        with warnings.catch_warnings():
            # factors are part of the graph, so that they are there again after a loss
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures = client.get(graph, keys, sync=False)
        try:
            with _answered():
                return _collected(client, futures, patience)
        except (KilledWorker, FutureCancelledError) as error:
            if attempt == RETRIES:
                raise InputError(
                    f"workers of the Dask cluster died {RETRIES + 1} times under the same product "
                    f"({type(error).__name__}); see their logs, memory is the usual cause, and go "
                    f"on from the last checkpoint."
                ) from error
            log.warning("workers died under a product (%s); it is computed again", error)
            check_workers(patience)  # one that joined later may lack the package, and die of it
        except ModuleNotFoundError as error:
            raise InputError(
                f"a Dask worker lacks the package {error.name!r}; install it there, the same "
                f"version as here."
            ) from error
    raise AssertionError("unreachable")


def _collected(client: Any, futures: list[Any], patience: float) -> list[Any]:
    """Return results, each fetched as soon as it is there; raise where workers stay away."""
    from distributed import as_completed

    found: dict[Any, Any] = {}
    coming, seen, alone = None, time.monotonic(), False
    while len(found) < len(futures):
        if coming is None:
            rest = [future for future in futures if future.key not in found]
            coming = as_completed(
                rest, client.loop, with_results=True, raise_errors=False, timeout=LOOK_EVERY
            )
        try:
            future, result = next(coming)
        except (TimeoutError, StopIteration):
            check_open(client)
            coming, now = None, time.monotonic()
            if client.run_on_scheduler(_worker_count, callback_timeout=max(ANSWER, patience)):
                seen, alone = now, False
            elif now - seen > patience:
                for future in futures:  # unlike cancel, this waits for no answer
                    future.release()
                raise _short_of_workers(patience) from None
            elif not alone:
                alone = True
                log.warning("the cluster has no workers; waiting %.0f s for some", patience)
            continue
        if future.status == "error":
            raise result[1].with_traceback(result[2])
        if isinstance(result, BaseException):  # cancelled
            raise result
        found[future.key] = result
    return [found[future.key] for future in futures]

"""Threads that are waited for only while they are alive.

Python's own pools wait for ever where memory runs out at the wrong moment: ``Thread.start`` waits
for a thread that died before it could say that it runs, and a future for a worker that died before
it could report. Here nobody waits for a thread to start, a task that no thread has begun is done
by whoever waits for it, and a task whose outcome was lost raises MemoryError.
"""

from __future__ import annotations

import _thread
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds after which whoever waits for a task looks whether anybody is at work on it.
PATIENCE = 1.0


class Task(Future[T]):
    """A future that knows its work, so that it can be done by whoever waits for it."""

    def __init__(self, work: Callable[[], T], pool: Pool) -> None:
        super().__init__()
        self._work, self._pool = work, pool
        self._lost = False

    def run(self) -> None:
        """Do the work and report, in a thread of the pool; nothing is raised."""
        try:
            if not self.set_running_or_notify_cancel():
                return
            try:
                value = self._work()
            except BaseException as error:  # whoever waits raises it
                self.set_exception(error)
            else:
                self.set_result(value)
        except BaseException:  # there was no memory left to report with
            self._lost = True

    def result(self, timeout: float | None = None) -> T:
        """Return what the work gave; ``timeout`` is that of ``Future.result``."""
        if timeout is not None:
            return super().result(timeout)
        if self._pool.deserted and self.cancel():
            return self._work()
        while not self._ended(PATIENCE):
            if self.cancel():
                self._pool.missed()
                return self._work()
        return super().result()

    def settle(self) -> None:
        """Return when no thread is at work on this, or will be."""
        with contextlib.suppress(MemoryError):
            while not self.cancel() and not self._ended(PATIENCE):
                pass

    def _ended(self, seconds: float) -> bool:
        try:
            self.exception(seconds)
        except TimeoutError:
            if self._lost and not self.done():
                raise MemoryError("a thread ran out of memory before it could report") from None
            return False
        return True


class Pool(Executor):
    """At most ``most`` threads, which start when they are needed and end with the pool.

    Parameters
    ----------
    most : int
        How many threads there may be.
    enter : callable or None
        Called in each thread when it begins.
    """

    def __init__(self, most: int, enter: Callable[[], None] | None = None) -> None:
        self._most, self._enter = most, enter
        self._queue: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._counting = _thread.allocate_lock()
        self._begun = 0  # threads that were started
        self._idle = 0  # of these, those that wait for a task
        self._alive: list[Any] = []  # a lock for each that runs, held until it ends
        self._closed = False

    @property
    def deserted(self) -> bool:
        """Whether there is no thread to wait for."""
        return not self._begun

    def submit(self, fn: Callable[..., T], /, *args: Any, **options: Any) -> Task[T]:
        """Queue a call for the threads; another is started where all are busy."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        task: Task[T] = Task(lambda: fn(*args, **options), self)
        self._queue.put(task)
        with self._counting:
            if self._idle:
                self._idle -= 1
                return task
        self._start()
        return task

    def gather(self, seconds: float = 10 * PATIENCE) -> bool:
        """Start all threads; return whether each of them runs."""
        while self._start():
            pass
        end = time.monotonic() + seconds
        while len(self._alive) < self._begun and time.monotonic() < end:
            time.sleep(0.001)
        return len(self._alive) == self._most

    def missed(self) -> None:
        """Count threads that died while they started as not started."""
        with self._counting:
            self._begun = len(self._alive)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end; ``wait`` for what they have begun."""
        self._closed = True
        if cancel_futures:
            with contextlib.suppress(Empty):
                while task := self._queue.get_nowait():
                    task.cancel()
        self._queue.put(None)
        for running in list(self._alive) if wait else []:
            running.acquire()
            running.release()

    def _start(self) -> bool:
        with self._counting:
            if self._begun >= self._most:
                return False
            self._begun += 1
        try:
            _thread.start_new_thread(self._serve, ())
        except (RuntimeError, MemoryError):  # the system has none: whoever waits does the work
            with self._counting:
                self._begun -= 1
            return False
        return True

    def _serve(self) -> None:
        running = _thread.allocate_lock()
        running.acquire()
        self._alive.append(running)
        try:
            if self._enter is not None:
                self._enter()
            while self._next():
                pass
        finally:
            running.release()

    def _next(self) -> bool:
        """Do the next task; return whether there may be more."""
        try:
            try:
                task = self._queue.get_nowait()
            except Empty:
                with self._counting:
                    self._idle += 1
                task = self._queue.get()
            if task is None:
                self._queue.put(None)  # for the other threads
                return False
        except MemoryError:
            return not self._closed
        task.run()
        return True

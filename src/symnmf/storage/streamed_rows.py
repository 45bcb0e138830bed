"""A dense X that does not fit on the device: its rows are streamed there for every pass."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from torch import Tensor

#: Share of the device's free memory that X may take; the factors need the rest.
SHARE = 0.85

#: Bytes of one block of rows on its way; two are under way at a time.
BLOCK_BYTES = 2**28


def room_on(device: torch.device) -> float:
    """Return how many bytes X may take on the device."""
    if device.type != "cuda":
        return float("inf")
    free, total = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    limit = getattr(torch.cuda, "get_per_process_memory_fraction", lambda _: 1.0)(device) * total
    return SHARE * min(free, limit - torch.cuda.memory_allocated(device))


class StreamedRows:
    """The rows of a host array, block by block on a device.

    As many rows as fit stay there. The others are copied for every pass from page-locked memory
    into two buffers in turn, so that one is filled while the other is worked on.

    Parameters
    ----------
    host : Tensor
        Contiguous, in host memory, which is page-locked in place where the system allows.
    device : torch.device
        Where the blocks go.
    resident : int or None
        Rows that stay on the device; None for as many as fit.
    """

    def __init__(self, host: Tensor, device: torch.device, resident: int | None = None) -> None:
        self.host, self.device = host, device
        n = len(host)
        row = host[0].nbytes
        self.step = max(1, min(n, BLOCK_BYTES // row))
        if resident is None:
            spare = room_on(device) - 2 * self.step * row
            resident = int(min(n, max(0.0, spare // row)))
        if device.type == "cuda":
            _lock_pages(self)
        self.kept = host[:resident].to(device)
        self.buffers = [
            torch.empty(self.step, *host.shape[1:], dtype=host.dtype, device=device)
            for _ in range(2)
        ]

    @property
    def dtype(self) -> torch.dtype:
        return self.host.dtype

    @property
    def shape(self) -> torch.Size:
        return self.host.shape

    def __len__(self) -> int:
        return len(self.host)

    def __iter__(self) -> Iterator[tuple[int, Tensor]]:
        """Yield the first row of each block and the block, which the next but one overwrites."""
        first = len(self.kept)
        if self.device.type != "cuda":
            if first:
                yield 0, self.kept
            for begin in range(first, len(self), self.step):
                block = self.host[begin : begin + self.step]
                yield begin, self.buffers[0][: len(block)].copy_(block)
            return
        yield from self._overlapped(first)

    def _overlapped(self, first: int) -> Iterator[tuple[int, Tensor]]:
        work = torch.cuda.current_stream(self.device)
        copies = torch.cuda.Stream(self.device)
        copies.wait_stream(work)
        done: list[torch.cuda.Event | None] = [None, None]

        def fetch(number: int) -> tuple[int, Tensor, torch.cuda.Event]:
            begin, side = first + number * self.step, number % 2
            block = self.host[begin : begin + self.step]
            with torch.cuda.stream(copies):
                before = done[side]
                if before is not None:
                    copies.wait_event(before)
                target = self.buffers[side][: len(block)]
                target.copy_(block, non_blocking=True)
                arrived = torch.cuda.Event()
                arrived.record(copies)
            return begin, target, arrived

        count = -(-(len(self) - first) // self.step)
        coming = fetch(0) if count else None
        if first:
            yield 0, self.kept
        for number in range(count):
            assert coming is not None
            begin, block, arrived = coming
            if number + 1 < count:
                coming = fetch(number + 1)
            work.wait_event(arrived)
            yield begin, block
            event = torch.cuda.Event()
            event.record(work)
            done[number % 2] = event


def _lock_pages(rows: StreamedRows) -> None:
    """Page-lock memory in place; copies from memory that cannot be locked are merely slower."""
    host = rows.host
    if host.is_pinned():
        return
    runtime = torch.cuda.cudart()
    if int(runtime.cudaHostRegister(host.data_ptr(), host.nbytes, 0)) == 0:
        weakref.finalize(rows, runtime.cudaHostUnregister, host.data_ptr())

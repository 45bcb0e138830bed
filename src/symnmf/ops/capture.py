"""Sequences of launches that are recorded once and replayed as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

Launches = Callable[..., tuple[Tensor, ...]]

#: Entries of a factor above which launching costs little beside the work, and the memory that a
#: recording holds on to would be worth more.
LARGEST = 2**20

WARM_UPS = 2  # runs before a recording, in which libraries set up what they need


class Captures:
    """CUDA graphs of functions that only launch work: no reads, no branches on what they compute.

    A graph works on tensors of its own. Arguments are copied in and results copied out, so that
    neither outlives a call and several runs can share one recording.
    """

    def __init__(self) -> None:
        self._graphs: dict[Hashable, Recording] = {}

    def run(self, key: Hashable, function: Launches, *arguments: Tensor) -> tuple[Tensor, ...]:
        """Return what ``function`` returns; the same ``key`` must mean the same function."""
        if arguments[0].numel() > LARGEST:
            return function(*arguments)
        place = (key, *((argument.shape, argument.dtype) for argument in arguments))
        if place not in self._graphs:
            self._graphs[place] = Recording(function, *arguments)
        return self._graphs[place](*arguments)


class Recording:
    """One recorded sequence of launches."""

    def __init__(self, function: Launches, *arguments: Tensor) -> None:
        device = arguments[0].device
        self.inputs = [argument.clone() for argument in arguments]
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                function(*self.inputs)
        torch.cuda.current_stream(device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # other threads may go on with work of their own meanwhile
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.outputs = function(*self.inputs)

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        for own, given in zip(self.inputs, arguments, strict=True):
            own.copy_(given)
        self.graph.replay()
        return tuple(output.clone() for output in self.outputs)

"""The command line, run inside this process."""

import io
import sys
from dataclasses import dataclass

import pytest

from symnmf.cli import main


@dataclass
class Answer:
    """How a command ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def command(*arguments):
    """Run ``symnmf`` with these arguments; one string is split at its spaces."""
    if len(arguments) == 1 and isinstance(arguments[0], str):
        arguments = arguments[0].split()
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        for stream in streams:
            stream.flush()
    out, err = (stream.buffer.getvalue().decode("utf-8") for stream in streams)
    return Answer(ended.value.code or 0, out, err)

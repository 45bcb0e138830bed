"""Every writer with everything that may be at its path, as this user and as another: a program.

Run as ``python output_places.py COUNT SEED FOLDER``. A write succeeds, or is an ``InputError`` or
an ``OSError`` of the machine; what is at the path afterwards has its kind and its permissions, and
a file of somebody else has its content.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import stat
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import symnmf
from symnmf.errors import InputError
from symnmf.io import write_table

NOBODY = 65534
X = np.ones((6, 6)) + np.eye(6)
FIT = symnmf.factorize(X, 2, random_state=0)


def _report(path: Path) -> None:
    from symnmf.report import write_report

    write_report(path, FIT, X)


def _checkpoint(path: Path) -> None:
    symnmf.factorize(X, 2, random_state=0, max_iter=2, tol=0, checkpoint=path)


#: What writes a file or a folder, and the ending it asks for.
WRITERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "Result.save": (FIT.save, ".npz"),
    "write_table": (lambda path: write_table(path, {"a": [1]}), ".csv"),
    "compressed table": (lambda path: write_table(path, {"a": [1]}), ".csv.gz"),
    "write_report": (_report, ".html"),
    "checkpoint": (_checkpoint, ".npz"),
}


def _file(path: Path, mode: int = 0o600, owner: int | None = None) -> None:
    path.write_bytes(b"old")
    path.chmod(mode)
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner, owner)


def _link(path: Path, name: str) -> None:
    if name == "file":
        _file(path.with_name("linked"), 0o640)
        path.symlink_to("linked")
    elif name == "dangling":
        path.symlink_to("made")
    else:
        path.symlink_to(path.name)


def _socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


def _folder(path: Path, filled: bool) -> None:
    path.mkdir()
    if filled:
        (path / "theirs").write_bytes(b"old")


#: What may be at a path.
THINGS: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda path: None,
    "private file": _file,
    "open file": lambda path: _file(path, 0o666),
    "read-only file": lambda path: _file(path, 0o444),
    "another's file": lambda path: _file(path, 0o644, 12345),
    "another's open file": lambda path: _file(path, 0o666, 12345),
    "folder": lambda path: _folder(path, False),
    "full folder": lambda path: _folder(path, True),
    "pipe": os.mkfifo,
    "read pipe": os.mkfifo,
    "socket": _socket,
    "link": lambda path: _link(path, "file"),
    "dangling link": lambda path: _link(path, "dangling"),
    "loop": lambda path: _link(path, "loop"),
    "null device": lambda path: path.symlink_to("/dev/null"),
    "full device": lambda path: path.symlink_to("/dev/full"),
    "hard link": lambda path: (
        _file(path.with_name("other name")),
        os.link(path.with_name("other name"), path),
    ),
}
#: What the folder is like.
FOLDERS: dict[str, int] = {"own": 0o755, "shared": 0o1777, "closed": 0o555, "unreadable": 0o333}


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode), found.st_uid


def attempt(rng: random.Random, folder: Path) -> str:
    """Write once; an assertion tells of what may not be."""
    name, thing, how = (
        rng.choice(list(WRITERS)),
        rng.choice(list(THINGS)),
        rng.choice(list(FOLDERS)),
    )
    write, ending = WRITERS[name]
    place = Path(tempfile.mkdtemp(dir=folder))
    path = place / f"out{ending}"
    foreign = place / f".out{ending}.{'0' * 16}.tmp"  # as a killed writer of another user leaves it
    _file(foreign, 0o600, 12345)
    THINGS[thing](path)
    place.chmod(FOLDERS[how])
    before, content = _seen(path), path.read_bytes() if path.is_file() else None
    kept = None
    if thing == "read pipe":
        ahead = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(ahead, True)
        kept = os.open(path, os.O_WRONLY)  # or the reader would end before a writer has come
        threading.Thread(target=_drain, args=(ahead,), daemon=True).start()
    try:
        write(path)
        came = "written"
    except InputError as error:
        came = "refused" if str(error).endswith(".") else "no sentence"
    except OSError as error:
        came = "machine" if error.errno is not None else "unknown"
    if kept is not None:
        os.close(kept)
    after = _seen(path)
    place.chmod(0o777)
    what = (name, thing, how, came, before, after)
    assert came in ("written", "refused", "machine"), what
    if before is not None:
        assert after is not None, what
        assert after[0] == before[0], what
        if before[0] == stat.S_IFREG:
            assert after[1:] == before[1:] or os.geteuid() != 0, what
            assert after[1] == before[1], what
    if came != "written" and content is not None:
        assert path.read_bytes() == content, what
    if thing == "full folder" and came != "written":
        assert (path / "theirs").read_bytes() == b"old", what
    if os.geteuid() == 0:
        assert foreign.read_bytes() == b"old", what
    left = [file.name for file in place.iterdir() if file.name.endswith(".tmp")]
    # without root the leftover is our own, and a checkpoint clears it away
    assert left == [foreign.name] or (os.geteuid() != 0 and not left), (what, left)
    shutil.rmtree(place, ignore_errors=True)
    return came


def _drain(descriptor: int) -> None:
    while os.read(descriptor, 65536):
        pass
    os.close(descriptor)


def main(count: int, seed: int, folder: Path) -> None:
    rng, seen = random.Random(seed), Counter[str]()
    for number in range(count):
        try:
            seen[attempt(rng, folder)] += 1
        except BaseException as error:
            error.add_note(f"attempt {number} of seed {seed}")
            raise
    print(dict(seen), flush=True)


def as_nobody(count: int, seed: int, folder: Path) -> int:
    """Do the same in a child that is another user; return its exit code."""
    place = Path(tempfile.mkdtemp(dir=folder))
    os.chmod(place, 0o777)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.environ["HOME"] = str(place)
            main(count, seed, place)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    where = Path(sys.argv[3])
    main(int(sys.argv[1]), int(sys.argv[2]), where)
    if os.geteuid() == 0:
        sys.exit(as_nobody(int(sys.argv[1]), int(sys.argv[2]), where))

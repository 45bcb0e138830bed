"""Files are written whole, with their permissions, and no file of somebody else is replaced."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

import symnmf
from conftest import MINUTES
from symnmf.errors import InputError
from symnmf.io import write_table
from symnmf.outputs import check_output, write_atomically

pytestmark = pytest.mark.skipif(os.name != "posix", reason="what may be there is POSIX's")

X = np.ones((6, 6))


def write(path: Path, content: bytes = b"new") -> None:
    write_atomically(path, lambda stream: stream.write(content))


@pytest.fixture(scope="module")
def result() -> symnmf.Result:
    return symnmf.factorize(X, 1, random_state=0)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_permissions_of_a_file_that_is_replaced_are_kept(
    mode: int, tmp_path: Path, result: symnmf.Result
) -> None:
    for path in (tmp_path / "a.csv", tmp_path / "a.npz"):
        path.write_bytes(b"old")
        path.chmod(mode)
        if path.suffix == ".csv":
            write_table(path, {"a": [1]})
        else:
            result.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_private_file_is_private_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen: list[int] = []

    def look(stream: object) -> None:
        seen.extend(stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir())

    write_atomically(path, look)
    assert seen == [0o600, 0o600]


def test_a_pipe_is_written_into(tmp_path: Path, result: symnmf.Result) -> None:
    path = tmp_path / "pipe.npz"
    os.mkfifo(path)
    got: list[bytes] = []
    # both ends are open before the thread starts: a reader that opens the pipe after the last
    # writer has left waits for ever
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    kept = os.open(path, os.O_WRONLY)
    os.set_blocking(end, True)

    def read() -> None:
        with open(end, "rb") as pipe:
            got.append(pipe.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    result.save(path)
    os.close(kept)
    reader.join(MINUTES)
    assert not reader.is_alive()
    assert stat.S_ISFIFO(path.lstat().st_mode)
    (tmp_path / "copy.npz").write_bytes(got[0])
    assert np.array_equal(symnmf.Result.load(tmp_path / "copy.npz").U, result.U)


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "one").symlink_to("real")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    write(tmp_path / "two")
    assert (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    assert (tmp_path / "two").is_symlink()
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    write(tmp_path / "dangling")
    assert (tmp_path / "made").read_bytes() == b"new"


def test_what_no_file_can_replace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    server.bind("socket")
    try:
        for name in ("folder", "socket", "absent/a", "file/a"):
            (tmp_path / "file").write_bytes(b"")
            with pytest.raises(InputError, match="cannot be written"):
                write(tmp_path / name)
            with pytest.raises(InputError, match="cannot be written"):
                check_output(tmp_path / name)
    finally:
        server.close()
    for wrong in (5, None, b"x", "", "a\0b", ["x"]):
        with pytest.raises(InputError, match="path must"):
            write_atomically(wrong, lambda stream: None)  # type: ignore[arg-type]

"""Progress on a terminal, and what Ctrl-C and SIGTERM leave behind, in real processes."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs pip install 'symnmf[cli]'")

import symnmf
from conftest import MINUTES, synthetic_problem
from symnmf.cli.progress import Forecast

ENDLESS = "--tol 0 --max-iter 10000000 --seed 0"
KEPT = "--checkpoint run.npz"


def command(*parts):
    """The words of a command line."""
    return [sys.executable, "-c", "from symnmf.cli import main; main()", *" ".join(parts).split()]


def snapshot(iteration, stationarity, seconds=0.0):
    return SimpleNamespace(iteration=iteration, stationarity=stationarity, seconds=seconds)


def test_the_forecast_extends_a_steady_fall():
    forecast = Forecast(starts=1, tol=1e-8, max_iter=10_000)
    for iteration in range(101):
        forecast.see(0, snapshot(iteration, 10 ** (-iteration / 50)))
    # down to 1e-2 after 100 iterations, so 1e-8 will take 400
    assert forecast.share == pytest.approx(0.25, rel=0.02)
    assert forecast.seconds_left(10.0) == pytest.approx(30.0, rel=0.03)


def test_the_forecast_keeps_to_the_limits_and_never_falls_back():
    forecast = Forecast(starts=2, tol=1e-4, max_iter=100, max_time=5.0)
    forecast.see(0, snapshot(50, 1.0))
    assert forecast.share == pytest.approx(0.25)
    forecast.see(1, snapshot(1, 1.0, seconds=5.0))  # all that a start may take
    assert forecast.share == pytest.approx(0.75)
    forecast.see(0, snapshot(51, 5.0))
    assert forecast.share >= 0.75


@pytest.fixture
def folder(tmp_path):
    """A folder with a problem to work on."""
    np.save(tmp_path / "X.npy", synthetic_problem(120, 8, 1.0))
    return tmp_path


def wait_for(folder, pattern, process):
    end = time.monotonic() + MINUTES
    while not any(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.2)  # into the iterations


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interrupted_cluster_writes_what_it_has(folder, number, code):
    process = subprocess.Popen(
        command(
            "cluster X.npy -k 8 -o labels.csv --json", KEPT, "--checkpoint-every 0.05", ENDLESS
        ),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(folder, "run.*.start-0.npz", process)
        process.send_signal(number)
        out, err = process.communicate(timeout=MINUTES)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "Traceback" not in err
    content = json.loads(out)
    assert content["status"] == "stopped"
    assert content["exit_code"] == code
    assert len(list(csv.DictReader((folder / "labels.csv").open()))) == 120
    # and the checkpoint is good to go on from
    done = subprocess.run(
        command("cluster X.npy -k 8 -o more.csv --json --seed 0 --starts 1 --tol 1e9", KEPT),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations"] > 0


def read_until(terminal, word):
    """Return what a terminal shows up to the chunk with ``word`` in it."""
    seen = ""
    while word not in seen:
        ready, _, _ = select.select([terminal], [], [], MINUTES)
        assert ready, seen
        seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


def drain(terminal):
    """Read on: a terminal that nobody reads is full after some 17 kB, and its writers wait."""
    with contextlib.suppress(OSError):  # nobody has it open any more
        while os.read(terminal, 65536):
            pass


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_terminal_shows_progress_and_a_signal_still_writes_u(folder, number, code):
    terminal, end = pytest.importorskip("pty", reason="needs POSIX").openpty()
    process = subprocess.Popen(
        command("factorize X.npy -r 8 -o U.npz --solver a-symhals", ENDLESS),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=end,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(end)
    try:
        shown = read_until(terminal, " left")
        reader = threading.Thread(target=drain, args=(terminal,), daemon=True)
        reader.start()
        process.send_signal(number)
        out = process.communicate(timeout=MINUTES)[0]
        reader.join(MINUTES)
    finally:
        process.kill()
        os.close(terminal)
    assert process.returncode == code
    assert re.search(r"error \d\.\d+ λ \S+ ‖U-V‖ \S+ about .* left", shown)
    assert b"ertified" in out
    assert symnmf.Result.load(folder / "U.npz").n_iter > 10

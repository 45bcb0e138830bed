"""Other packages for symmetric NMF, on the same X: the table of docs/evidence.md.

    python benchmarks/peers.py                       this library, and pysrf where it is installed
    python benchmarks/peers.py --nmflibrary FOLDER   also NMFLibrary (MATLAB), run by Octave
    python benchmarks/peers.py --planc PROGRAM       also PLANC (C++), its program dense_nmf

Each method stops by its own rule, NMFLibrary and PLANC after 1000 iterations. PLANC always runs as
many iterations as it is told. E = ||X - U U^T||^2 / ||X||^2 is computed here from the returned U.
For a method with two factors, U is their mean.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.io
from sklearn.datasets import load_digits

import symnmf

METHODS = ("symm_halsacc", "symm_anls", "symm_newton")
ITERATIONS = 1000
#: The numbers by which PLANC knows its two symmetric methods.
PLANC = {"BPP": 2, "GN": 7}
OCTAVE = """
warning('off', 'all'); addpath(genpath('{library}')); load('{folder}/X.mat');
options = struct('verbose', 0, 'max_epoch', {epochs});
tic; [x, infos] = {method}(X, {rank}, options); seconds = toc;
W = x.W; H = x.H; iterations = infos.epoch(end);
save('-v7', '{folder}/out.mat', 'W', 'H', 'seconds', 'iterations');
"""


def error(X: np.ndarray, U: np.ndarray) -> float:
    return float(((X - U @ U.T) ** 2).sum() / (X**2).sum())


def ours(X: np.ndarray, rank: int) -> tuple[np.ndarray, int]:
    result = symnmf.factorize(X, rank, random_state=0)
    return result.U, result.n_iter


def pysrf(tol: float) -> Callable[[np.ndarray, int], tuple[np.ndarray, int]]:
    from pysrf import SRF

    def fit(X: np.ndarray, rank: int) -> tuple[np.ndarray, int]:
        model = SRF(rank=rank, tol=tol, max_outer=2000, random_state=0)
        return np.asarray(model.fit_transform(X.copy())), int(model.n_iter_)

    return fit


def nmflibrary(library: Path, method: str, X: np.ndarray, rank: int) -> tuple[float, int, float]:
    """Return E, iterations and the seconds of one of NMFLibrary's symmetric methods."""
    with tempfile.TemporaryDirectory() as folder:
        scipy.io.savemat(Path(folder) / "X.mat", {"X": X})
        program = OCTAVE.format(
            library=library, folder=folder, method=method, rank=rank, epochs=ITERATIONS
        )
        subprocess.run(["octave-cli", "--quiet", "--eval", program], check=True, timeout=300)
        out = scipy.io.loadmat(Path(folder) / "out.mat")
    tall = [out[name] if len(out[name]) == len(X) else out[name].T for name in ("W", "H")]
    U = (tall[0] + tall[1]) / 2
    return error(X, U), int(out["iterations"].item()), float(out["seconds"].item())


def planc(program: Path, method: str, X: np.ndarray, rank: int) -> tuple[float, int, float]:
    """Return E, iterations and the seconds of one of PLANC's symmetric methods, on one node."""
    with tempfile.TemporaryDirectory() as folder:
        # version 0.82 reads a file only if its name ends in "rand", and draws a matrix otherwise
        np.savetxt(Path(folder) / "X_rand", X)
        command = f"{program.resolve()} -a {PLANC[method]} -k {rank} -t {ITERATIONS} --symm 0"
        command += f" --seed 0 -d '{len(X)} {len(X)}' -i {folder}/X_rand -o {folder}/out"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300)
        U = np.loadtxt(Path(folder) / "out_H")
        if method == "BPP":  # it returns a second factor, scaled to unit columns
            W = np.loadtxt(Path(folder) / "out_W")
            root = np.sqrt(np.linalg.norm(U, axis=0))
            U = (W * root + U / np.where(root > 0, root, 1)) / 2
    seconds = re.findall(r"time taken:\s*([\d.e+-]+)", done.stdout + done.stderr)[-1]
    return error(X, U), ITERATIONS, float(seconds)


def problems() -> dict[str, tuple[np.ndarray, int]]:
    digits = load_digits().data[:600]
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)
    return {
        "synthetic, n = 300, r = 20": (
            symnmf.datasets.synthetic(300, 20, 0.1, random_state=0)[0],
            20,
        ),
        "cosines of 600 digits, r = 10": (unit @ unit.T, 10),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nmflibrary", type=Path, help="its folder; needs Octave")
    parser.add_argument("--planc", type=Path, help="its program dense_nmf")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    methods: dict[str, Callable[[np.ndarray, int], tuple[np.ndarray, int]]] = {"symnmf": ours}
    try:
        methods |= {"pysrf": pysrf(1e-3), "pysrf, tol = 1e-6": pysrf(1e-6)}
    except ImportError:
        print("pysrf is not installed and is left out", file=sys.stderr)
    print("| data | method | E | iterations | seconds |\n| --- | --- | ---: | ---: | ---: |")
    for title, (X, rank) in problems().items():
        for name, fit in methods.items():
            fit(X, rank)  # once before, so that no clock counts the loading of compiled code
            begun = time.perf_counter()
            U, iterations = fit(X, rank)
            seconds = time.perf_counter() - begun
            print(
                f"| {title} | {name} | {error(X, U):.4g} | {iterations} | {seconds:.2f} |",
                flush=True,
            )
        others: dict[str, Callable[[], tuple[float, int, float]]] = {}
        for method in METHODS if chosen.nmflibrary else ():
            others[f"NMFLibrary {method}"] = partial(nmflibrary, chosen.nmflibrary, method, X, rank)
        for method in PLANC if chosen.planc else ():
            others[f"PLANC {method}"] = partial(planc, chosen.planc, method, X, rank)
        for name, run in others.items():
            E, iterations, seconds = run()
            print(f"| {title} | {name} | {E:.4g} | {iterations} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()

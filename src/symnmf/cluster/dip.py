"""The p-value of Hartigan's dip test of one mode."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.dips import dip

#: Quantiles of sqrt(n) times the dip of uniform samples, the null that is hardest to tell from two
#: modes: a row for each size, a column for each chance of more. 8 000 to 100 000 samples each.
CHANCES = np.array([0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001])
SIZES = np.array([8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384])
QUANTILES = np.array(
    [
        [0.2317, 0.3136, 0.3406, 0.3546, 0.4005, 0.4351, 0.4698, 0.4880, 0.5434],
        [0.2474, 0.3247, 0.3616, 0.3887, 0.4280, 0.4618, 0.5020, 0.5286, 0.6090],
        [0.2605, 0.3378, 0.3786, 0.4066, 0.4485, 0.4847, 0.5284, 0.5593, 0.6480],
        [0.2698, 0.3495, 0.3908, 0.4200, 0.4634, 0.5020, 0.5490, 0.5794, 0.6664],
        [0.2763, 0.3578, 0.4014, 0.4308, 0.4761, 0.5170, 0.5651, 0.5962, 0.6900],
        [0.2814, 0.3628, 0.4081, 0.4374, 0.4823, 0.5245, 0.5715, 0.6057, 0.6953],
        [0.2857, 0.3685, 0.4123, 0.4429, 0.4893, 0.5303, 0.5794, 0.6155, 0.7123],
        [0.2872, 0.3713, 0.4168, 0.4485, 0.4940, 0.5348, 0.5881, 0.6211, 0.7187],
        [0.2915, 0.3756, 0.4206, 0.4524, 0.4996, 0.5419, 0.5908, 0.6260, 0.7163],
        [0.2914, 0.3748, 0.4227, 0.4542, 0.5015, 0.5423, 0.5965, 0.6280, 0.7346],
    ]
)


def dip_test(values: np.ndarray) -> float:
    """Return the chance that a sample with one mode has a dip as large; 0 below one in 1000."""
    n = len(values)
    if n < SIZES[0]:
        return 1.0
    found = np.sqrt(n) * dip(np.sort(np.asarray(values, dtype=np.float64)))
    size = np.log(min(n, SIZES[-1]))
    limits = [np.interp(size, np.log(SIZES), column) for column in QUANTILES.T]
    return float(np.interp(found, limits, CHANCES, left=1.0, right=0.0))

"""What the argument ``loss`` may be, and what else is known of a loss before it is loaded."""

from __future__ import annotations

FROBENIUS = "frobenius"

#: The part of a row's hyperedges that its prior counts for.
PRIOR = 0.05

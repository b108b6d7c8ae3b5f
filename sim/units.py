"""Unit constants; conversions happen at the edge only (command line, plot label)."""

from __future__ import annotations

KB = 10**3
MB = 10**6
GB = 10**9
MIB = 2**20
GIB = 2**30
MICROSECOND = 1e-6
MILLISECOND = 1e-3

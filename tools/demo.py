"""The main job, end to end: do transfers hide, and what each baseline delivers.

Runs the baseline matrix for gpt-oss-20b and for a model of 128 experts, both with half of their experts offloaded
on sm_120 cards, real routing and real request lengths; prints the table, the verdict and the files written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hideaway.main import main

OUT = Path("demo-out")
RUNS = (
    [
        "--model",
        "gpt-oss-20b",
        "--profile",
        "rtx-pro-6000",
        "--block-size",
        "8",
        "--concurrency",
        "1",
        "4",
        "16",
    ],
    [
        "--model",
        "Qwen3-30B-A3B",
        "--profile",
        "rtx-5090",
        "--block-size",
        "8",
        "--concurrency",
        "1",
        "4",
        "16",
    ],
)


def demo() -> int:
    """Return 0 when both matrices were written."""
    status = main(["hide", "--published", "bm4"])
    for flags in RUNS:
        print(f"\n$ hideaway matrix {' '.join(flags)} --requests 32", flush=True)
        status |= main(["matrix", *flags, "--requests", "32", "--overwrite", "--out", str(OUT / flags[1])])
    return status


if __name__ == "__main__":
    sys.exit(demo())

"""Whole-process time and peak memory of the two matrices that users are promised."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

from hideaway.console import print_table

COMMON = [
    "--slot-fraction",
    "0.5",
    "--block-size",
    "8",
    "16",
    "--concurrency",
    "1",
    "2",
    "4",
    "8",
    "16",
    "32",
]
RUNS = {
    "gpt-oss-20b on rtx-pro-6000": ["--model", "gpt-oss-20b", "--profile", "rtx-pro-6000"],
    "Qwen3-30B-A3B on rtx-5090": ["--model", "Qwen3-30B-A3B", "--profile", "rtx-5090"],
}


def report() -> None:
    """Print seconds and the largest process's peak memory of each matrix of 64 requests."""
    lines = []
    for name, flags in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "hideaway", "matrix", *flags, *COMMON, "--requests", "64"]
            start = time.perf_counter()
            subprocess.run([*command, "--out", folder], check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
        peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        lines.append((name, f"{seconds:.1f}", f"{peak_bytes / 1e6:.0f}"))
    print_table(("matrix", "seconds", "peak MB of a process"), lines, title="hideaway matrix, 64 requests")

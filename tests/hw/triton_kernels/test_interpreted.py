"""Runs `interpreted_kernels.py` where Triton interprets: without a GPU, values are checked there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).resolve().parents[3]
INTERPRETED = Path(__file__).with_name("interpreted_kernels.py")


@pytest.mark.parametrize("which", ["nvfp4", "not nvfp4"])
def test_interpreted_kernels_agree_with_float64(which: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", which]
    run = subprocess.run(
        [*command, str(INTERPRETED)], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr

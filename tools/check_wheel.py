"""Build the wheel, unpack it outside the repository and run it there.

An editable install hides a sub-package or data file that is missing from the wheel; this does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROBE = """
import importlib, pathlib, sys
import hideaway, hideaway.main
from hideaway.subcommands import SUBCOMMANDS
home = pathlib.Path(hideaway.__file__).parent
assert sys.argv[1] in str(home), f"imported {home}, not the wheel"
for entry in SUBCOMMANDS.values():
    importlib.import_module(entry.module)
assert "torch" not in sys.modules
raise SystemExit(hideaway.main.main(["models"]))
"""


FOLDERS = {"hideaway": "", "sim": "sim", "calibrate": "calibrate", "hw": "hw"}


def _missing_files(installed: Path) -> list[str]:
    """Return the tracked files of the packages that the wheel did not install."""
    tracked = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    missing = []
    for name in tracked:
        folder, _, rest = name.partition("/")
        if not (installed / FOLDERS[folder] / rest).exists():
            missing.append(name)
    return missing


def main() -> int:
    """Return 0 when the wheel works away from the repository."""
    with tempfile.TemporaryDirectory(prefix="hideaway-wheel-") as scratch:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        wheels = Path(scratch) / "wheels"
        site = Path(scratch) / "site"
        subprocess.run(
            [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(ROOT)], check=True
        )
        (wheel,) = wheels.glob("*.whl")
        subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
        missing = _missing_files(site / "hideaway")
        if missing:
            print(
                f"wheel: lacks {', '.join(missing)}; add them to package-data in pyproject.toml",
                file=sys.stderr,
            )
            return 1
        environment = {**os.environ, "PYTHONPATH": str(site)}
        probe = [sys.executable, "-c", PROBE, scratch]
        subprocess.run(probe, check=True, cwd=scratch, env=environment, stdout=subprocess.DEVNULL)
    print("wheel: built, installed and imported outside the repository")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

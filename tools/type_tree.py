"""Lay out build/types/hideaway as one importable tree of links, for tools that do not follow package-dir.

Each file of `hideaway/` and each of the folders `sim`, `calibrate`, `hw` is linked, so that mypy, doctest and
import-graph tools see the package as users import it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAPPED_FOLDERS = ("sim", "calibrate", "hw")


def build_type_tree(root: Path = ROOT) -> Path:
    """Return the folder to put on MYPYPATH, made anew."""
    tree = root / "build" / "types"
    shutil.rmtree(tree, ignore_errors=True)
    package = tree / "hideaway"
    package.mkdir(parents=True)
    for entry in sorted((root / "hideaway").iterdir()):
        if entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    for folder in MAPPED_FOLDERS:
        if (root / folder / "__init__.py").exists():
            (package / folder).symlink_to(root / folder)
    return tree


if __name__ == "__main__":
    print(build_type_tree())

"""The rows and benchmark files of the public experiment that ship with the package.

Source, commit and licence of each are in the folder's README. They are judged when nothing else is given.
"""

from __future__ import annotations

from pathlib import Path

PUBLISHED_FOLDER = Path(__file__).resolve().parent.parent / "inputs" / "data" / "upstream"

PUBLISHED_ROWS = PUBLISHED_FOLDER / "rows"
PUBLISHED_BM2 = PUBLISHED_FOLDER / "bm2-issuance.json"
PUBLISHED_BM3 = PUBLISHED_FOLDER / "bm3-priority.json"
PUBLISHED_BM4 = (
    PUBLISHED_FOLDER / "hide-inequality-46808a3.json",
    PUBLISHED_FOLDER / "nvtx-range-summary-b766f8f.csv",
    PUBLISHED_FOLDER / "bm4-expert-bytes.json",
)

"""What the legend says of a baseline, above all of one that has no values.

Pure. Next: `hideaway.report.money_picture`, `hideaway.report.exposed_picture`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hideaway.report.matrix_cells import NO_VALUE, Panel
from hideaway.report.style import ordered_baselines
from hideaway.sim.contract import UNAVAILABLE_CAPACITY

_MEANINGS = {
    UNAVAILABLE_CAPACITY: "experts do not fit\n(UNAVAILABLE_CAPACITY)",
    NO_VALUE: "row without this metric",
}


def legend_names(all_panels: Sequence[Panel]) -> dict[str, str]:
    """Return the legend entry of every baseline, in drawing order; cells without a value are said."""
    names: dict[str, str] = {}
    for baseline in ordered_baselines({name for panel in all_panels for name in panel.baselines}):
        num_valued = sum(key[0] == baseline for panel in all_panels for key in panel.values)
        statuses = Counter(
            status for panel in all_panels for key, status in panel.statuses.items() if key[0] == baseline
        )
        total = num_valued + statuses.total()
        entry = baseline
        for status, count in sorted(statuses.items()):
            place = "" if count == total else f"\nin {count} of {total} cells"
            entry += f": {_MEANINGS.get(status, status)}{place}"
        names[baseline] = entry
    return names

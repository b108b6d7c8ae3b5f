"""Where B0 < B1 < OURS < B3 holds in the matrix, and which link breaks where it does not.

Pure: rows in, verdicts out. Next: `hideaway.report.plots`, which draws them under the axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hideaway.report.matrix_cells import Panel, Row, panels, row_number

LINKS = (("B0", "B1"), ("B1", "OURS"), ("OURS", "B3"))
LINK_NAMES = tuple(f"{lower} < {upper}" for lower, upper in LINKS)
ORDER_NAME = "B0 < B1 < OURS < B3"


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """What one cell says of the order, by the means over its repeats.

    Attributes
    ----------
    links : tuple[bool | None, ...]
        For each of `LINKS`: whether it holds strictly, None where a side has no value.
    ratios : tuple[float | None, ...]
        For each of `LINKS`: upper over lower, None where it cannot be formed.
    """

    model: str
    block_size: int
    concurrency: int
    links: tuple[bool | None, ...]
    ratios: tuple[float | None, ...]

    @property
    def holds(self) -> bool | None:
        """True if every link holds, False if one breaks, None if none breaks but one cannot be told."""
        if False in self.links:
            return False
        return None if None in self.links else True

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the links that break, such as "B1 < OURS"."""
        return tuple(name for name, link in zip(LINK_NAMES, self.links, strict=True) if link is False)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the links that cannot be told: a baseline is missing or does not fit."""
        return tuple(name for name, link in zip(LINK_NAMES, self.links, strict=True) if link is None)


def order_verdicts(rows: Sequence[Row], metric: str = "output_tokens_per_second") -> list[OrderVerdict]:
    """Return a verdict for each cell (model, block size, concurrency) of `rows`, in that order.

    Raises
    ------
    InputError
        A row does not say which cell it belongs to.
    """
    return [
        verdict
        for panel in panels(rows, lambda row: row_number(row, metric))
        for verdict in panel_verdicts(panel)
    ]


def panel_verdicts(panel: Panel) -> list[OrderVerdict]:
    """Return the verdicts of one panel by ascending concurrency."""
    verdicts = []
    for concurrency in panel.concurrencies:
        pairs = [(panel.mean(lower, concurrency), panel.mean(upper, concurrency)) for lower, upper in LINKS]
        links = tuple(None if low is None or high is None else low < high for low, high in pairs)
        ratios = tuple(None if not low or high is None else high / low for low, high in pairs)
        verdicts.append(OrderVerdict(panel.model, panel.block_size, concurrency, links, ratios))
    return verdicts


def order_summary(verdicts: Sequence[OrderVerdict]) -> str:
    """Return one clause: in how many cells the order holds, and which links break how often."""
    holds = sum(verdict.holds is True for verdict in verdicts)
    untold = sum(verdict.holds is None for verdict in verdicts)
    broken = Counter(name for verdict in verdicts for name in verdict.broken)
    parts = [f"{ORDER_NAME} holds in {holds} of {len(verdicts)} cells"]
    parts += [f"{name} breaks in {broken[name]}" for name in LINK_NAMES if broken[name]]
    if untold:
        parts.append(f"cannot be told in {untold}")
    return "; ".join(parts)

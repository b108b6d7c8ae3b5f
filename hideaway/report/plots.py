"""The pictures of the matrix and of a timeline by the names that callers use; each has a file of its own."""

from __future__ import annotations

from hideaway.report.exposed_picture import exposed_plot
from hideaway.report.money_picture import money_plot
from hideaway.report.order import OrderVerdict, order_summary, order_verdicts
from hideaway.report.timeline_plot import timeline_plot

__all__ = ["OrderVerdict", "exposed_plot", "money_plot", "order_summary", "order_verdicts", "timeline_plot"]

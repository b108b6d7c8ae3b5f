"""Experts on their way: the scheduler's transfer commands passed to a device, and what arrives sorted for its readers.

An arrival is one of three: what the visit that is going on waits for, a streamed expert in a staging slot, or a
prefetch, which the scheduler is told of with its next event. Not here: the order of transfers (the device's queue)
and what is computed from them (`visitor.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hideaway.hw.devices.base import Arrival, Transfer, TransferDevice
from hideaway.hw.engine.slot_table import SlotTable
from hideaway.sim.commands import Band, Cancel, Command, Fetch, Promote, Stream
from hideaway.sim.errors import HideawayError
from hideaway.sim.events import TransfersArrived, TransfersCancelled
from hideaway.sim.masks import experts_of
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline


class Transfers:
    """Executes transfer commands and sorts arrivals.

    Parameters
    ----------
    origin_seconds : float
        The run's start on the device's clock.
    on_failure : callable
        Told of every transfer that failed for good while it was awaited: layer, expert, sentence.

    Attributes
    ----------
    moved : list of int
        Whole experts moved, by band.
    busy_seconds : float
        Time in which something crossed the link; pieces of several streams at once count once each.
    failed_prefetches : int
        Transfers that failed before anybody waited for them.
    """

    def __init__(
        self,
        device: TransferDevice,
        scheduler: Scheduler,
        table: SlotTable,
        *,
        origin_seconds: float,
        timeline: Timeline | None,
        on_failure: Callable[[int, int, str], None],
    ) -> None:
        self._device = device
        self._scheduler = scheduler
        self._table = table
        self._origin = origin_seconds
        self._timeline = timeline
        self._on_failure = on_failure
        self.moved = [0] * len(Band)
        self.busy_seconds = 0.0
        self.failed_prefetches = 0
        self._landed: dict[int, int] = {}
        self._dropped: dict[int, int] = {}
        self._since: dict[tuple[int, int], float] = {}
        self._link_end = 0.0
        self._stalled = 0.0
        self._visiting = -1
        self._awaited = 0
        self._asked = 0.0
        self._ready: deque[tuple[int, int]] = deque()
        self.fetched = 0
        self._to_stream: deque[int] = deque()

    def execute(self, commands: list[Command], now: float) -> None:
        """Pass transfers to the device, in their order; streams as far as there are staging slots. Changes state."""
        for command in commands:
            if isinstance(command, Fetch):
                self._submit(command.layer, command.experts, command.band, now)
            elif isinstance(command, Stream):
                self._to_stream.extend(experts_of(command.experts))
                self._feed_stream()
            elif isinstance(command, Promote):
                self._device.promote(command.layer, command.experts)
                for expert in experts_of(command.experts):
                    self._since[command.layer, expert] = now
            elif isinstance(command, Cancel):
                dropped = self._device.cancel(command.layer, command.experts)
                if dropped:
                    for expert in experts_of(dropped):
                        del self._since[command.layer, expert]
                    self._scheduler.handle(TransfersCancelled(now, command.layer, dropped))

    def begin_visit(self, layer: int, missing: int, now: float) -> None:
        """Sort arrivals of `missing` experts of a layer for `next_arrival` from now on. Changes state."""
        self._visiting, self._awaited, self.fetched, self._asked = layer, missing, 0, now
        self._stalled = 0.0

    def next_arrival(self) -> tuple[int, int] | None:
        """Return (expert, slot) of an awaited expert that is there, None when none is; never blocks. Changes state."""
        if not self._ready:
            self._sort(self._device.poll())
        return self._ready.popleft() if self._ready else None

    def wait(self) -> None:
        """Block until an awaited expert is there, or none is awaited any more. Changes state."""
        while self._awaited and not self._ready:
            arrivals = self._device.wait()
            if not arrivals:
                raise HideawayError(
                    f"layer {self._visiting} waits for experts {self._awaited:#x}, which are not on their way; this is "
                    "a fault in the scheduler or the device"
                )
            self._sort(arrivals)

    def computed(self, slot: int) -> None:
        """Take back the slot of a streamed expert that has been computed, and stream the next. Changes state."""
        if self._table.is_staging(slot):
            self._table.give_back_staging(slot)
            self._feed_stream()

    @property
    def awaits(self) -> bool:
        """Whether the visit lacks an expert that is still on its way."""
        return self._awaited != 0

    def end_visit(self) -> float:
        """End the sorting for a visit and return for how long copies it waited for were not issued. Changes state."""
        self._visiting = -1
        return self._stalled

    def tell(self, now: float) -> None:
        """Tell the scheduler which prefetches have landed or failed since it was last told. Changes state."""
        self._sort(self._device.poll())
        if self._landed:
            landed, self._landed = tuple(self._landed.items()), {}
            self._scheduler.handle(TransfersArrived(now, landed))
        if self._dropped:
            dropped, self._dropped = self._dropped, {}
            for layer, experts in dropped.items():
                self._scheduler.handle(TransfersCancelled(now, layer, experts))

    def queued(self) -> int:
        """Return how many copies are under way or wait; changes nothing."""
        return self._device.outstanding()

    def _submit(self, layer: int, experts: int, band: Band, now: float) -> None:
        slots = self._table.assign(layer, experts)
        for expert in slots:
            self._since[layer, expert] = now
        self._device.submit([Transfer(layer, expert, slot) for expert, slot in slots.items()], band)

    def _feed_stream(self) -> None:
        """Start streaming as many experts as there are staging slots; all were asked for at once. Changes state."""
        while self._to_stream:
            slot = self._table.take_staging()
            if slot is None:
                return
            expert = self._to_stream.popleft()
            self._since[self._visiting, expert] = self._asked
            self._device.submit([Transfer(self._visiting, expert, slot)], Band.ON_DEMAND)

    def _sort(self, arrivals: list[Arrival]) -> None:
        for arrival in arrivals:
            bit = 1 << arrival.expert
            awaited = arrival.layer == self._visiting and bool(self._awaited & bit)
            streamed = self._table.is_staging(arrival.slot)
            if awaited:
                self._awaited ^= bit
            self._log(arrival)
            if arrival.failure is not None:
                self._failed(arrival, awaited=awaited, streamed=streamed)
                continue
            self.moved[arrival.band] += 1
            if awaited:
                self._ready.append((arrival.expert, arrival.slot))
            if streamed:
                continue
            if awaited and arrival.band is Band.ON_DEMAND:
                self.fetched |= bit
            else:
                self._landed[arrival.layer] = self._landed.get(arrival.layer, 0) | bit

    def _failed(self, arrival: Arrival, *, awaited: bool, streamed: bool) -> None:
        assert arrival.failure is not None
        if awaited:
            self._on_failure(arrival.layer, arrival.expert, arrival.failure)
        else:
            self.failed_prefetches += 1
        if streamed:
            self.computed(arrival.slot)
        else:
            bit = 1 << arrival.expert
            self._dropped[arrival.layer] = self._dropped.get(arrival.layer, 0) | bit

    def _log(self, arrival: Arrival) -> None:
        """Count a transfer's copies and put them on the timeline. Changes the counts and the timeline only."""
        since = self._since.pop((arrival.layer, arrival.expert), 0.0)
        experts, band = 1 << arrival.expert, int(arrival.band)
        for copy in arrival.copies:
            start, end = copy.start_seconds - self._origin, copy.end_seconds - self._origin
            self.busy_seconds += end - start
            idle = start - max(self._link_end, since)
            if idle > 0 and self._visiting >= 0 and arrival.band is Band.ON_DEMAND:
                self._stalled += idle
            self._link_end = max(self._link_end, end)
            if self._timeline is not None:
                self._timeline.add(
                    start,
                    end,
                    "link",
                    "copy",
                    layer=arrival.layer,
                    experts=experts,
                    bytes=copy.bytes,
                    band=band,
                )

"""Puts a real run together: scheduler, slots, transfers, visitor, forwards, engine, around a given device and work.

The counterpart of `hideaway.sim.world.world`. What it is given may be fake; it does not know.
"""

from __future__ import annotations

from collections.abc import Callable

from hideaway.hw.devices.base import Transfer, TransferDevice
from hideaway.hw.engine.content import Content
from hideaway.hw.engine.engine import Engine
from hideaway.hw.engine.failures import Failures
from hideaway.hw.engine.forward import ForwardRunner
from hideaway.hw.engine.replayed import Replayed
from hideaway.hw.engine.slot_table import SlotTable
from hideaway.hw.engine.transfers import Transfers
from hideaway.hw.engine.visitor import Visitor
from hideaway.hw.engine.work import Clock, Work
from hideaway.sim.commands import Band
from hideaway.sim.errors import HideawayError
from hideaway.sim.event_log import EventLog
from hideaway.sim.inputs.scenario.baselines import Baseline
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.metrics import Meter
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.timeline import Timeline
from hideaway.sim.world.inputs import Inputs
from hideaway.sim.world.make_scheduler import make_scheduler
from hideaway.sim.world.memory import MemorySplit
from hideaway.sim.world.serving import Serving, make_serving


def num_slots_needed(scenario: Scenario, inputs: Inputs, memory: MemorySplit) -> int:
    """Return the slots that the device of a run must have, those for streaming included."""
    return inputs.model.num_layers * memory.slots_per_layer + num_staging(scenario, inputs, memory)


def num_staging(scenario: Scenario, inputs: Inputs, memory: MemorySplit) -> int:
    """Return the slots for streamed experts: none where every expert has a slot of its own."""
    return 0 if memory.slots_per_layer >= inputs.model.num_experts else scenario.staging_slots


class Machine:
    """One device, one scheduler, one run.

    Parameters
    ----------
    make_content : callable, optional
        Makes what the forwards hold; by default they replay the traces of `inputs`.
    on_progress : callable, optional
        Told how many requests have ended after each forward that ended some.
    """

    def __init__(
        self,
        scenario: Scenario,
        inputs: Inputs,
        baseline: Baseline,
        memory: MemorySplit,
        *,
        device: TransferDevice,
        work: Work,
        make_clock: Callable[[], Clock],
        make_content: Callable[[Serving, Scheduler], Content] | None = None,
        timeline: Timeline | None = None,
        log: EventLog | None = None,
        on_progress: Callable[[int], None] = lambda ended: None,
    ) -> None:
        self.scheduler: Scheduler = make_scheduler(scenario, inputs, baseline, memory, log=log)
        residency = self.scheduler.cache.residency
        table = SlotTable(residency, num_staging(scenario, inputs, memory))
        _load_resident(device, self.scheduler, table)
        clock = make_clock()
        serving = make_serving(scenario, inputs, baseline, self.scheduler, timeline)
        if make_content is None:
            content: Content = Replayed(serving, self.scheduler, inputs.trace)
        else:
            content = make_content(serving, self.scheduler)
        self.failures = Failures(content)
        self.transfers = Transfers(
            device,
            self.scheduler,
            table,
            origin_seconds=device.now_seconds() - clock.now_seconds(),
            timeline=timeline,
            on_failure=self.failures.note,
        )
        self.visitor = Visitor(self.scheduler, self.transfers, table, work, clock, content, timeline=timeline)
        forwards = ForwardRunner(
            self.scheduler,
            serving.book,
            content,
            visitor=self.visitor,
            table=table,
            work=work,
            clock=clock,
            failures=self.failures,
            timeline=timeline,
        )
        self.meter: Meter = serving.meter
        self._engine = Engine(
            self.scheduler,
            serving.book,
            content,
            transfers=self.transfers,
            forwards=forwards,
            work=work,
            clock=clock,
            failures=self.failures,
            on_progress=on_progress,
        )

    @property
    def visits(self) -> Visitor:
        """Where compute waited."""
        return self.visitor

    @property
    def copies(self) -> Transfers:
        """What the link moved."""
        return self.transfers

    def run(self) -> None:
        """Run every request to its end. Changes state."""
        self._engine.run()


def _load_resident(device: TransferDevice, scheduler: Scheduler, table: SlotTable) -> None:
    """Bring in what is resident before the first request. Changes state.

    Raises
    ------
    HideawayError
        An expert could not be brought in.
    """
    for layer, experts in enumerate(scheduler.cache.residency.resident):
        slots = table.assign(layer, experts)
        device.submit([Transfer(layer, expert, slot) for expert, slot in slots.items()], Band.BACKGROUND)
        left = len(slots)
        while left:
            for arrival in device.wait():
                left -= 1
                if arrival.failure is not None:
                    raise HideawayError(f"the run cannot start: {arrival.failure}")

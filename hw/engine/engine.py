"""The real engine: executes the scheduler's commands one after another on one compute stream, in real time.

The loop is that of `hideaway.sim.world.engine`, without a simulation around it: one thread asks the scheduler,
computes and waits; transfers move on the device's own threads. With a fake clock, work and device it gives the
simulator's timeline.
"""

from __future__ import annotations

from collections.abc import Callable

from hideaway.hw.engine.content import Content
from hideaway.hw.engine.failures import Failures
from hideaway.hw.engine.forward import ForwardRunner
from hideaway.hw.engine.transfers import Transfers
from hideaway.hw.engine.work import Clock, Seat, Work
from hideaway.sim.commands import Command, Draft, Forward, Idle, Route
from hideaway.sim.errors import HideawayError
from hideaway.sim.events import DraftDone, Event, Ready, RequestFailed, RouteDone
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.request_book import RequestBook


class Engine:
    """Executes a run of requests.

    Parameters
    ----------
    on_progress : callable
        Told how many requests have ended, well or badly, after each forward that ended some.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        book: RequestBook,
        content: Content,
        *,
        transfers: Transfers,
        forwards: ForwardRunner,
        work: Work,
        clock: Clock,
        failures: Failures,
        on_progress: Callable[[int], None],
    ) -> None:
        self._scheduler = scheduler
        self._book = book
        self._content = content
        self._meter = book.meter
        self._transfers = transfers
        self._forwards = forwards
        self._work = work
        self._clock = clock
        self._failures = failures
        self._on_progress = on_progress

    def run(self) -> None:
        """Run every request to its end. Changes state."""
        book, clock = self._book, self._clock
        book.open_closed_loop()
        while book.unfinished:
            book.let_arrive(clock.now_seconds())
            work = self._ask(Ready(clock.now_seconds()))
            for seq_id in book.note_admissions(clock.now_seconds()):
                self._work.forget(seq_id)
            if isinstance(work, Idle):
                self._wait_for_request()
                continue
            if isinstance(work, Draft):
                self._draft(work)
                work = self._ask(DraftDone(clock.now_seconds(), work.seq_ids))
            if isinstance(work, Route):
                self._route(work)
                predicted = self._content.named(work)
                work = self._ask(RouteDone(clock.now_seconds(), work.seq_ids, predicted))
            if not isinstance(work, Forward):
                raise HideawayError(f"the scheduler answered with {work!r}; a forward was expected")
            self._forward(work)

    def _ask(self, event: Event) -> Command:
        """Tell the scheduler what has landed, then `event`; pass its transfers on. Changes state.

        Returns what the compute stream does next.
        """
        self._transfers.tell(event.at_seconds)
        commands = self._scheduler.handle(event)
        self._transfers.execute(commands, event.at_seconds)
        return commands[-1] if commands else Idle()

    def _draft(self, work: Draft) -> None:
        self._content.drafting(work.seq_ids)
        start = self._clock.now_seconds()
        self._work.draft(self._seats(work.seq_ids))
        self._book.let_arrive(self._clock.now_seconds())
        end = self._clock.now_seconds()
        self._meter.draft_seconds += end - start
        self._book.log_phase("draft", start, end, work.seq_ids)

    def _route(self, work: Route) -> None:
        start = self._clock.now_seconds()
        self._work.route(self._seats(work.seq_ids), work.exact_depth, work.num_layers)
        self._book.let_arrive(self._clock.now_seconds())
        end = self._clock.now_seconds()
        self._meter.route_seconds += end - start
        self._book.log_phase("route", start, end, work.seq_ids)

    def _seats(self, seq_ids: tuple[int, ...]) -> tuple[Seat, ...]:
        pairs = zip(seq_ids, self._book.contexts(seq_ids), strict=True)
        return tuple(Seat.block(seq_id, rows, context) for seq_id, (rows, context) in pairs)

    def _forward(self, work: Forward) -> None:
        """Run one forward, hand out what it committed, end what failed in it. Changes state."""
        start = self._clock.now_seconds()
        done = self._forwards.run(work)
        self._book.forward_ended(start, done.at_seconds, work)
        self._ask(done)
        ended = list(self._book.commit(done, work))
        for seq_id in sorted(self._failures.seq_ids):
            self._scheduler.handle(RequestFailed(done.at_seconds, seq_id))
            self._book.fail(seq_id, done.at_seconds)
            ended.append(seq_id)
        for seq_id in ended:
            self._work.forget(seq_id)
        if ended:
            self._on_progress(len(ended))

    def _wait_for_request(self) -> None:
        arrival = self._book.next_arrival_seconds
        if arrival == float("inf"):
            raise HideawayError(
                "nothing runs, nothing waits and no request will come, yet some are unfinished"
            )
        self._clock.sleep_until(arrival)

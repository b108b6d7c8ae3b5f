"""A device whose work lasts what the cost model says: fake clock, fake compute, and the real queue over a fake link."""

from __future__ import annotations

from collections import deque

from hideaway.hw.devices.base import Arrival, Copy
from hideaway.hw.devices.transfer_queue import TransferQueue
from hideaway.hw.engine.work import LayeredWork
from hideaway.sim.world.compute import ForwardCosts
from hideaway.sim.world.copies import LinkOptions


class FakeClock:
    """Time that passes only when somebody lets it."""

    def __init__(self):
        self.now = 0.0

    def now_seconds(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds

    def sleep_until(self, at_seconds):
        self.now = max(self.now, at_seconds)


class FakeDevice:
    """Issues from a real `TransferQueue`; a copy takes issue + latency + bytes / rate on a serial link."""

    slot_bytes = 4096

    def __init__(self, clock, costs, expert_bytes, options: LinkOptions, *, num_slots=10**6):
        self.num_slots = num_slots
        self._clock = clock
        self._costs = costs
        self._depth = options.submitted_depth
        self._batched = options.batched
        self._queue = TransferQueue(expert_bytes, options)
        self._bytes = expert_bytes
        self._ends = deque([0.0] * self._depth, maxlen=self._depth)
        self._issue_free = 0.0
        self._link_free = 0.0
        self._asked = 0.0
        self._flying = deque()  # (end, pieces' transfers that end with it, their copies)
        self._arrived = []

    def restart(self):
        """Start anew at time zero, once what is resident at the start has been brought in."""
        assert not len(self._queue)
        self._clock.now = self._issue_free = self._link_free = self._asked = 0.0
        self._ends.extend([0.0] * self._depth)

    def facts(self):
        return {"kind": "fake"}

    def now_seconds(self):
        return self._clock.now

    def submit(self, transfers, band):
        self._advance()
        self._queue.submit(transfers, band)
        self._asked = self._clock.now
        self._advance()

    def promote(self, layer, experts):
        self._advance()
        self._queue.promote(layer, experts)

    def cancel(self, layer, experts):
        self._advance()
        return self._queue.cancel(layer, experts)

    def outstanding(self):
        self._advance()
        return len(self._queue)

    def poll(self):
        self._advance()
        taken, self._arrived = self._arrived, []
        return taken

    def wait(self, timeout_seconds=None):
        self._advance()
        while not self._arrived and len(self._queue):
            self._clock.sleep_until(min(self._moments()))
            self._advance()
        return self.poll()

    def close(self):
        pass

    def _moments(self):
        """When something happens next: the end of a unit, or the issue thread is free for another."""
        moments = [self._flying[0][0]] if self._flying else []
        if self._issue_free > self._clock.now:
            moments.append(self._issue_free)
        return moments

    def _advance(self):
        """Replay everything up to now, in order of time."""
        now = self._clock.now
        while True:
            pick = max(self._issue_free, self._ends[0], self._asked)
            landed = self._flying[0][0] if self._flying else float("inf")
            if landed <= now and landed <= pick:
                self._land()
            elif pick <= now and self._take(pick):
                continue
            elif landed <= now:
                self._land()
            else:
                return

    def _take(self, pick):
        pieces = self._queue.take()
        if not pieces:
            return False
        costs = self._costs
        if self._batched:
            issued = pick + costs.batch_seconds + len(pieces) * costs.batch_transfer_seconds
        else:
            issued = pick + costs.issue_seconds
        for number, piece in enumerate(pieces, start=1):
            start = max(issued, self._link_free)
            self._link_free = start + costs.copy_seconds(piece.num_bytes)
            copy = Copy(start, self._link_free, piece.num_bytes)
            self._flying.append((self._link_free, piece, copy, number == len(pieces)))
        self._issue_free = self._link_free if costs.holds_issue_thread else issued
        self._ends.append(self._link_free)
        return True

    def _land(self):
        _, piece, copy, last = self._flying.popleft()
        ended = self._queue.moved(piece, copy)
        if last:
            self._queue.unit_ended()
        if ended:
            arrival: Arrival = self._queue.retire(piece.transfer)
            self._arrived.append(arrival)


class FakeWork(LayeredWork):
    """Lets the time of the cost model pass."""

    def __init__(self, clock, inputs, scenario, lookahead, *, block_size):
        self.num_layers = inputs.model.num_layers
        self._clock = clock
        self._model = inputs.costs
        self._top_k = inputs.model.top_k
        self._lookahead = lookahead
        self._block_size = block_size
        self._forward = None
        self._costs = None
        self._reused = None
        self.visits = []

    def draft(self, seats):
        self._clock.advance(self._model.draft_seconds(len(seats), self._block_size))

    def route(self, seats, exact_depth, num_layers):
        contexts = [(seat.num_rows, seat.context_tokens) for seat in seats]
        rows = sum(rows for rows, _ in contexts)
        self._clock.advance(self._model.route_seconds(rows, exact_depth, contexts))

    def begin(self, forward):
        rows = forward.rows
        self._forward = forward
        self._costs = ForwardCosts(
            self._model,
            rows.num_rows,
            rows.contexts,
            head_rows=rows.head_rows,
            top_k=self._top_k,
            lookahead=self._lookahead,
        )
        prompt = forward.prefill
        contexts = [] if prompt is None else [(prompt.num_rows, prompt.context_tokens)]
        rows_left = 0 if prompt is None else prompt.num_rows
        self._reused = self._costs.with_dense(self._model, rows_left, contexts)

    def dense(self, layer):
        costs = self._reused if layer < self._forward.reused_layers else self._costs
        self._clock.advance(costs.before_experts_seconds)

    def learn_routing(self, layer):
        self._clock.advance(self._costs.round_trip_seconds)

    def needed(self, layer):
        return self._forward.rows.needed[layer]

    def hits(self, layer, experts):
        mask = sum(1 << expert for expert in experts)
        self._clock.advance(self._costs.hits_seconds(mask, self._forward.rows.needed[layer]))

    def arrival(self, layer, expert, slot):
        self._clock.advance(self._costs.arrival_seconds(self._forward.rows.needed[layer]))

    def finish_layer(self, layer):
        self.visits.append((layer, self._forward.rows.needed[layer]))

    def finish_forward(self):
        self._clock.advance(self._costs.other_seconds)

    def forget(self, seq_id):
        pass

"""A world without a machine: it answers a scheduler's commands with random legal events and keeps the log."""

from __future__ import annotations

import random

from hideaway.sim.commands import Band, Cancel, Draft, Fetch, Forward, Idle, Promote, Route, Stream
from hideaway.sim.events import (
    DraftDone,
    ForwardDone,
    LayerDone,
    LayerRouted,
    Ready,
    RequestArrived,
    RouteDone,
    TransfersArrived,
    TransfersCancelled,
)
from hideaway.sim.masks import experts_of

TRANSFERS = (Fetch, Stream, Promote, Cancel)
LAST_ONLY = (Draft, Route, Forward, Idle)


class FakeWorld:
    """Runs requests to their end on nothing but random numbers, and checks what it is told on the way."""

    def __init__(self, scheduler, requests, *, rng: random.Random, num_experts: int):
        self.scheduler = scheduler
        self.rng = rng
        self.num_experts = num_experts
        self.residency = scheduler.cache.residency
        self.queued = [0] * self.residency.num_layers
        self.requests = list(enumerate(requests))
        self.committed = {seq_id: 0 for seq_id, _ in self.requests}
        self.seated = []
        self.log = []
        self.commands = []
        self.now = 0.0

    def tell(self, event):
        """Hand an event to the scheduler, check its answer and return it."""
        commands = self.scheduler.handle(event)
        self.log.append(event)
        self.commands.append(list(commands))
        assert all(isinstance(command, TRANSFERS) for command in commands[:-1])
        for command in commands:
            if isinstance(command, Fetch):
                assert (
                    command.experts & (self.queued[command.layer] | self.residency.resident[command.layer])
                    == 0
                )
                self.queued[command.layer] |= command.experts
            elif isinstance(command, Promote | Cancel):
                assert command.experts & ~self.queued[command.layer] == 0
        self.check()
        return commands

    def check(self):
        """No layer holds more than its slots, and what is in flight is exactly what was ordered."""
        for layer, slots in enumerate(self.residency.slots):
            resident, in_flight = self.residency.resident[layer], self.residency.in_flight[layer]
            assert resident & in_flight == 0
            assert (resident | in_flight).bit_count() <= slots
            assert in_flight == self.queued[layer]

    def some(self, mask):
        """Return a random part of a mask."""
        return sum(1 << expert for expert in experts_of(mask) if self.rng.random() < 0.5)

    def experts(self, most=4):
        """Return a random non-empty mask."""
        return sum(1 << expert for expert in set(self.rng.choices(range(self.num_experts), k=most)))

    def time(self):
        self.now += self.rng.random()
        return self.now

    def between(self):
        """Let requests arrive and prefetches land."""
        while self.requests and self.rng.random() < 0.4:
            seq_id, (prompt, output) = self.requests.pop(0)
            self.tell(RequestArrived(self.time(), seq_id, prompt, output))
        landing = [(layer, self.some(mask)) for layer, mask in enumerate(self.queued) if mask]
        landing = tuple((layer, mask) for layer, mask in landing if mask)
        if landing and self.rng.random() < 0.5:
            for layer, mask in landing:
                self.queued[layer] ^= mask
            self.tell(TransfersArrived(self.time(), landing))

    def run(self, most_forwards=2000):
        """Run until every request has all its tokens."""
        for _ in range(most_forwards):
            if not (self.requests or self.scheduler.batch.running or self.scheduler.batch.waiting):
                return self
            self.between()
            work = self.tell(Ready(self.time()))[-1]
            if isinstance(work, Draft):
                self.between()
                work = self.tell(DraftDone(self.time(), work.seq_ids))[-1]
            if isinstance(work, Route):
                self.between()
                layers = range(self.residency.num_layers)
                predicted = tuple(tuple(self.experts() for _ in layers) for _ in work.seq_ids)
                work = self.tell(RouteDone(self.time(), work.seq_ids, predicted))[-1]
            if isinstance(work, Forward):
                self.forward(work)
            else:
                assert isinstance(work, Idle)
                assert not self.scheduler.batch.running
        raise AssertionError(f"requests {self.requests} and {self.scheduler.batch.running} never finished")

    def forward(self, work):
        self.seated.append(tuple(seq_id for seq_id, _ in work.seats))
        assert work.seats or work.prefill
        lookahead = self.scheduler.cache.prefetch.lookahead
        num_layers = self.residency.num_layers
        for layer in range(num_layers):
            self.between()
            self.visit(layer, min(lookahead, num_layers - 1 - layer))
        self.between()
        running = self.scheduler.batch.running
        committed = []
        for seq_id, rows in work.seats:
            left = running[seq_id].output_tokens - running[seq_id].committed
            committed.append((seq_id, min(left, self.rng.randint(1, rows))))
        for seq_id, tokens in committed:
            self.committed[seq_id] += tokens
        prefilled = None
        if work.prefill is not None:
            seq_id, first, tokens = work.prefill
            prefilled = (seq_id, tokens)
            self.committed[seq_id] += first + tokens == running[seq_id].prompt_tokens
        rows = [tuple(self.experts() for _ in range(num_layers)) for _ in range(2)]
        commands = self.tell(ForwardDone(self.time(), tuple(committed), prefilled, *rows))
        assert all(isinstance(command, Fetch) for command in commands)

    def visit(self, layer, lookahead):
        needed = self.experts(6)
        ahead = tuple(self.experts() for _ in range(lookahead))
        before = self.residency.resident[layer]
        commands = self.tell(LayerRouted(self.time(), layer, needed, ahead))
        assert all(isinstance(command, TRANSFERS) for command in commands)
        streamed = 0
        for command in commands:
            if isinstance(command, Cancel):
                dropped = self.some(command.experts)
                if dropped:
                    self.queued[layer] ^= dropped
                    self.tell(TransfersCancelled(self.time(), layer, dropped))
            elif isinstance(command, Stream):
                streamed = command.experts
        landing = self.queued[layer] & needed
        urgent = sum(c.experts for c in commands if isinstance(c, Fetch) and c.band is Band.ON_DEMAND)
        assert needed == (needed & before) | streamed | landing
        assert urgent & ~needed == 0
        assert needed & before & ~self.residency.resident[layer] == 0, "a visit drops nothing that it reads"
        by_prefetch = self.some(landing & ~urgent)
        if by_prefetch:
            self.queued[layer] ^= by_prefetch
            self.tell(TransfersArrived(self.time(), ((layer, by_prefetch),)))
        self.queued[layer] &= ~landing
        self.tell(LayerDone(self.time(), layer, landing & ~by_prefetch))

"""The link once more, literally: one SimPy process issues, one copies, one reads the SSD; nothing is lazy.

The product's `Link` must give the same copies at the same times; it is tested against this for random orders.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import simpy

from hideaway.sim.costs import LinkCosts
from hideaway.sim.masks import experts_of
from hideaway.sim.world.copies import LinkOptions


@dataclass
class Order:
    """Experts of one layer that wait together; `moved` bytes of the first have crossed already."""

    layer: int
    experts: list[int]
    moved: int = 0


@dataclass
class EventLink:
    """Runs orders (at_seconds, verb, layer, mask, band) and keeps the whole log of copies."""

    costs: LinkCosts
    expert_bytes: int
    options: LinkOptions
    read_seconds: float | None = None
    cache_experts: int = 0
    log: list[tuple[int, int, float, float, int, int]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    def run(self, orders):
        """Return the log of (layer, expert mask, start, end, bytes, band), in order of start."""
        self.env = simpy.Environment()
        self.bands: list[list[Order]] = [[], [], []]
        self.on_device = 0
        self.changed = self.env.event()
        self.device = simpy.Store(self.env)
        self.ssd = simpy.Resource(self.env, capacity=1)
        self.page_cache: OrderedDict[tuple[int, int], None] = OrderedDict()
        self.env.process(self.host(orders))
        self.env.process(self.issue_thread())
        self.env.process(self.copy_engine())
        self.env.run()
        return self.log

    def wake(self):
        if not self.changed.triggered:
            self.changed.succeed()

    def host(self, orders):
        for at_seconds, verb, layer, mask, band in orders:
            yield self.env.timeout(at_seconds - self.env.now)
            if verb == "submit":
                self.bands[band].append(Order(layer, list(experts_of(mask))))
            elif verb == "withdraw":
                self.dropped.append(self.withdraw(layer, mask))
            else:
                self.promote(layer, mask)
            self.wake()

    def withdraw(self, layer, mask):
        """Take untouched copies out of the queues and return their mask."""
        taken = 0
        for band in self.bands:
            for order in band:
                for expert in list(order.experts):
                    untouched = order.moved == 0 or expert != order.experts[0]
                    if order.layer == layer and mask >> expert & 1 and untouched:
                        order.experts.remove(expert)
                        taken |= 1 << expert
        return taken

    def promote(self, layer, mask):
        for band in self.bands[1:]:
            for order in band:
                if order.layer == layer and order.moved and mask >> order.experts[0] & 1:
                    self.bands[0].append(Order(layer, [order.experts.pop(0)], order.moved))
                    order.moved = 0
        moved = self.withdraw(layer, mask)
        if moved:
            self.bands[0].append(Order(layer, list(experts_of(moved))))

    def head(self):
        """Return the most urgent order and its band, or None."""
        for band, orders in enumerate(self.bands):
            while orders and not orders[0].experts:
                orders.pop(0)
            if orders:
                return orders[0], band
        return None

    def take(self, order):
        """Take the next unit off an order: its experts, and the bytes of each copy."""
        if self.options.batched:
            experts, order.experts = order.experts, []
            return experts, self.expert_bytes
        chunk = self.options.chunk_bytes or self.expert_bytes
        size = min(chunk, self.expert_bytes - order.moved)
        order.moved += size
        expert = order.experts[0]
        if order.moved == self.expert_bytes:
            order.experts.pop(0)
            order.moved = 0
        return [expert], size

    def issue_thread(self):
        while True:
            while self.on_device >= self.options.submitted_depth or self.head() is None:
                self.changed = self.env.event()
                yield self.changed
            order, band = self.head()
            first_piece = order.moved == 0
            experts, size = self.take(order)
            self.on_device += 1
            reads = [self.env.process(self.read(order.layer, expert)) for expert in experts if first_piece]
            if self.options.batched:
                cost = self.costs.batch_seconds + len(experts) * self.costs.batch_transfer_seconds
            else:
                cost = self.costs.issue_seconds
            yield self.env.timeout(cost)
            done = self.env.event()
            self.device.put((order.layer, experts, size, band, reads, done))
            if self.costs.holds_issue_thread:
                yield done

    def read(self, layer, expert):
        """Bring an expert from the SSD into the page cache, if there is an SSD and it is not there."""
        if self.read_seconds is None:
            return
        if (layer, expert) in self.page_cache:
            self.page_cache.move_to_end((layer, expert))
            return
        self.page_cache[layer, expert] = None
        while len(self.page_cache) > self.cache_experts:
            self.page_cache.popitem(last=False)
        with self.ssd.request() as turn:
            yield turn
            yield self.env.timeout(self.read_seconds)

    def copy_engine(self):
        while True:
            layer, experts, size, band, reads, done = yield self.device.get()
            for index, expert in enumerate(experts):
                if reads:
                    yield reads[index]
                start = self.env.now
                yield self.env.timeout(self.costs.copy_seconds(size))
                self.log.append((layer, 1 << expert, start, self.env.now, size, band))
            self.on_device -= 1
            done.succeed()
            self.wake()

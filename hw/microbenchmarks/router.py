"""Routers: one after another on rows at hand, and the whole route pass over a drafted block."""

from __future__ import annotations

from itertools import cycle
from typing import ClassVar

from hideaway.hw.engine.products import product
from hideaway.hw.engine.work import Seat
from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.forwards import spread_ids
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES

_FLOPS_PER_WEIGHT = 2


class Router(Benchmark):
    """The routers of a visit: the layer's own and those looked ahead to."""

    name = "router"
    informs = ("router.launch_seconds", "memory.read_bytes_per_second", "compute.flops_per_second")
    axes: ClassVar = {"shape": "model", "rows": "rows", "routers": "layers whose router runs"}
    summary = "routers of a visit by rows and lookahead"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points by rows, with and without a look ahead."""
        most = min(2, self.subject.num_layers)
        wanted = (
            [(1, 1), (8, most)] if quick else [(n, r) for n in (1, 8, 64, 256) for r in sorted({1, most})]
        )
        return [{"shape": self.subject.name, "rows": rows, "routers": routers} for rows, routers in wanted]

    def bytes(self, axes: Axes) -> int:
        """Return the weights of the routers."""
        return whole(axes, "routers") * self._weights * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        return whole(axes, "routers") * whole(axes, "rows") * _FLOPS_PER_WEIGHT * self._weights

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the products of the rows with each router."""
        count = whole(axes, "routers")
        rows = rig.rows(whole(axes, "rows"))
        firsts = cycle(range(self.subject.num_layers - count + 1))
        current = [0]

        def set_up() -> None:
            current[0] = next(firsts)

        def run() -> None:
            for router in rig.trunk.routers(current[0], count):
                product(rows, router)
            rig.settle()

        whole_bytes = self.subject.num_layers * self._weights * FLOAT_BYTES
        return Operation(run, set_up, cycle_bytes=whole_bytes)

    @property
    def _weights(self) -> int:
        architecture = self.subject.architecture
        return architecture.experts.count * architecture.hidden_size


class Route(Router):
    """The route pass at exact depth 1: every layer's router over the block."""

    name = "route"
    axes: ClassVar = {
        "shape": "model",
        "sequences": "sequences",
        "rows_each": "rows of each",
        "layers": "layers",
    }
    summary = "the route pass over drafted blocks: every router once"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return a block, and several."""
        layers = self.subject.num_layers
        wanted = [(1, 8)] if quick else [(1, 8), (4, 8), (1, 16)]
        return [
            {"shape": self.subject.name, "sequences": sequences, "rows_each": rows, "layers": layers}
            for sequences, rows in wanted
        ]

    def bytes(self, axes: Axes) -> int:
        """Return the weights of all routers."""
        return whole(axes, "layers") * self._weights * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        rows = whole(axes, "sequences") * whole(axes, "rows_each")
        return whole(axes, "layers") * rows * _FLOPS_PER_WEIGHT * self._weights

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return the engine's own `route`."""
        rows = whole(axes, "rows_each")
        work = rig.work(spread_ids(1, 1, self.subject.spec.top_k))
        seats = tuple(Seat(number, rows, rows, 0) for number in range(whole(axes, "sequences")))
        return Operation(lambda: work.route(seats, 1, self.subject.num_layers), cycle_bytes=self.bytes(axes))

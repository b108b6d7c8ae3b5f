"""The head over the rows that need logits, and the small ends of visits and forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, whole
from hideaway.hw.microbenchmarks.forwards import forward_of, spread_ids
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.subject import FLOAT_BYTES

_FLOPS_PER_WEIGHT = 2


class Head(Benchmark):
    """Norm, head and argmax, as at the end of a forward."""

    name = "head"
    informs = ("memory.read_bytes_per_second", "compute.flops_per_second")
    axes: ClassVar = {"shape": "model", "rows": "rows that need logits", "vocabulary": "rows of the head"}
    summary = "head and argmax by rows"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return points by rows."""
        vocabulary = self.subject.architecture.vocab_size
        rows = (1, 8) if quick else (1, 4, 8, 16, 32, 64)
        return [{"shape": self.subject.name, "rows": count, "vocabulary": vocabulary} for count in rows]

    def bytes(self, axes: Axes) -> int:
        """Return the head's weights."""
        return self._weights * FLOAT_BYTES

    def flops(self, axes: Axes) -> int:
        """Return two operations a weight and row."""
        return whole(axes, "rows") * _FLOPS_PER_WEIGHT * self._weights

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return logits and what is chosen from them, on the host."""
        rows = rig.rows(whole(axes, "rows"))

        def run() -> None:
            rig.trunk.logits(rows).argmax(dim=1).cpu()

        return Operation(run, cycle_bytes=self.bytes(axes))

    @property
    def _weights(self) -> int:
        return self.subject.architecture.vocab_size * self.subject.architecture.hidden_size


class LayerEnd(Benchmark):
    """What is computed beside matrices: ids to the host, the sum of experts' outputs, rows grouped by expert."""

    name = "visit_ends"
    informs = ("host.round_trip_seconds", "compute.layer_launch_seconds")
    axes: ClassVar = {
        "shape": "model",
        "part": "ids: routed ids to the host; sum: experts' outputs added up; begin: rows grouped by expert",
        "rows": "rows of the forward",
        "layers": "layers with routed experts: begin groups the rows of all of them",
    }
    cache = "warm"
    summary = "the small ends of visits and forwards, by rows"

    def points(self, *, quick: bool) -> list[Axes]:
        """Return the parts by rows."""
        rows = (8,) if quick else (1, 8, 64, 256)
        layers = self.subject.num_layers
        return [
            {"shape": self.subject.name, "part": part, "rows": count, "layers": layers}
            for part in ("ids", "sum", "begin")
            for count in rows
        ]

    def bytes(self, axes: Axes) -> int:
        """Return the ids that are read, or the outputs."""
        choices = whole(axes, "rows") * self.subject.spec.top_k
        return choices * (self.subject.spec.hidden_size * FLOAT_BYTES if axes["part"] == "sum" else 8)

    def flops(self, axes: Axes) -> int | None:
        """Return the sum's operations."""
        if axes["part"] != "sum":
            return None
        spec = self.subject.spec
        return 2 * whole(axes, "rows") * spec.top_k * spec.hidden_size

    def prepare(self, rig: Rig, axes: Axes) -> Operation:
        """Return `learn_routing`, `finish_layer` or `begin` of the engine's work."""
        top_k = self.subject.spec.top_k
        work = rig.work(spread_ids(top_k, whole(axes, "rows"), top_k))
        work.dense(0)
        forward = forward_of(whole(axes, "rows"))
        parts: dict[str, Callable[[], None]] = {
            "ids": lambda: work.learn_routing(0),
            "sum": lambda: work.finish_layer(0),
            "begin": lambda: work.begin(forward),
        }
        return Operation(parts[str(axes["part"])])

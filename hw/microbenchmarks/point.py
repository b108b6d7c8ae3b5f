"""A prepared point, what was seen of it, and the series that this makes. `session.py` decides when it is sampled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hideaway.hw.microbenchmarks.benchmark import Axes, Benchmark, Operation, Readings
from hideaway.hw.microbenchmarks.stopping import Effort, WarmUp, has_converged
from hideaway.sim.inputs.measurements import ELAPSED, Discarded, Measurement


@dataclass(slots=True, eq=False)
class Point:
    """A prepared point. Changed by the session only.

    Attributes
    ----------
    samples : dict of str to list of (seconds, started)
        Undisturbed samples of each quantity.
    cost_seconds : float
        Of a visit, set-up and all, as lately seen.
    visits : int
        Runs, those of the warm-up included.
    """

    benchmark: Benchmark
    axes: Axes
    operation: Operation
    warm_up: WarmUp = field(default_factory=WarmUp)
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    discarded: dict[str, list[Discarded]] = field(default_factory=dict)
    cost_seconds: float = 0.0
    visits: int = 0

    def seconds(self) -> list[float]:
        """Return the undisturbed samples of the quantity that decides when to stop."""
        return [seconds for seconds, _ in self.samples.get(self.operation.primary, ())]

    def note_cost(self, seconds: float) -> None:
        """Take in what a visit took. Changes state."""
        self.visits += 1
        self.cost_seconds = seconds if self.visits <= 2 else 0.8 * self.cost_seconds + 0.2 * seconds

    def note(self, started: float, elapsed: float, readings: Readings, reason: str | None) -> None:
        """Take in a sample, as one that does not count where a reason is given. Changes state."""
        each = elapsed / self.operation.operations_per_sample
        whole = {ELAPSED: (each,)} if self.operation.primary == ELAPSED else {}
        for quantity, found in {**whole, **readings}.items():
            for seconds in found:
                if seconds <= 0:
                    continue  # two looks at a clock within its resolution say nothing
                if reason is None:
                    self.samples.setdefault(quantity, []).append((seconds, started))
                else:
                    self.discarded.setdefault(quantity, []).append(Discarded(seconds, started, reason))

    def series(self, effort: Effort, *, interrupted: bool) -> list[Measurement]:
        """Return the point's series, those without a sample left out.

        Where the undisturbed samples are fewer than every point should have, disturbed ones are kept as well.
        """
        quantities = sorted(
            self.samples.keys() | self.discarded.keys(), key=lambda name: (name != ELAPSED, name)
        )
        stop_reason = self._stop_reason(effort, interrupted)
        made = [self._one_series(quantity, stop_reason) for quantity in quantities]
        if len(self.seconds()) < effort.fewest:
            made = [_with_disturbed(series) for series in made]
        return [series for series in made if series.samples_seconds]

    def _one_series(self, quantity: str, stop_reason: str) -> Measurement:
        benchmark, axes, operation = self.benchmark, self.axes, self.operation
        samples, discarded = self.samples.get(quantity, []), self.discarded.get(quantity, [])
        whole = quantity == ELAPSED
        return Measurement(
            benchmark=benchmark.name,
            quantity=quantity,
            axes=dict(axes),
            bytes=benchmark.bytes(axes) if whole else operation.reading_bytes.get(quantity),
            flops=benchmark.flops(axes) if whole else None,
            samples_seconds=tuple(seconds for seconds, _ in samples),
            started_seconds=tuple(started for _, started in samples),
            discarded=len(discarded),
            discarded_samples=tuple(discarded),
            stop_reason=stop_reason,
            operations_per_sample=operation.operations_per_sample if whole else 1,
            informs=benchmark.informs,
            cache=benchmark.cache,
        )

    def _stop_reason(self, effort: Effort, interrupted: bool) -> str:
        samples = self.seconds()
        if has_converged(samples, effort):
            return "converged"
        if len(samples) >= effort.most:
            return "sample cap"
        return "interrupted" if interrupted else "time budget"


def _with_disturbed(series: Measurement) -> Measurement:
    return (
        replace(series.with_disturbed(), stop_reason="mostly disturbed") if series.num_disturbed else series
    )

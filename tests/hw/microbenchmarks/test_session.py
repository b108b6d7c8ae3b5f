"""The harness on a scripted clock: order, stopping, discarding, slices, and what it writes."""

from __future__ import annotations

import numpy as np
import pytest

from hideaway.hw.microbenchmarks.stopping import median_interval
from hideaway.sim.inputs.measurements import MeasurementFile, measurements_from
from tests.hw.microbenchmarks.scripted import EFFORT, ScriptedClock, ScriptedProbe, scripted_point, session_of


def file_of(session) -> MeasurementFile:
    """Return what a session holds, through the format and its schema."""
    file = MeasurementFile({"device": "scripted", "driver": None}, session.measurements())
    return measurements_from(file.to_dict(), "a test")


def only_series(session):
    (series,) = file_of(session).measurements
    return series


def test_a_steady_point_converges_with_the_fewest_samples_and_warm_up_is_discarded() -> None:
    clock = ScriptedClock()
    session = session_of([scripted_point(clock, [0.5, 0.01])], clock)
    assert session.run(60.0)
    series = only_series(session)
    assert series.samples_seconds == pytest.approx([0.01] * EFFORT.fewest)
    assert series.stop_reason == "converged"
    assert {sample.reason for sample in series.discarded_samples} == {"warm-up"}
    assert series.discarded_samples[0].seconds == pytest.approx(0.5)
    assert series.discarded == len(series.discarded_samples) >= 2
    assert series.bytes == 1000


def test_planted_durations_are_recovered_within_their_interval() -> None:
    rng = np.random.default_rng(3)
    clock = ScriptedClock()
    planted = {"fast": 2e-3, "slow": 9e-3}
    points = [
        scripted_point(clock, (median * rng.lognormal(sigma=0.05, size=500)).tolist(), name=name)
        for name, median in planted.items()
    ]
    session = session_of(points, clock)
    assert session.run(60.0)
    for name, median in planted.items():
        (series,) = file_of(session).series(name)
        low, high = median_interval(series.samples_seconds)
        assert low <= median <= high
        assert series.stop_reason == "converged"


def test_a_point_that_never_converges_ends_at_the_cap() -> None:
    clock = ScriptedClock()
    session = session_of([scripted_point(clock, [0.01, 0.02] * 500)], clock)
    assert session.run(60.0)
    series = only_series(session)
    assert len(series.samples_seconds) == EFFORT.most
    assert series.stop_reason == "sample cap"


def test_the_time_budget_ends_what_has_not_converged_and_is_not_overrun() -> None:
    clock = ScriptedClock()
    session = session_of([scripted_point(clock, [1.0, 2.0] * 500)], clock)
    begin = clock.now()
    assert not session.run(20.0)
    assert clock.now() - begin <= 20.0
    series = only_series(session)
    assert series.stop_reason == "time budget"
    assert 1 <= len(series.samples_seconds) < EFFORT.most


def test_every_point_is_sampled_at_least_once_however_short_the_time() -> None:
    clock = ScriptedClock()
    points = [scripted_point(clock, [3.0], name=name) for name in "abc"]
    session = session_of(points, clock)
    session.run(0.5)
    assert [len(series.samples_seconds) for series in file_of(session).measurements] == [1, 1, 1]


def visits(seed) -> list[str]:
    clock, log = ScriptedClock(), []
    points = [scripted_point(clock, [0.01, 0.013] * 500, name=name, log=log) for name in "abcd"]
    session_of(points, clock, seed=seed).run(60.0)
    return log


def test_the_order_is_random_but_the_seeds_alone() -> None:
    assert visits(1) == visits(1)
    assert visits(1) != visits(2)


def test_every_round_visits_every_point_once() -> None:
    log = visits(1)[-4 * 20 :]
    rounds = [log[first : first + 4] for first in range(0, len(log), 4)]
    assert all(sorted(order) == list("abcd") for order in rounds)
    assert len({tuple(order) for order in rounds}) > 5


def test_samples_of_a_converged_point_span_the_whole_time() -> None:
    clock = ScriptedClock()
    steady = scripted_point(clock, [0.01], name="steady")
    unsteady = scripted_point(clock, [0.01, 0.03] * 500, name="unsteady")
    session = session_of([steady, unsteady], clock)
    session.run(60.0)
    (first,) = file_of(session).series("steady")
    (last,) = file_of(session).series("unsteady")
    assert len(first.samples_seconds) < len(last.samples_seconds)
    assert first.started_seconds[-1] > 0.8 * last.started_seconds[-1]
    assert list(first.started_seconds) == sorted(first.started_seconds)


def test_slices_continue_one_measurement_and_show_a_drift() -> None:
    clock = ScriptedClock()
    durations = [0.01] * 400
    session = session_of([scripted_point(clock, durations)], clock)
    session.run(1.0, past_convergence=True)
    first = len(only_series(session).samples_seconds)
    clock.advance(100.0)
    durations[:] = [0.02] * 400  # the script reads the list: the machine has slowed down meanwhile
    session.run(1.0, past_convergence=True)
    series = only_series(session)
    assert len(series.samples_seconds) > first > EFFORT.fewest
    assert np.median(series.samples_seconds[:first]) == pytest.approx(0.01)
    assert np.median(series.samples_seconds[first:]) == pytest.approx(0.02)
    assert series.started_seconds[first] - series.started_seconds[first - 1] > 100.0


def test_short_slices_visit_all_points_alike() -> None:
    clock, log = ScriptedClock(), []
    points = [scripted_point(clock, [0.01], name=name, log=log) for name in "abcdef"]
    points.append(scripted_point(clock, [0.05], name="long", log=log))
    session = session_of(points, clock)
    session.run(0.1)
    log.clear()
    for _ in range(70):
        session.run(0.035, past_convergence=True)
    counts = {name: log.count(name) for name in {*"abcdef", "long"}}
    assert max(counts.values()) - min(counts.values()) <= 2
    assert min(counts.values()) > 10


@pytest.mark.parametrize(("disturb", "reason"), [
    (lambda probe: setattr(probe, "waited", probe.waited + 0.002), "waited for a processor"),
    (lambda probe: (setattr(probe, "waited", probe.waited + 0.0004), setattr(probe, "switches", probe.switches + 1)),
     "preempted"),
    (lambda probe: setattr(probe, "idle", probe.idle + 0.008), "did not compute"),
    (lambda probe: setattr(probe, "stolen", probe.stolen + 0.01), "stolen by the host"),
])  # fmt: skip
def test_disturbed_samples_are_left_out_counted_and_kept(disturb, reason) -> None:
    clock = ScriptedClock()
    probe = ScriptedProbe(clock)
    number = [0]

    def during():
        number[0] += 1
        if number[0] % 3 == 0:
            disturb(probe)

    session = session_of([scripted_point(clock, [0.01], during=during)], clock, probe=probe)
    assert session.run(60.0)
    series = only_series(session)
    assert series.discard_reasons()[reason] >= 3
    assert len(series.samples_seconds) >= EFFORT.fewest
    assert series.discarded == len(series.discarded_samples)


def test_a_thread_that_waits_is_not_disturbed_by_waiting() -> None:
    clock = ScriptedClock()
    probe = ScriptedProbe(clock)
    point = scripted_point(
        clock, [0.01], activity="waits", during=lambda: setattr(probe, "idle", probe.idle + 0.01)
    )
    session = session_of([point], clock, probe=probe)
    assert session.run(60.0)
    assert set(only_series(session).discard_reasons()) == {"warm-up"}


def test_where_nothing_is_undisturbed_the_disturbed_samples_are_kept_and_said_to_be() -> None:
    clock = ScriptedClock()
    probe = ScriptedProbe(clock)
    point = scripted_point(clock, [0.01], during=lambda: setattr(probe, "waited", probe.waited + 0.005))
    session = session_of([point], clock, probe=probe)
    assert not session.run(1.0)
    series = only_series(session)
    assert series.stop_reason == "mostly disturbed"
    assert len(series.samples_seconds) > 10
    assert set(series.discard_reasons()) == {"warm-up"}


def test_a_dropped_clock_discards_the_whole_round() -> None:
    clock = ScriptedClock()
    probe = ScriptedProbe(clock)
    session = session_of([scripted_point(clock, [0.01, 0.012] * 300)], clock, probe=probe)
    session.run(0.3, past_convergence=True)
    probe.slow = True
    session.run(0.1, past_convergence=True)
    assert only_series(session).discard_reasons()["clock dropped"] >= 5


def test_a_flawed_sample_never_counts() -> None:
    clock = ScriptedClock()
    number = [0]

    def flaw():
        number[0] += 1
        return "link ran dry" if number[0] % 2 else None

    session = session_of([scripted_point(clock, [0.01], flaw=flaw)], clock)
    assert session.run(60.0)
    assert only_series(session).discard_reasons()["link ran dry"] >= 5


def test_readings_become_series_of_their_own() -> None:
    clock = ScriptedClock()
    point = scripted_point(
        clock, [0.01], readings=lambda: {"copy": (0.004, 0.005), "none": (0.0,)}, reading_bytes={"copy": 500}
    )
    session = session_of([point], clock)
    session.run(60.0)
    file = file_of(session)
    (copies,) = file.series("scripted", "copy")
    (whole,) = file.series("scripted")
    assert copies.bytes == 500
    assert len(copies.samples_seconds) == 2 * len(whole.samples_seconds)
    assert not file.series("scripted", "none")


def test_a_primary_reading_replaces_the_time_of_the_run() -> None:
    clock = ScriptedClock()
    point = scripted_point(clock, [0.5], readings=lambda: {"inner": (0.004,)}, primary="inner")
    session = session_of([point], clock)
    assert session.run(60.0)
    assert only_series(session).quantity == "inner"


def test_the_mean_of_repeated_operations_is_kept() -> None:
    clock = ScriptedClock()
    session = session_of([scripted_point(clock, [0.01], operations_per_sample=100)], clock)
    session.run(60.0)
    series = only_series(session)
    assert series.samples_seconds[0] == pytest.approx(1e-4)
    assert series.operations_per_sample == 100


@pytest.mark.parametrize(("cycle_bytes", "emptied"), [(None, False), (1999, True), (2000, False)])
def test_the_cache_is_emptied_where_the_working_set_does_not_do_it(cycle_bytes, emptied) -> None:
    clock, calls = ScriptedClock(), []
    point = scripted_point(clock, [0.01], cycle_bytes=cycle_bytes)
    session = session_of([point], clock, empty_cache=lambda: calls.append(1), cache_bytes=1000)
    session.run(60.0)
    assert bool(calls) is emptied
    assert len(calls) in (0, point.visits)


def test_an_interrupt_leaves_what_was_sampled_and_says_so() -> None:
    clock = ScriptedClock()
    number = [0]

    def during():
        number[0] += 1
        if number[0] == 20:
            raise KeyboardInterrupt

    session = session_of([scripted_point(clock, [0.01, 0.02] * 100, during=during)], clock)
    with pytest.raises(KeyboardInterrupt):
        session.run(60.0)
    session.interrupted = True
    series = only_series(session)
    assert series.stop_reason == "interrupted"
    assert 1 <= len(series.samples_seconds) < 20

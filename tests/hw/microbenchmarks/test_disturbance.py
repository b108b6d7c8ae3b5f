"""What counts as a disturbance, and that the system's own counters move."""

from __future__ import annotations

import time

import pytest

from hideaway.hw.microbenchmarks.disturbance import Reading, SystemProbe, clock_mhz, disturbance

START = Reading(cpu_seconds=5.0, waited_seconds=1.0, involuntary_switches=7, stolen_seconds=2.0)


def after(cpu=0.01, waited=0.0, switches=0, stolen=0.0) -> Reading:
    return Reading(5.0 + cpu, 1.0 + waited, 7 + switches, 2.0 + stolen)


@pytest.mark.parametrize(("reading", "reason"), [
    (after(), None),
    (after(switches=3), None),
    (after(waited=0.0004), None),
    (after(waited=0.0004, switches=1), "preempted"),
    (after(waited=0.0006), "waited for a processor"),
    (after(cpu=0.004), "did not compute"),
    (after(cpu=0.006), None),
    (after(stolen=0.01), "stolen by the host"),
])  # fmt: skip
def test_a_sample_of_ten_milliseconds(reading, reason) -> None:
    assert disturbance(START, reading, 0.01, computes=True) == reason


def test_one_that_waits_is_disturbed_by_the_host_alone() -> None:
    assert disturbance(START, after(cpu=0.0, waited=0.01, switches=5), 0.01, computes=False) is None
    assert disturbance(START, after(stolen=0.01), 0.01, computes=False) == "stolen by the host"


def test_what_the_host_takes_of_a_long_sample_is_measured_against_its_length() -> None:
    assert disturbance(START, after(cpu=1.0, stolen=0.03), 1.0, computes=True) is None


def test_the_system_counts_processor_time_and_closing_twice_does_nothing() -> None:
    probe = SystemProbe()
    before = probe.read()
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    found = probe.read()
    assert found.cpu_seconds - before.cpu_seconds >= 0.02
    assert found.waited_seconds >= before.waited_seconds
    assert found.stolen_seconds >= before.stolen_seconds
    assert set(probe.facts()) == {"waiting_for_a_processor", "preemption", "stolen_by_the_host", "clock"}
    probe.close()
    probe.close()
    assert probe.read().waited_seconds == 0


def test_a_clock_that_falls_behind_the_highest_seen_has_dropped() -> None:
    mhz = [2000.0]
    probe = SystemProbe(lambda: mhz[0])
    assert not probe.clock_dropped()
    mhz[0] = 1900.0
    assert not probe.clock_dropped()
    mhz[0] = 1700.0
    assert probe.clock_dropped()
    probe.close()


def test_the_clock_is_a_positive_number_or_not_stated() -> None:
    mhz = clock_mhz()
    assert mhz is None or mhz > 0

"""Measurement files: written and read back, refused where they contradict themselves, merged for one machine only."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.measurement_merge import merge_measurements
from hideaway.sim.inputs.measurements import (
    Discarded,
    Measurement,
    MeasurementFile,
    measurements_from,
    read_measurements,
)

ENVIRONMENT = {
    "device": "disk (ext4), a processor",
    "driver": "Linux 6.1",
    "clocks_mhz": {"processor": 2400.0},
    "threads": 2,
    "link": {"kind": "disk", "direct": True},
    "expert_kernel": None,
    "started_unix_seconds": 1000.0,
    "interrupted": False,
}
SERIES = Measurement(
    benchmark="experts",
    axes={"shape": "small", "rows_each": 4},
    samples_seconds=(0.001, 0.0011),
    started_seconds=(0.5, 1.5),
    stop_reason="converged",
    bytes=4096,
    flops=123,
    discarded=3,
    discarded_samples=(Discarded(0.01, 0.1, "preempted"),),
    operations_per_sample=2,
    informs=("expert.launch_seconds",),
    cache="cold",
)


def file_of(*series, **environment) -> MeasurementFile:
    return MeasurementFile({**ENVIRONMENT, **environment}, series or (SERIES,))


def test_a_file_is_read_back_as_it_was_written(tmp_path) -> None:
    path = tmp_path / "M.json"
    copies = Measurement(
        benchmark="link",
        quantity="copy",
        axes={"batched": True},
        samples_seconds=(0.1,),
        stop_reason="time budget",
    )
    written = file_of(SERIES, copies)
    written.write(path)
    assert read_measurements(path) == written
    assert json.loads(path.read_text())["format"] == "hideaway-measurement"
    assert read_measurements(path).series("experts", rows_each=4) == (SERIES,)
    assert read_measurements(path).series("link") == ()
    assert read_measurements(path).series("link", "copy") == (copies,)


def test_a_file_without_series_is_whole(tmp_path) -> None:
    MeasurementFile(ENVIRONMENT).write(tmp_path / "M.json")
    assert read_measurements(tmp_path / "M.json").measurements == ()


def changed(**values) -> dict:
    value = copy.deepcopy(file_of().to_dict())
    value["measurements"][0].update(values)
    return value


@pytest.mark.parametrize(("value", "sentence"), [
    (changed(started_seconds=[0.5]), "has 2 samples but 1 times at which they started"),
    (changed(discarded=0), "lists 1 discarded samples but counts 0"),
    (changed(samples_seconds=[]), r"samples_seconds"),
    (changed(samples_seconds=[0.1, -1]), r"samples_seconds\[1\] is -1"),
    (changed(cache="lukewarm"), "must be one of cold, warm, arrived"),
    (changed(speed=3), "unknown key 'speed'"),
    ({**changed(), "version": 2}, "version"),
    ({**changed(), "measurements": changed()["measurements"] * 2}, "two series of experts"),
])  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused(value, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        measurements_from(value, "a file")


def test_a_file_that_is_no_json_is_refused(tmp_path) -> None:
    (tmp_path / "M.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_measurements(tmp_path / "M.json")


def test_disturbed_samples_can_be_taken_back_in_order_of_time() -> None:
    assert SERIES.num_disturbed == 1
    back = SERIES.with_disturbed()
    assert back.samples_seconds == (0.01, 0.001, 0.0011)
    assert back.started_seconds == (0.1, 0.5, 1.5)
    assert back.discarded == 2
    assert back.with_disturbed() == back
    assert file_of().disturbed_share == pytest.approx(1 / 3)
    assert file_of().with_disturbed().measurements == (back,)
    assert file_of(replace(back, stop_reason="mostly disturbed")).disturbed_share == 1
    assert MeasurementFile(ENVIRONMENT).disturbed_share == 0


def test_a_faulty_sample_is_never_taken_back() -> None:
    warming = replace(SERIES, discarded_samples=(Discarded(0.01, 0.1, "warm-up"),))
    assert warming.with_disturbed() == warming


def test_files_of_one_machine_are_joined_and_their_times_count_from_the_earliest() -> None:
    other = Measurement(benchmark="head", axes={}, samples_seconds=(1.0,), stop_reason="time budget")
    late = file_of(SERIES, other, started_unix_seconds=1060.0, interrupted=True)
    merged = merge_measurements([file_of(), late])
    joined, alone = merged.measurements
    assert joined.samples_seconds == SERIES.samples_seconds * 2
    assert joined.started_seconds == (0.5, 1.5, 60.5, 61.5)
    assert [sample.started_seconds for sample in joined.discarded_samples] == [0.1, 60.1]
    assert joined.discarded == 6
    assert alone == other
    assert merged.interrupted
    assert measurements_from(merged.to_dict(), "merged") == merged


def test_times_are_dropped_where_a_file_does_not_say_when_it_began() -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "started_unix_seconds"}
    merged = merge_measurements([file_of(), MeasurementFile(environment, (SERIES,))])
    assert merged.measurements[0].started_seconds == ()


@pytest.mark.parametrize(("environment", "sentence"), [
    ({"device": "another"}, "different machines cannot be merged: device is"),
    ({"driver": "Linux 6.2"}, "driver is"),
    ({"link": {"kind": "disk", "direct": False}}, "link is"),
    ({"threads": 1}, "threads is 2 in one and 1 in another"),
    ({"clocks_mhz": {"processor": 2500.0}}, "different clocks cannot be merged: processor is 2400.0 MHz"),
    ({"clocks_mhz": {}}, "different clocks"),
])  # fmt: skip
def test_files_of_different_machines_are_refused(environment, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        merge_measurements([file_of(), file_of(**environment)])


def test_what_a_file_does_not_know_is_no_difference() -> None:
    known = file_of(expert_kernel="avx2", link={"kind": "disk"}, file_system="ext4", model="another")
    merged = merge_measurements([file_of(model="one"), known])
    assert len(merged.measurements) == 1
    assert merged.environment["expert_kernel"] == "avx2"
    assert merged.environment["link"] == ENVIRONMENT["link"]
    assert "model" not in merged.environment


def test_series_that_moved_different_bytes_are_refused() -> None:
    other = Measurement(
        benchmark="experts", axes=SERIES.axes, samples_seconds=(1.0,), stop_reason="converged", bytes=1
    )
    with pytest.raises(InputError, match="bytes of experts"):
        merge_measurements([file_of(), file_of(other)])


def test_nothing_to_merge_is_refused() -> None:
    with pytest.raises(InputError, match="no measurements to merge"):
        merge_measurements([])

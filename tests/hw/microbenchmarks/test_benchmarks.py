"""The real benchmarks on a model so small that each takes milliseconds: what they declare, and that they run."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hideaway.hw.engine.open_device import DeviceOptions
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.microbenchmarks.benchmark import Benchmark, Operation
from hideaway.hw.microbenchmarks.catalogue import all_benchmarks, chosen_benchmarks
from hideaway.hw.microbenchmarks.forwards import spread_ids
from hideaway.hw.microbenchmarks.measure import Measuring, measure
from hideaway.hw.microbenchmarks.plan import Plan, PlannedPoint, left_seconds, make_plan, opening_seconds
from hideaway.hw.microbenchmarks.rig import Rig
from hideaway.hw.microbenchmarks.stopping import QUICK
from hideaway.hw.microbenchmarks.subject import check_store, make_subject
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.measurement_merge import merge_measurements
from hideaway.sim.inputs.measurements import measurements_from
from hideaway.sim.inputs.models import save_architecture
from hideaway.sim.world.copies import LinkOptions
from tests.hw.engine.small_shape import GROUPED, LATENT

CACHE_BYTES = 65536


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("microbenchmarks")
    save_architecture(folder / "model.json", GROUPED)
    save_architecture(folder / "latent.json", LATENT)
    pack_experts(SyntheticExperts(str(folder / "model.json"), seed=0), folder / "store", workers=1)
    return folder


def subject_in(folder, device="disk", name="model.json"):
    return make_subject(str(folder / name), None, device, drafter_parameters=20_000, cache_bytes=CACHE_BYTES)


def rig_in(folder, device="disk", name="model.json"):
    options = DeviceOptions(device, 1, 1e9 if device == "paced-memory" else None)
    store = ExpertStore(folder / "store") if name == "model.json" else None
    return Rig(subject_in(folder, device, name), options, store, seed=3)


@pytest.mark.parametrize("device", ["disk", "paced-memory"])
def test_every_benchmark_runs_and_writes_a_valid_measurement(folder, device) -> None:
    rig = rig_in(folder, device)
    names = [name for name in all_benchmarks(rig.subject) if name != "memory"]
    plan = make_plan(chosen_benchmarks(rig.subject, names), quick=True, seconds=3.0)
    try:
        file = measure(plan, rig, seed=1, version="test", facts={"arguments": {"quick": True}})
    finally:
        rig.close()
    again = measurements_from(file.to_dict(), "the file")
    assert {series.benchmark for series in again.measurements} == set(plan.benchmark_names)
    for series in again.measurements:
        assert len(series.started_seconds) == len(series.samples_seconds) >= 1
        assert series.cache in ("cold", "warm", "arrived")
    environment = again.environment
    assert environment["link"]["kind"] == {"disk": "disk", "paced-memory": "emulated link"}[device]
    assert environment["expert_kernel"] in ("avx2", "generic", "torch")
    assert str(folder) not in str(file.to_dict())
    assert {"copy", "submit", "wake"} <= {series.quantity for series in again.measurements}


@pytest.mark.parametrize("device", ["disk", "paced-memory"])
def test_a_file_without_experts_is_of_the_same_machine_as_one_with_them(folder, device) -> None:
    files = []
    for name in ("timer", "issue"):
        rig = rig_in(folder, device)
        plan = make_plan(chosen_benchmarks(rig.subject, [name]), quick=True, seconds=0.4)
        try:
            files.append(measure(plan, rig, seed=1, version="test"))
        finally:
            rig.close()
    merged = merge_measurements(files)
    assert {series.benchmark for series in merged.measurements} == {"timer", "issue"}
    assert merged.environment["link"]["kind"] == files[1].environment["link"]["kind"]


def test_latent_attention_is_measured_too(folder) -> None:
    rig = rig_in(folder, name="latent.json")
    plan = make_plan(chosen_benchmarks(rig.subject, ["attention", "dense"]), quick=True, seconds=1.0)
    file = measure(plan, rig, seed=1, version="test")
    assert {series.axes["layer_kind"] for series in file.measurements} == {"mla"}


def test_a_planted_delay_is_never_measured_shorter(folder) -> None:
    class Sleeper(Benchmark):
        name = "sleeper"
        summary = "sleeps"
        axes = {"seconds": "slept"}  # noqa: RUF012

        def points(self, *, quick):
            return [{"seconds": 0.002}, {"seconds": 0.006}]

        def prepare(self, rig, axes):
            return Operation(lambda: time.sleep(axes["seconds"]), activity="waits")

    rig = rig_in(folder)
    plan = make_plan([Sleeper(rig.subject)], quick=True, seconds=1.0)
    short, long = measure(plan, rig, seed=1, version="test").measurements
    assert min(short.samples_seconds) >= 0.002
    assert np.median(long.samples_seconds) - np.median(short.samples_seconds) > 0


def every_sample(series) -> set[tuple[float, float]]:
    """Return start and length of every sample, the discarded ones too."""
    kept = set(zip(series.started_seconds, series.samples_seconds, strict=True))
    return kept | {(sample.started_seconds, sample.seconds) for sample in series.discarded_samples}


def test_slices_append_to_one_measurement(folder) -> None:
    rig = rig_in(folder)
    plan = make_plan(chosen_benchmarks(rig.subject, ["timer", "router"]), quick=True)
    with Measuring(plan, rig, seed=1, version="test") as measuring:
        measuring.run(0.3, past_convergence=True)
        first = measuring.file()
        measuring.run(0.3, past_convergence=True)
        second = measuring.file()
    for before, after in zip(first.measurements, second.measurements, strict=True):
        assert after.key == before.key
        assert every_sample(before) < every_sample(after)
    assert second.environment["slices"] == 2


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", ["Qwen3-30B-A3B", "gpt-oss-20b"])
def test_declared_bytes_and_operations_of_experts_and_heads(shape, full) -> None:
    subject = make_subject(shape, 2, "disk")
    every = all_benchmarks(subject)
    layout = ExpertLayout.of(subject.spec)
    hidden, inner = layout.hidden_size, layout.intermediate_size
    for axes in every["experts"].points(quick=not full):
        assert every["experts"].bytes(axes) == axes["experts"] * subject.spec.expert_bytes
        assert every["experts"].flops(axes) == axes["experts"] * axes["rows_each"] * 6 * hidden * inner
    for axes in every["head"].points(quick=not full):
        assert every["head"].bytes(axes) == axes["vocabulary"] * hidden * 4
    for axes in every["link"].points(quick=not full):
        assert every["link"].bytes(axes) == axes["transfers"] * axes["transfer_bytes"]
    assert not every["cuda_copy"].points(quick=not full)


def test_declared_bytes_of_attention_are_those_of_its_tensors(folder) -> None:
    rig = rig_in(folder)
    attention = all_benchmarks(rig.subject)["attention"]
    (axes,) = [point for point in attention.points(quick=True)
               if point["layer_kind"] == "full" and point["sequences"] == 4]  # fmt: skip
    layer = rig.layers["full"][0][1]
    weights = [*layer.attention._inputs, layer.attention._output]
    tokens = axes["context_tokens"] - 1 + axes["rows_each"]
    cached = 4 * 2 * GROUPED.grouped_attention.num_kv_heads * GROUPED.grouped_attention.head_dim * tokens * 4
    assert attention.bytes(axes) == sum(weight.nbytes for weight in weights) + cached


def test_a_sliding_layer_reads_its_window(folder) -> None:
    subject = subject_in(folder)
    attention = all_benchmarks(subject)["attention"]
    by_kind = {
        point["layer_kind"]: attention.bytes(point)
        for point in attention.points(quick=True)
        if point["context_tokens"] == 512 and point["sequences"] == 1
    }
    assert by_kind["full"] - by_kind["sliding"] == (519 - 15) * 2 * 2 * 16 * 4


def test_every_point_of_a_cuda_device_is_declared_without_one() -> None:
    copies = all_benchmarks(make_subject("gpt-oss-20b", 2, "cuda"))["cuda_copy"]
    points = copies.points(quick=False)
    assert {(point["direction"], point["memory"]) for point in points} == {
        (direction, memory) for direction in ("to_device", "to_host") for memory in ("pinned", "pageable")
    }
    assert all(copies.bytes(point) > 0 for point in points)


@pytest.mark.parametrize(
    ("experts", "rows", "top_k"), [(1, 1, 4), (3, 5, 4), (8, 1, 4), (8, 3, 4), (7, 2, 3), (4, 4, 4)]
)
def test_rows_are_spread_so_that_every_expert_serves_as_many(experts, rows, top_k) -> None:
    ids = spread_ids(experts, rows, top_k)
    chosen = ids[ids >= 0]
    assert np.bincount(chosen, minlength=experts).tolist() == [rows] * experts
    assert ids.shape[1] == top_k
    for row in ids:
        row = row[row >= 0]
        assert len(set(row.tolist())) == len(row)


def test_experts_compute_the_rows_that_the_routing_sends_them(folder) -> None:
    rig = rig_in(folder)
    try:
        work = rig.work(spread_ids(2, 3, 2))
        with torch.inference_mode():
            work.dense(0)
            before = work.rows.clone()
            work.hits(0, {0: 0, 1: 1})
            work.finish_layer(0)
        assert not torch.equal(work.rows, before)
    finally:
        rig.close()


def test_a_plan_says_what_it_will_take_and_leaves_time_to_sample() -> None:
    subject = make_subject("gpt-oss-20b", 2, "disk")
    quick, full = (make_plan(chosen_benchmarks(subject, None), quick=quick) for quick in (True, False))
    assert len(full.points) > len(quick.points) > 20
    assert 0 < quick.sampling_seconds() <= quick.seconds < 60
    assert full.seconds < 600
    assert opening_seconds(subject, store_is_there=False) > opening_seconds(subject, store_is_there=True)
    assert left_seconds(quick, 20.0) == pytest.approx(quick.seconds - 21.5)
    assert left_seconds(quick, 1000.0) > 0


def test_a_plan_of_no_point_is_refused() -> None:
    subject = make_subject("gpt-oss-20b", 2, "disk")
    with pytest.raises(InputError, match="cuda_copy has no point on this device"):
        make_plan(chosen_benchmarks(subject, ["cuda_copy"]), quick=True)


def test_both_sides_of_a_contention_pair_count_alike(folder) -> None:
    rig = rig_in(folder)
    contention = all_benchmarks(rig.subject)["contention"]
    try:
        with torch.inference_mode():
            operations = {
                (axes["compute"], axes["link"]): contention.prepare(rig, axes)
                for axes in contention.points(quick=True)
            }
        assert set(operations) == {
            (compute, link) for compute in ("experts-1", "attention") for link in ("idle", "busy")
        } | {("none", "busy")}
        assert {operation.activity for operation in operations.values()} == {"waits"}
        for compute in ("experts-1", "attention"):
            idle, busy = operations[compute, "idle"], operations[compute, "busy"]
            assert idle.cycle_bytes == busy.cycle_bytes
    finally:
        rig.close()


def test_a_link_that_ends_before_the_computation_makes_the_sample_faulty(folder) -> None:
    rig = rig_in(folder)
    contention = all_benchmarks(rig.subject)["contention"]
    (axes,) = [axes for axes in contention.points(quick=True)
               if (axes["compute"], axes["link"]) == ("experts-1", "busy")]  # fmt: skip
    try:
        with torch.inference_mode():
            operation = contention.prepare(rig, axes)
            operation.set_up()
            while rig.link(LinkOptions(), use="beside compute").device.outstanding():
                time.sleep(0.001)
            operation.run()
            assert operation.flaw() == "link ran dry"
            operation.settle()
            assert operation.readings()["copy"]
    finally:
        rig.close()


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(InputError, match="there is no benchmark 'speed'; the benchmarks are timer"):
        chosen_benchmarks(make_subject("gpt-oss-20b", 2, "disk"), ["speed"])


def test_a_store_of_another_shape_is_refused(folder) -> None:
    rig = rig_in(folder)
    with pytest.raises(InputError, match="pack one of this shape"):
        check_store(ExpertStore(folder / "store"), make_subject("gpt-oss-20b", 2, "disk"))
    check_store(ExpertStore(folder / "store"), rig.subject)


def test_planned_points_are_what_effort_says() -> None:
    subject = make_subject("gpt-oss-20b", 2, "disk")
    head = all_benchmarks(subject)["head"]
    points = tuple(PlannedPoint(head, axes) for axes in head.points(quick=True))
    assert Plan(points, QUICK, 5.0).benchmark_names == ("head",)

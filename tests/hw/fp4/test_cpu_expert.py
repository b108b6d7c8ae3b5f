"""The CPU path against the float64 reference: every way of computing, shape, format and number of rows."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hideaway.hw.fp4.build import KernelBuildError  # noqa: E402
from hideaway.hw.fp4.compiled_kernel import ExpertShape, load_kernel  # noqa: E402
from hideaway.hw.fp4.cpu_expert import CpuExpert, SlowExpertWarning  # noqa: E402
from hideaway.hw.fp4.crossover import Crossover, measured_crossover  # noqa: E402
from hideaway.hw.fp4.expert_weights import part_views, unpack_expert  # noqa: E402
from hideaway.hw.fp4.kernel_error import output_error_deviation  # noqa: E402
from hideaway.hw.fp4.layouts import ExpertLayout  # noqa: E402
from hideaway.hw.fp4.swiglu import swiglu_expert  # noqa: E402
from hideaway.sim.errors import InputError  # noqa: E402
from tests.hw.small_experts import KINDS, WIDTHS, expert_of, layout_of, rows_of  # noqa: E402

SETTINGS = {
    "few": {"crossover": Crossover(1000)},
    "panel": {"crossover": Crossover(0)},
    "dense-float32": {"crossover": Crossover(0, 1)},
    "dense-bfloat16": {"crossover": Crossover(0, 1, "bfloat16")},
}
EIGHT_DEVIATIONS = 8.0  # of a normal error: exceeded once in 10^15


@pytest.fixture(scope="module")
def compiled() -> None:
    try:
        load_kernel(1)
    except KernelBuildError as error:
        pytest.skip(f"no compiled kernel here: {error}")


@pytest.fixture
def two_torch_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def reference(layout: ExpertLayout, expert: np.ndarray, rows: torch.Tensor) -> np.ndarray:
    return swiglu_expert(unpack_expert(layout, expert), rows.numpy(), layout.swiglu)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("hidden", "inner"), WIDTHS)
@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_outputs_differ_from_float64_by_rounding_as_predicted(
    expert_format: str, swiglu: str, hidden: int, inner: int
) -> None:
    layout = layout_of(hidden, inner, expert_format, swiglu)
    expert = expert_of(layout)
    rows = rows_of(layout, 67)
    exact = reference(layout, expert, rows)
    for way, settings in SETTINGS.items():
        computes = CpuExpert(layout, threads=2, compiled=True, **settings)
        deviation = output_error_deviation(layout, expert, rows.numpy(), way)
        for count in (1, 2, 3, 4, 5, 67):
            outputs = computes.forward(expert, rows[:count]).numpy()
            relative = (outputs - exact[:count]) / deviation[:count]
            assert np.abs(relative).max() < EIGHT_DEVIATIONS, way
        # The prediction is no mere upper bound, except where the order of summation is torch's own.
        spread = np.sqrt(np.mean(relative**2))
        assert (0.0 if way == "dense-float32" else 0.25) < spread < 1.3, way


@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_the_look_up_agrees_with_float64(expert_format: str, swiglu: str) -> None:
    layout = layout_of(352, 200, expert_format, swiglu)
    expert = expert_of(layout)
    rows = rows_of(layout, 5)
    outputs = CpuExpert(layout, compiled=False).forward(expert, rows)
    deviation = output_error_deviation(layout, expert, rows.numpy(), "dense-float32")
    assert (np.abs(outputs.numpy() - reference(layout, expert, rows)) / deviation).max() < EIGHT_DEVIATIONS


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("hidden", "inner"), WIDTHS)
@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_compiled_weights_equal_the_dequantised_bit_for_bit(
    expert_format: str, swiglu: str, hidden: int, inner: int
) -> None:
    layout = layout_of(hidden, inner, expert_format, swiglu)
    expert = expert_of(layout)
    rng = np.random.default_rng(0)
    for name in ("gate_up_scales", "down_scales"):  # every scale, the subnormal 2^-127 and NaN included
        part_views(layout, expert)[name][...] = rng.integers(0, 256, layout.parts[name].shape)
    weights = unpack_expert(layout, expert)
    kernel = load_kernel(2)
    gate_up, down = torch.empty(2 * inner, hidden), torch.empty(hidden, inner)
    shape = ExpertShape.of(layout)
    kernel.weights(shape, expert.ctypes.data, gate_up.data_ptr(), down.data_ptr(), bfloat16=False)
    exact = (torch.from_numpy(np.concatenate([weights.gate, weights.up])), torch.from_numpy(weights.down))
    for ours, wanted in zip((gate_up, down), exact, strict=True):
        number = ~wanted.isnan()
        assert torch.equal(ours.isnan(), wanted.isnan())
        assert torch.equal(ours.view(torch.int32)[number], wanted.view(torch.int32)[number])
    halves = gate_up.bfloat16(), down.bfloat16()
    kernel.weights(shape, expert.ctypes.data, halves[0].data_ptr(), halves[1].data_ptr(), bfloat16=True)
    for half, wanted in zip(halves, exact, strict=True):
        assert torch.equal(half.nan_to_num(nan=1e30), wanted.bfloat16().nan_to_num(nan=1e30))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("expert_format", "swiglu"), KINDS)
def test_an_invariant_row_is_the_same_bits_in_calls_of_1_to_17_rows(expert_format: str, swiglu: str) -> None:
    layout = layout_of(352, 200, expert_format, swiglu)
    expert = expert_of(layout)
    rows = rows_of(layout, 17)
    alone = CpuExpert(layout, threads=1, invariant=True, compiled=True)
    single = torch.cat([alone.forward(expert, row) for row in rows.split(1)])
    for threads in (1, 2, 3):
        computes = CpuExpert(layout, threads=threads, invariant=True, compiled=True)
        for count in range(1, 18):
            assert torch.equal(computes.forward(expert, rows[:count]), single[:count])
            assert torch.equal(computes.forward(expert, rows[17 - count :]), single[17 - count :])
    assert torch.equal(alone.forward(expert, torch.cat([rows] * 9))[-17:], single)


@pytest.mark.usefixtures("two_torch_threads")
def test_an_invariant_row_is_the_same_bits_without_a_kernel_too() -> None:
    layout = layout_of(352, 200, "mxfp4", "gpt-oss")
    expert = expert_of(layout)
    rows = rows_of(layout, 17)
    computes = CpuExpert(layout, invariant=True, compiled=False)
    whole = computes.forward(expert, rows)
    for count in range(1, 18):
        assert torch.equal(computes.forward(expert, rows[:count]), whole[:count])


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("any_rows", [False, True])
def test_plain_cpp_gives_the_same_bits_as_vector_instructions(any_rows: bool) -> None:
    native, plain = load_kernel(1), load_kernel(1, "generic")
    for expert_format, swiglu in KINDS:
        for hidden, inner in WIDTHS:
            layout = layout_of(hidden, inner, expert_format, swiglu)
            expert, rows = expert_of(layout), rows_of(layout, 5)
            outputs = [torch.empty_like(rows) for _ in range(2)]
            for kernel, out in zip((native, plain), outputs, strict=True):
                kernel.expert(
                    ExpertShape.of(layout),
                    expert.ctypes.data,
                    rows.data_ptr(),
                    5,
                    out.data_ptr(),
                    any_rows=any_rows,
                )
            assert torch.equal(*outputs)


@pytest.mark.usefixtures("compiled")
def test_any_buffer_is_read_in_place() -> None:
    layout = layout_of(64, 64)
    expert = expert_of(layout)
    rows = rows_of(layout, 2)
    computes = CpuExpert(layout, threads=1, compiled=True)
    wanted = computes.forward(expert, rows)
    slot = mmap.mmap(-1, layout.expert_bytes + 4096)
    slot[: layout.expert_bytes] = expert.tobytes()
    for buffer in (expert.tobytes(), memoryview(expert), torch.from_numpy(expert), slot, memoryview(slot)[:]):
        assert torch.equal(computes.forward(buffer, rows), wanted)
    slot[0] ^= 0x77  # the next call sees what was written to the slot
    assert not torch.equal(computes.forward(slot, rows), wanted)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("way", SETTINGS)
def test_a_row_that_is_not_a_number_stays_so_and_touches_no_other(way: str) -> None:
    layout = layout_of(64, 64, "mxfp4", "gpt-oss")
    expert = expert_of(layout)
    rows = rows_of(layout, 4)
    computes = CpuExpert(layout, threads=1, compiled=True, **SETTINGS[way])
    wanted = computes.forward(expert, rows)
    rows[1, 5], rows[2, 40] = float("nan"), float("inf")
    outputs = computes.forward(expert, rows)
    assert outputs[1].isnan().all()
    assert not outputs[2].isfinite().all()
    assert torch.equal(outputs[[0, 3]], wanted[[0, 3]])


@pytest.mark.usefixtures("compiled")
def test_tiny_and_huge_rows_keep_their_relative_accuracy() -> None:
    layout = layout_of(256, 64)
    expert = expert_of(layout)
    few = CpuExpert(layout, threads=1, compiled=True, **SETTINGS["few"])
    rows = rows_of(layout, 2)
    for size in (2.0**-12, 2.0**12):
        error = few.forward(expert, rows * size).numpy() - reference(layout, expert, rows * size)
        deviation = output_error_deviation(layout, expert, (rows * size).numpy(), "few")
        assert (np.abs(error) / deviation).max() < EIGHT_DEVIATIONS
    assert not few.forward(expert, torch.zeros(1, 256)).any()


@pytest.mark.usefixtures("compiled")
def test_bfloat16_rows_and_views_give_what_their_float32_copies_give() -> None:
    layout = layout_of(64, 64)
    expert = expert_of(layout)
    computes = CpuExpert(layout, threads=1, compiled=True)
    rows = rows_of(layout, 6).bfloat16()
    assert torch.equal(
        computes.forward(expert, rows[::2]), computes.forward(expert, rows[::2].float().clone())
    )
    assert computes.forward(expert, rows).dtype == torch.float32
    assert computes.forward(expert, rows[:0]).shape == (0, 64)


@pytest.mark.usefixtures("compiled")
def test_two_threads_may_compute_at_once() -> None:
    layout = layout_of(256, 512)
    expert = expert_of(layout)
    rows = rows_of(layout, 3)
    wanted = CpuExpert(layout, threads=2, compiled=True).forward(expert, rows)
    equal: list[bool] = []

    def work() -> None:
        computes = CpuExpert(layout, threads=2, compiled=True)
        equal.extend(torch.equal(computes.forward(expert, rows), wanted) for _ in range(50))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert equal == [True] * 150


@pytest.mark.usefixtures("compiled")
def test_the_crossover_decides_the_way() -> None:
    layout = layout_of(64, 64)
    computes = CpuExpert(layout, threads=1, compiled=True, crossover=Crossover(4, 32))
    assert [computes.way_of(count) for count in (1, 4, 5, 31, 32)] == [
        "few",
        "few",
        "panel",
        "panel",
        "dense",
    ]
    assert CpuExpert(layout, threads=1, compiled=True, invariant=True).way_of(1) == "panel"
    assert CpuExpert(layout, threads=1, compiled=False).way_of(1) == "lookup"


@pytest.mark.usefixtures("compiled")
def test_the_crossover_is_measured_once_per_shape() -> None:
    layout = layout_of(64, 32)
    kernel = load_kernel(1)
    first = measured_crossover(kernel, layout)
    assert measured_crossover(kernel, layout_of(64, 32)) is first
    assert first.few_rows_at_most >= 1
    computes = CpuExpert(layout, threads=1, compiled=True)
    assert computes.way_of(10**6) in ("panel", "dense")


def test_a_crossover_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="must exceed few_rows_at_most"):
        Crossover(8, 8)
    with pytest.raises(InputError, match="bfloat16 or float32"):
        Crossover(8, 9, "float16")


def test_bad_arguments_are_refused_in_one_sentence() -> None:
    layout = layout_of(64, 64)
    computes = CpuExpert(layout, compiled=False)
    expert = expert_of(layout)
    with pytest.raises(InputError, match=r"rows have shape \(2, 63\) on cpu but must be \(n, 64\)"):
        computes.forward(expert, torch.zeros(2, 63))
    with pytest.raises(InputError, match="the buffer has 10 bytes but an expert of this layout has 6528"):
        computes.forward(expert[:10], torch.zeros(1, 64))
    with pytest.raises(InputError, match="must be contiguous uint8 on cpu"):
        computes.forward(torch.zeros(10_000), torch.zeros(1, 64))
    with pytest.raises(InputError, match="cannot be read in place"):
        computes.forward(np.zeros((100, 200), np.uint8)[:, ::2], torch.zeros(1, 64))
    with pytest.raises(InputError, match="threads is 0"):
        CpuExpert(layout, threads=0)
    with pytest.raises(InputError, match="way is 'fast'"):
        output_error_deviation(layout, expert, np.zeros((1, 64)), "fast")


def test_without_a_kernel_it_warns_that_it_is_slow_and_computes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(threads: int) -> None:
        raise KernelBuildError("no C++ compiler was found (c++); install g++")

    monkeypatch.setattr("hideaway.hw.fp4.cpu_expert.load_kernel", none)
    layout = layout_of(64, 64)
    with pytest.warns(SlowExpertWarning, match="torch look-ups.*no C\\+\\+ compiler was found"):
        computes = CpuExpert(layout)
    assert computes.kernel_name == "torch"
    expert, rows = expert_of(layout), rows_of(layout, 3)
    np.testing.assert_allclose(
        computes.forward(expert, rows).numpy(), reference(layout, expert, rows), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(KernelBuildError, match="install g"):
        CpuExpert(layout, compiled=True)

"""What the compute stream computes: attention against the plain formula, rollback, row groups, experts by look-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from hideaway.hw.engine.attention import Attention
from hideaway.hw.engine.device_expert import DeviceExpert
from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.products import product
from hideaway.hw.engine.row_groups import RowGroups
from hideaway.hw.engine.synthetic_layers import SyntheticTrunk, Weights
from hideaway.hw.engine.work import Seat
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models.attention import LinearAttention
from tests.hw.engine.small_shape import GROUPED, LATENT
from tests.hw.small_experts import expert_of, layout_of, rows_of

CPU = torch.device("cpu")


def attention(architecture, index):
    return Attention(architecture, index, Weights(3, CPU).matrix)


def rows(count, seed=0):
    return torch.randn(count, 64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("architecture", "index"), [(GROUPED, 0), (GROUPED, 1), (LATENT, 0)], ids=("full", "sliding", "latent")
)
def test_a_prompt_in_chunks_is_the_prompt_in_one(architecture, index) -> None:
    made, inputs = attention(architecture, index), rows(21)
    whole = made.forward(inputs, (Seat.chunk(0, 21, 21),), KvStore())
    kv = KvStore()
    first = made.forward(inputs[:9], (Seat.chunk(0, 9, 9),), kv)
    second = made.forward(inputs[9:], (Seat.chunk(0, 12, 21),), kv)
    torch.testing.assert_close(torch.cat([first, second]), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "index"), [(GROUPED, 0), (GROUPED, 1), (LATENT, 0)], ids=("full", "sliding", "latent")
)
def test_rejected_rows_leave_nothing_behind(architecture, index) -> None:
    """A block of 4 of which 2 are kept, then another: the same as without the rejected rows."""
    made, prompt = attention(architecture, index), rows(10)
    kv, other = KvStore(), KvStore()
    for store in (kv, other):
        made.forward(prompt, (Seat.chunk(0, 10, 10),), store)
    made.forward(rows(4, 1), (Seat.block(0, 4, 11),), kv)
    made.forward(rows(4, 1)[:2], (Seat.block(0, 2, 11),), other)
    mine = made.forward(rows(4, 2), (Seat.block(0, 4, 13),), kv)
    theirs = made.forward(rows(4, 2), (Seat.block(0, 4, 13),), other)
    torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert kv.tokens(0, index) == 16


def test_packed_sequences_do_not_see_each_other() -> None:
    made, inputs = attention(GROUPED, 0), rows(12)
    seats = (Seat.chunk(0, 5, 5), Seat.chunk(1, 7, 7))
    packed = made.forward(inputs, seats, KvStore())
    alone = made.forward(inputs[5:], seats[1:], KvStore())
    torch.testing.assert_close(packed[5:], alone, rtol=1e-4, atol=1e-5)


def test_a_sliding_layer_sees_its_window_only() -> None:
    made = attention(GROUPED, 1)
    long = rows(30)
    changed = long.clone()
    changed[:10] = rows(10, 9)
    seat = (Seat.chunk(0, 30, 30),)
    mine, theirs = made.forward(long, seat, KvStore()), made.forward(changed, seat, KvStore())
    assert torch.equal(mine[18:], theirs[18:])
    assert not torch.allclose(mine[12], theirs[12])


def test_linear_attention_is_refused_with_its_layer() -> None:
    linear = replace(
        LATENT,
        layer_kinds=("mla", "linear", "mla", "mla", "mla"),
        linear_attention=LinearAttention(2, 2, 8, 8, 4),
    )
    with pytest.raises(InputError, match="layer 1 of test/latent has linear attention"):
        SyntheticTrunk(linear, 0, Weights(0, CPU))


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_a_product_is_linear(count) -> None:
    weight = Weights(1, CPU).matrix(48, 64)
    torch.testing.assert_close(product(rows(count), weight), rows(count) @ weight.T, rtol=1e-4, atol=1e-5)


def test_row_groups_hold_every_choice_once() -> None:
    ids = np.array([[3, 1], [1, -1], [0, 3]], dtype=np.int16)
    groups = RowGroups(ids)
    assert groups.ids.tolist() == [[1, 3], [-1, 1], [0, 3]]
    assert groups.needed == 0b1011
    assert [groups.places(expert).tolist() for expert in (0, 1, 3)] == [[4], [0, 3], [1, 5]]


@pytest.mark.parametrize("expert_format", ["mxfp4", "nvfp4"])
@pytest.mark.parametrize("swiglu", ["plain", "gpt-oss"])
def test_the_look_up_expert_agrees_with_the_cpu_path(expert_format, swiglu) -> None:
    layout = layout_of(64, 96, expert_format, swiglu)
    stored, inputs = torch.from_numpy(expert_of(layout)), rows_of(layout, 5)
    found = DeviceExpert(layout, CPU, torch.float32).forward(stored, inputs)
    exact = CpuExpert(layout, threads=1, invariant=True)
    torch.testing.assert_close(found, exact.forward(stored, inputs), rtol=2e-3, atol=2e-3)

"""Experts computed where the transfer put them: any number of slots in two launches, or one that has just arrived.

    experts = TritonExperts(ExpertLayout.of(load_model("gpt-oss-20b")), torch.device("cuda"))
    outputs = experts.forward_slots(slots, [7, 2], rows, [0, 3, 4])  # rows 0 to 2 use slot 7, row 3 slot 2

A row here is one use of an expert (row, choice), the rows of an expert next to one another; outputs stand in the same
places, so whoever sums a row's experts can do so in a fixed order whatever the order of arrival. Rows and activations
are rounded to bfloat16 (or quantised to FP4), weights are exact, sums are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from itertools import pairwise

import torch

from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.triton_kernels.requirements import (
    check_capability,
    check_driver,
    check_inputs,
    triton_or_error,
)
from hideaway.hw.triton_kernels.tiles import TILES, Tile, check_groups, row_tiles, tile_for
from hideaway.hw.triton_kernels.variants import (
    product_constants,
    product_options,
    quantise_constants,
    quantise_options,
)
from hideaway.sim.errors import InputError

_REMEMBERED_TILES = 1024
"""Row tiles of single experts kept on the device, a few hundred bytes each."""

_SLOT_BYTES = 4096
"""Slots are whole pages, and Triton compiles anew where a stride has another alignment."""

Inputs = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
"""Rows as a kernel takes them: values or codes, block scales, one float32 a row."""


class TritonExperts:
    """Computes experts of one layout from slots in a device's memory.

    Parameters
    ----------
    layout
        Of every expert in the slots.
    device
        A CUDA device; "cpu" only where Triton interprets (`TRITON_INTERPRET=1` before its import).
    inputs
        One of `tiles.INPUTS`. "fp4" quantises rows and activations and multiplies with sm_120's block-scaled
        instruction: fast, and far less exact.
    invariant
        Whether a row's output must not depend, to the last bit, on the number of rows: one tile for every call.

    Raises
    ------
    InputError
        Triton is missing or too old, the device is no GPU or lacks the instructions, or the inputs are not known.
    """

    def __init__(
        self, layout: ExpertLayout, device: torch.device, *, inputs: str = "bfloat16", invariant: bool = False
    ) -> None:
        triton = triton_or_error()
        interpreted = bool(triton.knobs.runtime.interpret)
        check_inputs(layout, inputs, interpreted=interpreted)
        if device.type == "cuda":
            check_driver(triton)
            capability = torch.cuda.get_device_capability(device)
            check_capability(capability, torch.cuda.get_device_name(device), inputs)
        elif not interpreted:
            raise InputError(
                f"the Triton kernels need a CUDA device but the experts are on {device}; use CpuExpert"
            )
        # Only here: the kernels import Triton, which decides then whether to interpret.
        from hideaway.hw.triton_kernels import expert_kernels, quantise_rows

        self._kernels = {"gate_up": expert_kernels.gate_up_kernel, "down": expert_kernels.down_kernel}
        self._quantise = quantise_rows.quantise_rows_kernel
        self._layout = layout
        self._device = device
        self._inputs = inputs
        self._invariant = invariant
        self._tiles_of_one = lru_cache(_REMEMBERED_TILES)(self._new_tiles_of_one)

    @property
    def kernel_name(self) -> str:
        """What computes, for example "triton bfloat16 x mxfp4"."""
        return f"triton {self._inputs} x {self._layout.expert_format}"

    def forward_slots(
        self, slots: torch.Tensor, slot_indices: Sequence[int], rows: torch.Tensor, offsets: Sequence[int]
    ) -> torch.Tensor:
        """Return float32 (n, hidden) for rows of several experts, without waiting for the device.

        Parameters
        ----------
        slots
            (slots, slot bytes) uint8, contiguous, on the device; an expert at the start of each.
        slot_indices
            The slot of each expert, in any order.
        rows
            (n, hidden) float32 or bfloat16 on the device, the rows of the first expert first.
        offsets
            The first row of each expert, and n: one more than there are experts. An expert may have no rows.

        Raises
        ------
        InputError
            A tensor has the wrong shape, type or place, or a slot or an offset leads out of it.
        """
        self._check(slots, rows)
        check_groups(slot_indices, offsets, slots.shape[0], rows.shape[0])
        busy = sum(begin < end for begin, end in pairwise(offsets))
        tile = self._tile(rows.shape[0], busy)
        tiles = torch.from_numpy(row_tiles(slot_indices, offsets, tile.rows)).to(self._device)
        return self._launch(slots, rows, tile, tiles)

    def forward(self, expert: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the same for one expert from its bytes, (expert bytes or more,) uint8 on the device."""
        slots = expert[None]
        self._check(slots, rows)
        tile = self._tile(rows.shape[0], 1)
        return self._launch(slots, rows, tile, self._tiles_of_one(rows.shape[0], tile.rows))

    def warm_up(self) -> None:
        """Compile what a call of any number of rows can need, which takes seconds where nothing is cached yet."""
        layout = self._layout
        slot = torch.zeros(-(-layout.expert_bytes // _SLOT_BYTES) * _SLOT_BYTES, dtype=torch.uint8)
        for tile in TILES[self._inputs]:
            self.forward(
                slot.to(self._device), torch.zeros(tile.rows, layout.hidden_size, device=self._device)
            )

    def _tile(self, num_rows: int, num_experts: int) -> Tile:
        return TILES[self._inputs][0] if self._invariant else tile_for(num_rows, num_experts, self._inputs)

    def _new_tiles_of_one(self, num_rows: int, tile_rows: int) -> torch.Tensor:
        return torch.from_numpy(row_tiles([0], [0, num_rows], tile_rows)).to(self._device)

    def _launch(
        self, slots: torch.Tensor, rows: torch.Tensor, tile: Tile, tiles: torch.Tensor
    ) -> torch.Tensor:
        num_rows, hidden = rows.shape
        outputs = torch.empty(num_rows, hidden, dtype=torch.float32, device=self._device)
        if num_rows == 0:
            return outputs
        inner = torch.empty(
            num_rows, self._layout.intermediate_size, dtype=torch.bfloat16, device=self._device
        )
        with self._on_device():
            self._product(
                "gate_up", self._taken(rows.to(torch.bfloat16).contiguous()), slots, tile, tiles, inner
            )
            self._product("down", self._taken(inner), slots, tile, tiles, outputs)
        return outputs

    def _product(
        self,
        kernel: str,
        inputs: Inputs,
        slots: torch.Tensor,
        tile: Tile,
        tiles: torch.Tensor,
        outputs: torch.Tensor,
    ) -> None:
        grid = (tiles.shape[0], -(-outputs.shape[1] // tile.features))
        self._kernels[kernel][grid](
            *inputs,
            slots,
            slots.stride(0),
            tiles,
            outputs,
            **product_constants(kernel, self._layout, self._inputs, tile),
            **product_options(tile),
        )

    def _taken(self, rows: torch.Tensor) -> Inputs:
        """Return rows as the kernels take them: bfloat16 as they are, or quantised."""
        if self._inputs == "bfloat16":
            return rows, None, None
        return self.quantised(rows)

    def quantised(self, rows: torch.Tensor) -> Inputs:
        """Return (n, columns) bfloat16 rows as FP4 in the weights' format: codes, scales and, in NVFP4, floats.

        Codes are (n, bytes), scales (n, blocks), floats (n,): each row as `quantise_mxfp4` or `quantise_nvfp4` would
        have it alone.
        """
        layout = self._layout
        num_rows, columns = rows.shape
        blocks = -(-columns // layout.block)
        codes = torch.empty(num_rows, blocks * layout.block // 2, dtype=torch.uint8, device=self._device)
        scales = torch.empty(num_rows, blocks, dtype=torch.uint8, device=self._device)
        factors = None
        if layout.expert_format == "nvfp4":
            factors = torch.empty(num_rows, dtype=torch.float32, device=self._device)
        self._quantise[(num_rows,)](
            rows,
            codes,
            scales,
            factors,
            **quantise_constants(columns, layout.expert_format),
            **quantise_options(),
        )
        return codes, scales, factors

    def _on_device(self) -> AbstractContextManager[object]:
        # Triton launches on the current device's stream, which need not be this one.
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()

    def _check(self, slots: torch.Tensor, rows: torch.Tensor) -> None:
        needed, hidden = self._layout.expert_bytes, self._layout.hidden_size
        if (
            slots.dtype != torch.uint8
            or slots.ndim != 2
            or slots.shape[1] < needed
            or not slots.is_contiguous()
            or slots.device.type != self._device.type
        ):
            raise InputError(
                f"slots are {slots.dtype} of shape {tuple(slots.shape)} on {slots.device} but must be contiguous uint8 "
                f"(slots, {needed} or more) on {self._device}; pass the device's own slots"
            )
        if rows.ndim != 2 or rows.shape[1] != hidden or rows.device != slots.device:
            raise InputError(
                f"rows have shape {tuple(rows.shape)} on {rows.device} but must be (n, {hidden}) on {slots.device}; "
                "flatten batch and sequence first"
            )

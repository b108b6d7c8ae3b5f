"""What computes experts in an accelerator's memory: the Triton kernels, or plain torch where those cannot run.

Plain torch decodes one expert by table look-up, then calls `linear` in bfloat16: correct anywhere torch runs and far
from the speed of a fused kernel, because the decoded weights cross device memory once more. Used by the cuda device;
the CPU has `hideaway.hw.fp4.cpu_expert`.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

from hideaway.hw.fp4.cpu_expert import SlowExpertWarning
from hideaway.hw.fp4.e2m1 import VALUES
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.scale_formats import E4M3_VALUES, E8M0_VALUES
from hideaway.hw.fp4.torch_lookup import linear_expert
from hideaway.hw.triton_kernels.triton_experts import TritonExperts
from hideaway.sim.errors import InputError


def open_device_expert(layout: ExpertLayout, device: torch.device) -> TritonExperts | DeviceExpert:
    """Return the Triton kernels, compiled, or with a `SlowExpertWarning` torch look-ups where they cannot run."""
    try:
        experts = TritonExperts(layout, device)
    except InputError as error:
        warnings.warn(
            f"experts are computed by torch look-ups, far slower: {error}", SlowExpertWarning, stacklevel=2
        )
        return DeviceExpert(layout, device)
    experts.warm_up()
    return experts


class DeviceExpert:
    """Computes experts of one layout from bytes in a device's memory.

    Parameters
    ----------
    dtype
        Of weights and products.
    """

    kernel_name = "torch look-ups"

    def __init__(
        self, layout: ExpertLayout, device: torch.device, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        self._layout = layout
        self._dtype = dtype
        codes = np.arange(256)
        self._pairs = torch.from_numpy(np.stack([VALUES[codes & 15], VALUES[codes >> 4]], axis=1)).to(device)
        scales = E8M0_VALUES if layout.expert_format == "mxfp4" else E4M3_VALUES
        self._scales = torch.from_numpy(scales).to(device)

    def forward(self, expert: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return float32 (n, hidden) from an expert's bytes and (n, hidden) rows on the same device."""
        layout = self._layout
        inner = layout.intermediate_size
        factors = torch.ones(3, device=expert.device)
        if layout.expert_format == "nvfp4":
            factors = expert[layout.parts["tensor_scales"].span].clone().view(torch.float32)
        gate_up = self._weights(expert, "gate_up", factors[:2].repeat_interleave(inner))
        down = self._weights(expert, "down", factors[2:].expand(layout.hidden_size))
        return linear_expert(layout, expert, gate_up[:, : layout.hidden_size], down[:, :inner], rows.float())

    def _weights(self, expert: torch.Tensor, name: str, factors: torch.Tensor) -> torch.Tensor:
        parts = self._layout.parts
        codes, scales = parts[f"{name}_blocks"], parts[f"{name}_scales"]
        values = self._pairs[expert[codes.span].int()].view(*scales.shape, -1)
        steps = self._scales[expert[scales.span].int()].view(scales.shape)
        if self._layout.interleaved and name == "gate_up":
            values = torch.cat([values[0::2], values[1::2]])
            steps = torch.cat([steps[0::2], steps[1::2]])
        return (values * (steps * factors[:, None])[..., None]).view(scales.shape[0], -1).to(self._dtype)


class RowByRowExpert(DeviceExpert):
    """Computes every row by itself in float32, so that its output does not depend on how many there are."""

    kernel_name = "torch look-ups, row by row"

    def __init__(self, layout: ExpertLayout, device: torch.device) -> None:
        super().__init__(layout, device, torch.float32)

    def forward(self, expert: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return float32 (n, hidden)."""
        return torch.cat([super(RowByRowExpert, self).forward(expert, row) for row in torch.split(rows, 1)])

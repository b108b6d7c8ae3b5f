"""Dense parts computed one row at a time, so that a row's result never depends on the other rows of a forward.

Libraries choose the order of a matrix product's sums by its shape, and vector code treats the last few elements of a
tensor otherwise than the rest; both make a row's last bits depend on its neighbours. Here every module that reduces or
calls a transcendental function gets one row per call, in memory of its own, always of one shape: a row bucket of one.
What is left between them in transformers' code adds, multiplies and clamps single elements, which is exact in any
order. Attention and experts have ways of their own (`attention.py`, `hideaway.hw.fp4.cpu_expert`).
"""

from __future__ import annotations

import torch
from torch import nn

_SUFFIXES = ("RMSNorm", "TopKRouter", "MLP")
_ROTARY = "RotaryEmbedding"


class RowByRow(nn.Module):
    """Calls a module once for each row; rows are the first axis of matrices and the second of batches of one."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = module

    def forward(self, rows: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Return the module's outputs joined along the rows."""
        axis = 0 if rows.ndim == 2 else 1
        compute = self._module.forward  # past the hooks, of which there are none
        return _joined([compute(row.clone()) for row in torch.split(rows, 1, axis)], axis)


class RotaryByRow(nn.Module):
    """Calls a rotary embedding once for each position."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._module = module

    def forward(self, rows: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return cosines and sines, (1, rows, width)."""
        pairs = [self._module(rows, position_ids=at.clone()) for at in torch.split(position_ids, 1, 1)]
        joined = _joined(pairs, 1)
        assert isinstance(joined, tuple)
        return joined


class RowByRowSwitch:
    """Puts wrappers around a model's dense modules, and takes them away again."""

    def __init__(self, model: nn.Module) -> None:
        self._places = _dense_places(model, [])
        self._on = False

    @property
    def on(self) -> bool:
        """Whether rows are computed one by one."""
        return self._on

    def turn(self, on: bool) -> None:
        """Compute rows one by one from now on, or together. Changes the model."""
        if on == self._on:
            return
        for parent, name, module in self._places:
            wrapper = RotaryByRow if type(module).__name__.endswith(_ROTARY) else RowByRow
            setattr(parent, name, wrapper(module) if on else module)
        self._on = on


def _dense_places(
    module: nn.Module, found: list[tuple[nn.Module, str, nn.Module]]
) -> list[tuple[nn.Module, str, nn.Module]]:
    """Return where the modules to wrap sit: outermost ones, and no block that holds experts."""
    for name, child in module.named_children():
        kind = type(child).__name__
        wanted = isinstance(child, nn.Linear) or kind.endswith((*_SUFFIXES, _ROTARY))
        if wanted and not hasattr(child, "experts"):
            found.append((module, name, child))
        else:
            _dense_places(child, found)
    return found


def _joined(
    pieces: list[torch.Tensor | tuple[torch.Tensor, ...]], axis: int
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    if isinstance(pieces[0], torch.Tensor):
        return torch.cat([piece for piece in pieces if isinstance(piece, torch.Tensor)], dim=axis)
    return tuple(torch.cat(parts, dim=axis) for parts in zip(*pieces, strict=True))

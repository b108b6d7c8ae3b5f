"""A drafter's checkpoint: a folder with `config.json` and safetensors files, as z-lab publishes them.

Tensors are named `fc.weight`, `hidden_norm.weight`, `norm.weight` and `layers.N.` as in a Qwen3 checkpoint, at times
after `model.`; embedding and head are the target's and are not stored. Every tensor is accounted for.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch

from hideaway.hw.draft.config_file import CONFIG_NAME, read_drafter_config
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.store.checkpoint import FLOAT_DTYPES, SINGLE_NAME, Checkpoint
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_bytes_atomically, write_json_atomically

_PREFIX = "model."
_COMPUTED = "rotary_emb.inv_freq"
"""Some exports store it; it follows from the configuration."""


def load_drafter(
    folder: str | os.PathLike[str],
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DFlashDrafter:
    """Return the drafter of a checkpoint, ready to draft (in evaluation mode, without gradients).

    Raises
    ------
    InputError
        A file is missing or damaged, the configuration describes what is not supported, or a tensor is missing,
        unexpected, of the wrong shape or not of floats.
    """
    config = read_drafter_config(Path(folder) / CONFIG_NAME)
    drafter = DFlashDrafter(config)
    expected = {name: tuple(tensor.shape) for name, tensor in drafter.state_dict().items()}
    checkpoint = Checkpoint(folder)
    stored = {name.removeprefix(_PREFIX): name for name in checkpoint.files if not name.endswith(_COMPUTED)}
    _check_tensors(folder, expected, stored, checkpoint)
    loaded = {
        name: torch.from_numpy(checkpoint.floats(stored[name])).to(device=device, dtype=dtype)
        for name in expected
    }
    drafter.load_state_dict(loaded, assign=True)
    return drafter.eval().requires_grad_(False)


def save_drafter(folder: str | os.PathLike[str], drafter: DFlashDrafter) -> None:
    """Write a drafter as a checkpoint that `load_drafter` and the public implementations read.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in drafter.state_dict().items()}
    write_bytes_atomically(Path(folder) / SINGLE_NAME, save(tensors, metadata={"format": "pt"}))
    dtype = str(drafter.fc.weight.dtype).removeprefix("torch.")
    write_json_atomically(Path(folder) / CONFIG_NAME, drafter.config.to_json() | {"dtype": dtype})


def _check_tensors(
    folder: str | os.PathLike[str],
    expected: dict[str, tuple[int, ...]],
    stored: dict[str, str],
    checkpoint: Checkpoint,
) -> None:
    for kind, names in (("lacks", expected.keys() - stored.keys()), ("has", stored.keys() - expected.keys())):
        if names:
            first, more = sorted(names)[0], len(names) - 1
            others = f" and {more} more" if more else ""
            if kind == "lacks":
                problem = (
                    f"lacks the tensor {first}{others} that its configuration calls for; download it again"
                )
            else:
                problem = (
                    f"has the tensor {first}{others}, which no DFlash drafter has; take another checkpoint"
                )
            raise InputError(f"the drafter in {os.fspath(folder)} {problem}")
    for name, shape in expected.items():
        found = checkpoint.shape(stored[name])
        if found != shape:
            raise InputError(
                f"{name} of the drafter in {os.fspath(folder)} has the shape {list(found)} but its configuration "
                f"calls for {list(shape)}; download it again"
            )
        if checkpoint.dtype(stored[name]) not in FLOAT_DTYPES:
            raise InputError(
                f"{name} of the drafter in {os.fspath(folder)} is stored as {checkpoint.dtype(stored[name])} but "
                f"must be one of {', '.join(FLOAT_DTYPES)}; take a checkpoint that is not quantised"
            )

"""The training loop of both models: AdamW, a trapezoid of learning rates, checkpoints from which it goes on.

A step's data depend on the seed and the step's number alone, so a run that was interrupted and resumed computes what an
uninterrupted one does, to the bit on the same machine and number of threads. The learning rate rises for
`warmup_steps`, stays, and falls linearly to zero over the last `decay_steps` (Hägele et al. 2024, arXiv 2405.18392):
until the fall begins a run may be given another length.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_bytes_atomically

CHECKPOINT_NAME = "checkpoint.safetensors"
LOG_NAME = "log.jsonl"
MODEL_PREFIX = "model."
"""Before the names of parameters in a checkpoint; moments have their own."""

_BETAS = (0.9, 0.98)
_LARGEST_GRADIENT_NORM = 1.0
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Learning rate of every step, counted from 1, and how often to store and report."""

    steps: int
    warmup_steps: int
    decay_steps: int
    peak_learning_rate: float
    weight_decay: float = 0.1
    checkpoint_steps: int = 200
    report_steps: int = 20

    def __post_init__(self) -> None:
        if self.warmup_steps < 1 or self.decay_steps < 1 or self.steps < self.warmup_steps + self.decay_steps:
            raise InputError(
                f"{self.warmup_steps} warm-up and {self.decay_steps} decay steps do not fit into {self.steps} steps; "
                "give at least 1 of each and more steps"
            )

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step."""
        rise = step / self.warmup_steps
        fall = (self.steps - step + 1) / self.decay_steps
        return self.peak_learning_rate * min(1.0, rise, fall)

    def decaying(self, step: int) -> bool:
        """Return whether the rate falls at this step."""
        return step > self.steps - self.decay_steps


def train(
    module: nn.Module,
    loss_of_step: Callable[[int], torch.Tensor],
    schedule: Schedule,
    folder: Path,
) -> None:
    """Train the module's parameters in place, from the folder's checkpoint if there is one.

    Raises
    ------
    InputError
        The checkpoint is of another model, or the loss is no longer a number.
    """
    optimizer = _optimizer(module, schedule)
    done = _load_checkpoint(module, optimizer, folder / CHECKPOINT_NAME)
    started, losses = time.perf_counter(), []
    for step in range(done + 1, schedule.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate(step)
        loss = loss_of_step(step)
        if not torch.isfinite(loss):
            raise InputError(f"the loss at step {step} is {loss.item()}; lower the learning rate")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), _LARGEST_GRADIENT_NORM)
        optimizer.step()
        losses.append(loss.item())
        if step % schedule.report_steps == 0 or step == schedule.steps:
            _report(folder, step, schedule, sum(losses) / len(losses), time.perf_counter() - started)
            losses = []
        if step % schedule.checkpoint_steps == 0 or step == schedule.steps:
            _save_checkpoint(module, optimizer, step, folder / CHECKPOINT_NAME)


def _optimizer(module: nn.Module, schedule: Schedule) -> torch.optim.AdamW:
    trained = [value for value in module.parameters() if value.requires_grad]
    groups = [
        {"params": [value for value in trained if value.ndim > 1], "weight_decay": schedule.weight_decay},
        {"params": [value for value in trained if value.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=schedule.peak_learning_rate, betas=_BETAS, fused=True)


def _report(folder: Path, step: int, schedule: Schedule, loss: float, seconds: float) -> None:
    rate = schedule.learning_rate(step)
    print(
        f"step {step}/{schedule.steps}  loss {loss:.4f}  rate {rate:.2e}  {seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    with (folder / LOG_NAME).open("a") as log:
        log.write(json.dumps({"step": step, "loss": loss, "learning_rate": rate, "seconds": seconds}) + "\n")


def _save_checkpoint(module: nn.Module, optimizer: torch.optim.AdamW, step: int, path: Path) -> None:
    tensors = {MODEL_PREFIX + name: value.detach() for name, value in module.named_parameters()}
    for name, value in module.named_parameters():
        for moment in _MOMENTS:
            if value in optimizer.state:
                tensors[f"{moment}.{name}"] = optimizer.state[value][moment]
    write_bytes_atomically(path, save(tensors, metadata={"step": str(step)}))


def _load_checkpoint(module: nn.Module, optimizer: torch.optim.AdamW, path: Path) -> int:
    """Fill module and optimizer from a checkpoint; return how many steps it has behind it, 0 if there is none."""
    if not path.is_file():
        return 0
    with safe_open(path, framework="pt") as file:
        step = int(file.metadata()["step"])
        stored = set(file.keys())
        for name, value in module.named_parameters():
            if MODEL_PREFIX + name not in stored or file.get_slice(MODEL_PREFIX + name).get_shape() != list(
                value.shape
            ):
                raise InputError(f"{path} is of another model than this one; give another folder")
            value.data.copy_(file.get_tensor(MODEL_PREFIX + name))
            if f"{_MOMENTS[0]}.{name}" in stored:
                moments = {moment: file.get_tensor(f"{moment}.{name}") for moment in _MOMENTS}
                optimizer.state[value] = {"step": torch.tensor(float(step)), **moments}
    return step

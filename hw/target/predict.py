"""Experts guessed ahead on a real model. Two moments ask for a guess, and neither may look at what is not there yet.

*After the draft* the tokens of the block are known and nothing else of them: no attention has run, so not even layer
0's router input exists. `named` guesses from the tokens' embeddings, or from what the sequence's last rows read.
*At a layer visit* the residual of that layer is at hand. `ahead` runs the routers of the next layers on it, with their
own norms: exact but for what the experts of this layer and everything between will still add (a *stale gate*; Eliseev
and Mazur 2023, arXiv 2312.17238, section 3.2).

How often such guesses are right is measured elsewhere; an engine only takes masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from hideaway.hw.target.model import Target
from hideaway.sim.errors import InputError

PREDICTORS = ("stale-gate", "previous-rows", "none")


class Predictor(Protocol):
    """Guesses expert sets as bitmasks."""

    def named(self, tokens: torch.Tensor, last_read: Sequence[int], num_layers: int) -> tuple[int, ...]:
        """Return what a drafted block may read in the first layers.

        Parameters
        ----------
        tokens : torch.Tensor
            Tokens of the block, the anchor first, (rows,).
        last_read : sequence of int
            Per layer, what the kept rows of the sequence's last forward read; empty before its first.
        num_layers : int
            Layers with routed experts to name.
        """

    def ahead(self, number: int, count: int) -> tuple[int, ...]:
        """Return what the rows of the forward may read in the `count` layers after `number`; inside a visit only."""


class StaleGate:
    """Runs later routers on what is at hand: embeddings after the draft, the residual at a visit."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def named(self, tokens: torch.Tensor, last_read: Sequence[int], num_layers: int) -> tuple[int, ...]:
        """Return the masks that every layer's router gives on the tokens' embeddings."""
        rows = self._target.embed(tokens)
        return tuple(mask_of(self._target.routed_by(number, rows)) for number in range(num_layers))

    def ahead(self, number: int, count: int) -> tuple[int, ...]:
        """Return the masks that the next routers give on this layer's residual."""
        last = min(number + count, len(self._target.moe_layers) - 1)
        if last <= number:
            return ()
        rows = self._target.residual()
        return tuple(
            mask_of(self._target.routed_by(next_one, rows)) for next_one in range(number + 1, last + 1)
        )


class PreviousRows(StaleGate):
    """After the draft, what the sequence's last kept rows read (its embeddings' routers before there are any)."""

    def named(self, tokens: torch.Tensor, last_read: Sequence[int], num_layers: int) -> tuple[int, ...]:
        """Return what was read last."""
        if not last_read:
            return super().named(tokens, last_read, num_layers)
        return tuple(last_read[:num_layers])


class NoGuess:
    """Guesses nothing: the floor that the others are held against."""

    def named(self, tokens: torch.Tensor, last_read: Sequence[int], num_layers: int) -> tuple[int, ...]:
        """Return empty masks."""
        return (0,) * num_layers

    def ahead(self, number: int, count: int) -> tuple[int, ...]:
        """Return nothing."""
        return ()


def make_predictor(name: str, target: Target) -> Predictor:
    """Return a predictor by its name, one of `PREDICTORS`."""
    if name == "stale-gate":
        return StaleGate(target)
    if name == "previous-rows":
        return PreviousRows(target)
    if name == "none":
        return NoGuess()
    raise InputError(f"the predictor is {name!r} but must be one of {', '.join(PREDICTORS)}; choose one")


def mask_of(ids: torch.Tensor) -> int:
    """Return a bitmask of the experts in a tensor of ids."""
    mask = 0
    for expert in torch.unique(ids).tolist():
        mask |= 1 << int(expert)
    return mask

"""From logits to the distribution that is sampled: temperature, then the k likeliest, then the nucleus.

The same transformation applies to the target's p and the drafter's q; the rule in `sampled.py` preserves the
transformed p. Everything is in float64: what rounding moves is then far below what any test could see.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRule:
    """How tokens are drawn.

    Attributes
    ----------
    temperature : float
        Logits are divided by it; 0 puts everything on the largest (the lowest token id among equals).
    top_k : int
        Only so many of the likeliest tokens stay; 0 keeps all.
    top_p : float
        Only the likeliest tokens that together reach this share stay (Holtzman et al., arXiv 1904.09751); 1 keeps
        all.

    Raises
    ------
    InputError
        A value is outside its range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        finite_number("temperature", self.temperature)
        whole_number("top_k", self.top_k)
        finite_number("top_p", self.top_p, maximum=1.0, above_minimum=True)

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the distribution of every row of logits (..., vocab), float64 of the same shape.

        Raises
        ------
        InputError
            A logit is not a number, or a row has no finite one to draw.
        """
        wide = logits.double()
        peaks = wide.amax(dim=-1, keepdim=True)
        if not bool(torch.isfinite(peaks).all()):
            raise InputError(
                "logits hold NaN or infinity, or nothing else in a row; nothing can be drawn from them"
            )
        if self.temperature == 0:
            return torch.zeros_like(wide).scatter_(-1, wide.argmax(dim=-1, keepdim=True), 1.0)
        # Subtracting the peak first keeps a tiny temperature from making infinities.
        shares = torch.softmax((wide - peaks) / self.temperature, dim=-1)
        if self.top_k == 0 and self.top_p == 1:
            return shares
        ordered, order = shares.sort(dim=-1, descending=True, stable=True)
        if self.top_k:
            ordered[..., self.top_k :] = 0
            ordered /= ordered.sum(dim=-1, keepdim=True)
        if self.top_p < 1:
            ordered = torch.where(ordered.cumsum(dim=-1) - ordered < self.top_p, ordered, 0.0)
            ordered /= ordered.sum(dim=-1, keepdim=True)
        return torch.zeros_like(ordered).scatter_(-1, order, ordered)


def draw(probabilities: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """Return the token that each uniform number picks, whole numbers (...).

    The first token at which the running sum exceeds u times the whole: tokens of probability 0 are never picked.

    Parameters
    ----------
    probabilities
        Weights that need not sum to 1, (..., vocab).
    uniforms
        Numbers in [0, 1), (...).
    """
    sums = probabilities.cumsum(dim=-1)
    picked = torch.searchsorted(sums, (uniforms * sums[..., -1])[..., None].contiguous(), right=True)[..., 0]
    # u so near 1 that u times the sum rounds to the sum would point behind the last token.
    positive = (probabilities > 0) * torch.arange(probabilities.shape[-1], device=probabilities.device)
    return torch.minimum(picked, positive.amax(dim=-1))


def uniforms_of(generators: list[torch.Generator], count: int) -> torch.Tensor:
    """Return `count` numbers in [0, 1) from the generator of each sequence, float64 (seqs, count) on the CPU.

    A sequence draws from its own generator only, so what others share its batch does not matter. Changes the
    generators.
    """
    rows = [torch.rand(count, dtype=torch.float64, generator=generator) for generator in generators]
    return torch.stack(rows) if rows else torch.empty(0, count, dtype=torch.float64)


def draw_rows(probabilities: torch.Tensor, generators: list[torch.Generator]) -> torch.Tensor:
    """Return one token for every row, whole numbers (seqs, rows), each sequence's from its own generator.

    Draws one number a row. Changes the generators.

    Parameters
    ----------
    probabilities
        (seqs, rows, vocab), such as the drafter's; rows are drawn independently.
    generators
        One on the CPU for each sequence.
    """
    uniforms = uniforms_of(generators, probabilities.shape[1])
    return draw(probabilities, uniforms.to(probabilities.device))

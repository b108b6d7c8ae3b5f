"""Tells rounding from error where two ways of computing the same model choose different tokens.

A fast kernel's logits differ from the reference's by rounding; where the two best logits are closer than that error,
either choice is right. Such a difference is a *numeric tie*; any other is a *true difference*, a fault. How large the
error of an expert's outputs is, says `hideaway.hw.fp4.kernel_error`; that of logits is measured with
`measure_gap_error` on rows that are not judged with it.

Compare row by row on the *same* prefix: run the reference over the tokens that the fast path emitted. After a tie two
free-running texts part, and what follows says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number


@dataclass(frozen=True, slots=True)
class TieCounts:
    """Rows compared so far; counts of several comparisons add up.

    Attributes
    ----------
    equal, ties, differences : int
        Rows with the same token, with a numeric tie, with a true difference.
    widest_tie : float
        Largest gap that counted as a tie, in logits; 0 without ties.
    widest_difference : float
        Largest gap of a true difference, in logits; 0 without any.
    """

    equal: int = 0
    ties: int = 0
    differences: int = 0
    widest_tie: float = 0.0
    widest_difference: float = 0.0

    @property
    def rows(self) -> int:
        """Return the rows compared."""
        return self.equal + self.ties + self.differences

    def __add__(self, other: TieCounts) -> TieCounts:
        """Return the counts of both."""
        return TieCounts(
            self.equal + other.equal,
            self.ties + other.ties,
            self.differences + other.differences,
            max(self.widest_tie, other.widest_tie),
            max(self.widest_difference, other.widest_difference),
        )

    def describe(self) -> str:
        """Return the counts as one sentence for a report."""
        ties = f"{self.ties} numeric ties" + (f" (gaps up to {self.widest_tie:.3g})" if self.ties else "")
        wrong = f"{self.differences} true differences"
        if self.differences:
            wrong += f" (gaps up to {self.widest_difference:.3g})"
        return f"{self.rows} tokens compared: {self.equal} equal, {ties}, {wrong}"


def top_two_gaps(logits: torch.Tensor) -> torch.Tensor:
    """Return how far the best logit of every row is above the second best, (rows,), of logits (rows, vocab)."""
    best = logits.double().topk(2, dim=-1).values
    return best[:, 0] - best[:, 1]


def choice_gaps(reference: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return how far the best logit of every row is above that of the token chosen, (rows,).

    0 where the choice is the best or as good; at least the row's top-two gap otherwise.

    Parameters
    ----------
    reference
        Logits, (rows, vocab).
    chosen
        Tokens, whole numbers (rows,).

    Raises
    ------
    InputError
        A row has NaN or no finite best logit, or there is not one choice for each row.
    """
    if chosen.shape != reference.shape[:1]:
        raise InputError(
            f"{list(chosen.shape)} tokens were chosen in {reference.shape[0]} rows; give one for each row"
        )
    wide = reference.double()
    best = wide.amax(dim=-1)
    if not bool(torch.isfinite(best).all()):
        raise InputError(
            "the reference's logits hold NaN or no finite best; nothing can be compared with them"
        )
    return best - wide.gather(1, chosen[:, None])[:, 0]


def judge(reference: torch.Tensor, chosen: torch.Tensor, gap_error: float | torch.Tensor) -> TieCounts:
    """Return the counts of rows in which the fast path chose the same, tied, or wrongly.

    A choice that is not the reference's argmax is a tie if the reference puts it less than the error below its best,
    or level with it: then the top-two gap is below the error, too.

    Parameters
    ----------
    reference
        The reference's logits, (rows, vocab), after the tokens the fast path emitted.
    chosen
        The fast path's tokens, (rows,): the argmax of its logits.
    gap_error
        How much rounding moves the difference of two logits between the two paths, in logits: one number, or one
        for each row (rows,).

    Raises
    ------
    InputError
        The error is negative or not finite, a row has no finite best logit, or the shapes do not fit.
    """
    gaps = choice_gaps(reference, chosen)
    bound = torch.as_tensor(gap_error, dtype=torch.float64, device=gaps.device)
    if bound.dim() and bound.shape != gaps.shape:
        raise InputError(
            f"gap_error has the shape {list(bound.shape)} but there are {len(gaps)} rows; give one for each"
        )
    if bound.numel():
        finite_number("gap_error", float(bound.max()))
        finite_number("gap_error", float(bound.min()))
    same = chosen == reference.argmax(dim=-1)
    tied = ~same & ((gaps < bound) | (gaps == 0))
    wrong = ~same & ~tied
    return TieCounts(
        int(same.sum()), int(tied.sum()), int(wrong.sum()), _widest(gaps[tied]), _widest(gaps[wrong])
    )


def measure_gap_error(reference: torch.Tensor, fast: torch.Tensor) -> float:
    """Return the largest amount by which the difference of two logits of a row differs between two paths, in logits.

    With e = fast - reference, two tokens of a row differ by up to max(e) - min(e) more or less. Measure on rows with
    the same inputs that are not judged afterwards: a row's own error always explains its own choice.

    Parameters
    ----------
    reference, fast
        Logits of both paths, (rows, vocab); a token that is ruled out (-infinity) must be so in both.

    Raises
    ------
    InputError
        The shapes differ, there are no rows, or a difference is not finite.
    """
    if reference.shape != fast.shape or reference.numel() == 0:
        raise InputError(
            f"logits of the two paths have the shapes {list(reference.shape)} and {list(fast.shape)}; "
            "give the same rows of both, at least one"
        )
    one, other = reference.double(), fast.double()
    excluded = torch.isneginf(one) & torch.isneginf(other)
    error = torch.where(excluded, 0.0, other - one)
    highest = error.masked_fill(excluded, -torch.inf).amax(-1)
    lowest = error.masked_fill(excluded, torch.inf).amin(-1)
    return finite_number("the difference of the two paths' logits", float((highest - lowest).max()))


def _widest(gaps: torch.Tensor) -> float:
    return float(gaps.max()) if gaps.numel() else 0.0

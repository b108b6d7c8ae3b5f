"""Plays rounds of speculative decoding over texts and notes what every row chose.

A text begins with its prompt, which is read in one forward; the token after it is the first anchor. Then rounds:
draft, verify, keep; what was kept tells, position by position, how the true continuation is routed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.work import Seat
from hideaway.hw.route_recall.drafting import Drafted, Drafts
from hideaway.hw.route_recall.rounds import DraftInputs, Ids, Played, Round
from hideaway.hw.route_recall.served import Seen, WatchedModel


@dataclass(slots=True)
class _Before:
    """What stands before a block: the last committed row's routing and features, the last round's kept rows."""

    last: Ids
    last_kept: Ids
    features: torch.Tensor


@torch.inference_mode()
def play(
    model: WatchedModel,
    drafts: Drafts,
    prompts: Sequence[Sequence[int]],
    *,
    rounds_each: int,
    block_size: int,
    seed: int,
    progress: Callable[[], None] | None = None,
) -> Played:
    """Return the rounds of every prompt.

    Parameters
    ----------
    rounds_each : int
        Rounds of each text.
    block_size : int
        Rows of a block, its anchor included.
    seed : int
        Seeds each text's own draws.
    progress : callable, optional
        Called after every round.
    """
    book = TokenBook(prompts, seed)
    rounds: list[Round] = []
    truths: list[dict[int, Ids]] = []
    for sequence, prompt in enumerate(prompts):
        truth: dict[int, Ids] = {}
        before = _read_prompt(model, drafts, book, sequence, len(prompt), truth)
        for _ in range(rounds_each):
            rounds.append(_play_round(model, drafts, book, sequence, block_size, before, truth))
            if progress is not None:
                progress()
        model.forget(sequence)
        truths.append(truth)
    return Played(rounds, truths, model.num_experts)


def _read_prompt(
    model: WatchedModel, drafts: Drafts, book: TokenBook, sequence: int, length: int, truth: dict[int, Ids]
) -> _Before:
    """Read a prompt and commit the token after it. Changes state."""
    seat = Seat.chunk(sequence, length, length)
    seen = model.forward(book.rows(seat), seat, look_ahead=False)
    _note(truth, seen.ids, 0, length)
    drafts.observe(sequence, 0, seen.hidden.features)
    logits = model.target.logits(seen.hidden.rows[-1:])
    _, token = drafts.judge(Seat.chunk(sequence, 1, length), Drafted([]), logits, book)
    book.commit(sequence, [token])
    return _Before(seen.ids[:, -1], seen.ids[:, -1:], seen.hidden.features[-1])


def _play_round(
    model: WatchedModel,
    drafts: Drafts,
    book: TokenBook,
    sequence: int,
    block_size: int,
    before: _Before,
    truth: dict[int, Ids],
) -> Round:
    """Return one round. Changes state, `before` and `truth` among it."""
    position = book.prompt_tokens(sequence) + len(book.output(sequence)) - 1
    seat = Seat.block(sequence, block_size, position + 1)
    drafted = drafts.draft(seat, book)
    book.propose(sequence, drafted.tokens)
    tokens = book.rows(seat)
    embeddings = model.embed(tokens)
    seen = model.forward(tokens, seat, look_ahead=True)
    accepted, own = drafts.judge(seat, drafted, model.target.logits(seen.hidden.rows), book)
    kept = accepted + 1
    one = Round(
        sequence=sequence,
        position=position,
        kept=kept,
        ids=seen.ids,
        stale=seen.stale,
        stale_after=seen.stale_after,
        embedded=model.named(embeddings),
        last=before.last,
        last_kept=before.last_kept,
        embeddings=_array(embeddings),
        inputs=_draft_inputs(drafted, embeddings, before.features),
    )
    book.commit(sequence, [*drafted.tokens[:accepted], own])
    drafts.observe(sequence, position, seen.hidden.features[:kept])
    _note(truth, seen.ids, position, kept)
    _go_on(before, seen, kept)
    return one


def _draft_inputs(drafted: Drafted, embeddings: torch.Tensor, features: torch.Tensor) -> DraftInputs | None:
    if drafted.hidden is None:
        return None
    anchor = torch.cat([features, embeddings[0]])
    rows = torch.cat([drafted.hidden, embeddings[1:]], dim=1)
    return DraftInputs(anchor=_array(anchor), drafts=_array(rows))


def _array(tensor: torch.Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return tensor.float().cpu().numpy().copy()


def _note(truth: dict[int, Ids], ids: Ids, position: int, rows: int) -> None:
    for row in range(rows):
        truth[position + row] = ids[:, row]


def _go_on(before: _Before, seen: Seen, kept: int) -> None:
    before.last = seen.ids[:, kept - 1]
    before.last_kept = seen.ids[:, :kept]
    before.features = seen.hidden.features[kept - 1]

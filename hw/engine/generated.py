"""Forwards of real tokens: what they read comes from the model's routers, what is kept from its logits.

Greedy decoding keeps the drafts that the target would have chosen; with a temperature, drafts are kept so that what is
emitted follows the target's distribution (`hideaway.hw.acceptance`). A request ends when it has its tokens, whatever
they are: an end-of-text token is a token like others, so that lengths stay those of the scenario.
"""

from __future__ import annotations

from collections.abc import Set

import torch

from hideaway.hw.acceptance.greedy import accept_greedy
from hideaway.hw.acceptance.outcome import Outcome as Accepted
from hideaway.hw.acceptance.sampled import accept_sampled
from hideaway.hw.acceptance.sampling import SamplingRule, draw_rows
from hideaway.hw.engine.content import Outcome
from hideaway.hw.engine.model_work import ModelWork, mask_of_rows
from hideaway.hw.engine.recording import Recorder
from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.work import ForwardWork, Seat
from hideaway.sim.commands import Forward, Route
from hideaway.sim.scheduler import Scheduler


class Generated:
    """The `Content` of a run of a real model.

    Parameters
    ----------
    recorder : Recorder or None
        Told what every row read and what was kept.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        work: ModelWork,
        tokens: TokenBook,
        rule: SamplingRule,
        recorder: Recorder | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._work = work
        self._tokens = tokens
        self._rule = rule
        self._recorder = recorder
        prefetch = scheduler.cache.prefetch
        self._lookahead = prefetch.lookahead
        self._wants_last_rows = prefetch.last_rows
        self._wants_kept_rows = prefetch.kept_rows or prefetch.last_rows or prefetch.prefetches
        self._seats: tuple[Seat, ...] = ()
        self._kept: list[range] = []

    def drafting(self, seq_ids: tuple[int, ...]) -> None:
        """Nothing is settled before the model has seen the drafts."""

    def named(self, work: Route) -> tuple[tuple[int, ...], ...]:
        """Return the guesses of the route pass that has just run."""
        return tuple(self._work.named.pop(seq_id) for seq_id in work.seq_ids)

    def begin(self, work: Forward) -> ForwardWork:
        """Return the rows of a forward: blocks after each sequence's committed tokens, then the prompt chunk."""
        running = self._scheduler.batch.running
        seats = tuple(
            Seat.block(seq_id, rows, running[seq_id].prompt_tokens + running[seq_id].committed)
            for seq_id, rows in work.seats
        )
        prefill = None
        if work.prefill is not None:
            seq_id, first, tokens = work.prefill
            prefill = Seat.chunk(seq_id, tokens, first + tokens)
        forward = ForwardWork(seats, prefill)
        self._seats = forward.every_seat
        return forward

    def ahead(self, layer: int) -> tuple[int, ...]:
        """Return what the predictor says of the next layers."""
        return self._work.predictor.ahead(layer, self._lookahead) if self._lookahead else ()

    def readers(self, layer: int, expert: int) -> Set[int]:
        """Return the sequences whose rows chose an expert."""
        ids = self._work.ids[layer]
        readers = set()
        first = 0
        for seat in self._seats:
            if (ids[first : first + seat.num_rows] == expert).any():
                readers.add(seat.seq_id)
            first += seat.num_rows
        return readers

    def end(self, work: Forward, failed: Set[int]) -> Outcome:
        """Judge drafts, commit tokens, hand features to the drafter. Changes state."""
        self._kept = []
        committed = []
        first = 0
        for seat in self._seats[: len(work.seats)]:
            if seat.seq_id not in failed:
                committed.append((seat.seq_id, self._judge(seat, first)))
            first += seat.num_rows
        if work.prefill is not None and work.prefill[0] not in failed:
            self._prefilled(self._seats[-1], first)
        last: tuple[int, ...] = ()
        every: tuple[int, ...] = ()
        if self._wants_last_rows:
            last = self._union([kept[-1:] for kept in self._kept])
        if self._wants_kept_rows:
            every = self._union(self._kept)
        return Outcome(tuple(committed), last, every)

    def _judge(self, seat: Seat, first: int) -> int:
        """Commit what a block led to and return how many tokens that is. Changes state."""
        sequence = self._scheduler.batch.running[seat.seq_id]
        drafts = self._tokens.drafts(seat.seq_id)[: seat.num_rows - 1]
        outcome = self._accepted(seat, torch.tensor([drafts], dtype=torch.long), first)
        tokens = [*drafts[: int(outcome.accepted[0])], int(outcome.own[0])]
        length = len(tokens)
        tokens = tokens[: sequence.output_tokens - sequence.committed]
        if self._recorder is not None:
            self._recorder.round(seat, first, self._work.ids, kept=len(tokens), accepted=length)
        self._keep(seat, first, len(tokens))
        self._tokens.commit(seat.seq_id, tokens)
        return len(tokens)

    def _accepted(self, seat: Seat, drafts: torch.Tensor, first: int) -> Accepted:
        logits = self._work.logits[first : first + seat.num_rows][None]
        drafts = drafts.to(logits.device)
        if self._rule.temperature == 0:
            return accept_greedy(drafts, logits.argmax(dim=-1))
        target = self._rule.probabilities(logits)
        drawn_from = self._work.drafted.pop(seat.seq_id, None)
        q = target[:, :0] if drawn_from is None else drawn_from[None, : drafts.shape[1]]
        return accept_sampled(drafts, q, target, [self._tokens.generator(seat.seq_id)])

    def _prefilled(self, seat: Seat, first: int) -> None:
        """Keep a prompt chunk; its last one also yields a token. Changes state."""
        sequence = self._scheduler.batch.running[seat.seq_id]
        if self._recorder is not None:
            self._recorder.prompt(seat, first, self._work.ids)
        self._keep(seat, first, seat.num_rows)
        if seat.tokens_before + seat.num_rows < sequence.prompt_tokens:
            return
        logits = self._work.logits[-1]
        if self._rule.temperature == 0:
            token = int(logits.argmax())
        else:
            generators = [self._tokens.generator(seat.seq_id)]
            token = int(draw_rows(self._rule.probabilities(logits)[None, None], generators)[0, 0])
        self._tokens.commit(seat.seq_id, [token])

    def _keep(self, seat: Seat, first: int, count: int) -> None:
        self._kept.append(range(first, first + count))
        self._work.keep(seat, first, count)

    def _union(self, rows: list[range]) -> tuple[int, ...]:
        """Return per layer the experts that the given rows read."""
        chosen = [row for part in rows for row in part]
        return tuple(mask_of_rows(ids[chosen]) for ids in self._work.ids)

"""The tokens of every request of a run: prompts, what has been committed since, and the drafts not yet judged."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hideaway.hw.engine.work import Seat


class TokenBook:
    """Token ids by request; request r of a run has the r-th prompt.

    Parameters
    ----------
    prompts : sequence of sequence of int
        At least one token each.
    seed : int
        Seeds each request's own draws, so that they do not depend on who shares its batch.
    """

    def __init__(self, prompts: Sequence[Sequence[int]], seed: int) -> None:
        self._tokens = [list(prompt) for prompt in prompts]
        self._prompt_tokens = [len(prompt) for prompt in prompts]
        self._drafts: dict[int, list[int]] = {}
        self._seed = seed
        self._generators: dict[int, torch.Generator] = {}

    def prompt_tokens(self, seq_id: int) -> int:
        """Return the length of a request's own prompt."""
        return self._prompt_tokens[seq_id]

    def anchor(self, seq_id: int) -> int:
        """Return the last committed token."""
        return self._tokens[seq_id][-1]

    def propose(self, seq_id: int, drafts: Sequence[int]) -> None:
        """Keep what the drafter proposes after the anchor. Changes state."""
        self._drafts[seq_id] = list(drafts)

    def drafts(self, seq_id: int) -> list[int]:
        """Return what the drafter proposed after the anchor; empty where nothing was drafted."""
        return self._drafts.get(seq_id, [])

    def rows(self, seat: Seat) -> list[int]:
        """Return the token of each of a seat's rows: committed ones, then drafts."""
        known = self._tokens[seat.seq_id][seat.tokens_before : seat.tokens_before + seat.num_rows]
        return known + self.drafts(seat.seq_id)[: seat.num_rows - len(known)]

    def commit(self, seq_id: int, tokens: Sequence[int]) -> None:
        """Append committed tokens; what was drafted is judged. Changes state."""
        self._tokens[seq_id] += tokens
        self._drafts.pop(seq_id, None)

    def drop_drafts(self, seq_id: int) -> None:
        """Forget what was drafted. Changes state."""
        self._drafts.pop(seq_id, None)

    def output(self, seq_id: int) -> list[int]:
        """Return the tokens that were committed after the prompt."""
        return self._tokens[seq_id][self._prompt_tokens[seq_id] :]

    def generator(self, seq_id: int) -> torch.Generator:
        """Return a request's own generator, made when first asked for."""
        if seq_id not in self._generators:
            generator = torch.Generator()
            generator.manual_seed((self._seed * 1_000_003 + seq_id) % 2**63)
            self._generators[seq_id] = generator
        return self._generators[seq_id]

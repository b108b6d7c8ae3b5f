"""One request on its way through the system.

WAITING -> PREFILL -> (DRAFT -> ROUTE -> VERIFY)* -> FINISHED with a drafter, WAITING -> PREFILL -> DECODE* ->
FINISHED without. When KV memory runs out a sequence is PREEMPTED: back to WAITING, its tokens to be recomputed.
Next in a request's path: `hideaway.sim.batch`.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where a sequence is."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    FINISHED = "finished"


class Sequence:
    """The scheduler's state of one request; changed only by `hideaway.sim.batch`.

    Attributes
    ----------
    prompt_tokens : int
        Tokens to prefill: the input, and after a preemption also what had been generated.
    drafted : bool
        A drafted block waits for its verify.
    predicted : tuple of int
        Per layer, the experts its drafted block is said to read; empty when nothing routed it.
    predicted_packed : int
        The same in one integer (`hideaway.sim.masks.packed`), where admission counts bytes.
    """

    __slots__ = (
        "committed",
        "drafted",
        "kv_bytes",
        "output_tokens",
        "phase",
        "predicted",
        "predicted_packed",
        "prefilled",
        "prompt_tokens",
        "seq_id",
    )

    def __init__(self, seq_id: int, input_tokens: int, output_tokens: int) -> None:
        self.seq_id = seq_id
        self.prompt_tokens = input_tokens
        self.output_tokens = output_tokens
        self.prefilled = 0
        self.committed = 0
        self.kv_bytes = 0
        self.phase = Phase.WAITING
        self.drafted = False
        self.predicted: tuple[int, ...] = ()
        self.predicted_packed = 0

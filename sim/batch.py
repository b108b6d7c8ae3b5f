"""Which sequences run: waiting line, prefill, decode, KV memory and preemption. No expert is known here.

Continuous batching: requests join in order of arrival while seats and KV memory last; at most one prefill
chunk joins each forward; when KV memory runs out the youngest sequence is sent back to the line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hideaway.sim.errors import IllegalEventError, InputError
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.request import Phase, Sequence


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Limits of the batch.

    Parameters
    ----------
    max_sequences : int
        Sequences that run at once.
    block_size : int
        Rows verified per sequence and round (B); 1 is autoregressive decode.
    prefill_chunk_tokens : int
        Most prompt tokens per forward.
    """

    max_sequences: int
    block_size: int
    prefill_chunk_tokens: int


class Batch:
    """The sequences of one engine.

    Attributes
    ----------
    running : dict of seq_id to Sequence
        In prefill or decode, in order of admission.
    preemptions : int
        How often a sequence was sent back.
    newly_seated, newly_preempted : list of int
        Sequences seated and sent back since the world last took the lists.
    """

    def __init__(self, options: BatchOptions, kv: KvPool) -> None:
        self.options = options
        self.kv = kv
        self.running: dict[int, Sequence] = {}
        self.waiting: deque[Sequence] = deque()
        self.preemptions = 0
        self.newly_seated: list[int] = []
        self.newly_preempted: list[int] = []

    def join_line(self, seq_id: int, input_tokens: int, output_tokens: int) -> None:
        """Add a request to the waiting line. Changes state."""
        most = input_tokens + output_tokens + self.options.block_size
        if not self.kv.could_ever_fit(most):
            raise InputError(
                f"request {seq_id} needs KV memory for {most} tokens, more than the {self.kv.capacity_bytes} bytes "
                "set aside; lower the expert slots, shorten the request or use a card with more memory"
            )
        self.waiting.append(Sequence(seq_id, input_tokens, output_tokens))

    def seat_waiting(self) -> None:
        """Move requests from the line into the batch while seats and KV memory last. Changes state."""
        while self.waiting and len(self.running) < self.options.max_sequences:
            sequence = self.waiting[0]
            if not self.kv.fits(sequence, sequence.prompt_tokens + self.options.block_size):
                return
            self.waiting.popleft()
            self.kv.resize(sequence, sequence.prompt_tokens)
            sequence.phase = Phase.PREFILL
            self.running[sequence.seq_id] = sequence
            self.newly_seated.append(sequence.seq_id)

    def decoding(self) -> list[Sequence]:
        """Return the sequences in decode, oldest first; changes nothing."""
        return [sequence for sequence in self.running.values() if sequence.phase is Phase.DECODE]

    def prefill_chunk(self) -> tuple[int, int, int] | None:
        """Return (seq_id, first token, tokens) of the next prefill chunk, or None; changes nothing."""
        for sequence in self.running.values():
            if sequence.phase is Phase.PREFILL:
                left = sequence.prompt_tokens - sequence.prefilled
                return sequence.seq_id, sequence.prefilled, min(left, self.options.prefill_chunk_tokens)
        return None

    def grow(self, sequences: list[Sequence]) -> list[Sequence]:
        """Take KV memory for one more block of each; preempt the youngest when it runs out. Changes state.

        Returns the sequences that may run.
        """
        block = self.options.block_size
        for sequence in sequences:
            if self.running.get(sequence.seq_id) is not sequence:
                continue
            context = sequence.prompt_tokens + sequence.committed + block
            while not self.kv.fits(sequence, context):
                youngest = next(reversed(self.running.values()))
                self._preempt(youngest)
                if youngest is sequence:
                    break
            else:
                self.kv.resize(sequence, context)
        return [sequence for sequence in sequences if sequence.seq_id in self.running]

    def _preempt(self, sequence: Sequence) -> None:
        del self.running[sequence.seq_id]
        self.kv.resize(sequence, 0)
        sequence.prompt_tokens += sequence.committed
        sequence.output_tokens -= sequence.committed
        sequence.committed = 0
        sequence.prefilled = 0
        sequence.drafted = False
        sequence.predicted = ()
        sequence.predicted_packed = 0
        sequence.phase = Phase.WAITING
        self.waiting.appendleft(sequence)
        self.newly_preempted.append(sequence.seq_id)
        self.preemptions += 1

    def note_drafted(self, seq_id: int) -> None:
        """Note that a sequence's drafted block waits for its verify. Changes state."""
        self._running(seq_id).drafted = True

    def note_predicted(self, seq_id: int, predicted: tuple[int, ...], predicted_packed: int) -> None:
        """Note which experts a sequence's drafted block is said to read. Changes state."""
        sequence = self._running(seq_id)
        sequence.predicted = predicted
        sequence.predicted_packed = predicted_packed

    def note_prefilled(self, seq_id: int, tokens: int) -> None:
        """Advance a prompt; its last chunk also yields the first token. Changes state."""
        sequence = self._running(seq_id)
        sequence.prefilled += tokens
        if sequence.prefilled >= sequence.prompt_tokens:
            sequence.phase = Phase.DECODE
            self._commit(sequence, 1)

    def note_committed(self, seq_id: int, tokens: int) -> None:
        """Advance a sequence by the tokens its round committed. Changes state."""
        sequence = self._running(seq_id)
        sequence.drafted = False
        sequence.predicted = ()
        sequence.predicted_packed = 0
        self._commit(sequence, tokens)

    def drop(self, seq_id: int) -> None:
        """End a running sequence before it has its tokens and take its memory back. Changes state."""
        sequence = self._running(seq_id)
        sequence.phase = Phase.FINISHED
        self.kv.resize(sequence, 0)
        del self.running[seq_id]

    def _commit(self, sequence: Sequence, tokens: int) -> None:
        sequence.committed += tokens
        if sequence.committed >= sequence.output_tokens:
            sequence.phase = Phase.FINISHED
            self.kv.resize(sequence, 0)
            del self.running[sequence.seq_id]

    def _running(self, seq_id: int) -> Sequence:
        if seq_id not in self.running:
            raise IllegalEventError(f"sequence {seq_id} is not running; only running sequences can go on")
        return self.running[seq_id]

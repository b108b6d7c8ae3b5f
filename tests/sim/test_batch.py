"""The waiting line, chunked prefill, seats, KV memory and preemption."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.batch import Batch, BatchOptions
from hideaway.sim.errors import IllegalEventError, InputError
from hideaway.sim.kv_pool import KvPool
from hideaway.sim.request import Phase


def batch_of(*, seats=4, block=1, chunk=100, kv_tokens=10_000):
    """Return a batch whose KV memory holds `kv_tokens` tokens of one byte each."""
    return Batch(BatchOptions(seats, block, chunk), KvPool(kv_tokens, lambda tokens: tokens))


def prefill_all(batch):
    """Run prefill chunks until no sequence is in prefill and return them."""
    chunks = []
    while (chunk := batch.prefill_chunk()) is not None:
        chunks.append(chunk)
        batch.note_prefilled(chunk[0], chunk[2])
    return chunks


def test_requests_are_seated_in_order_of_arrival_while_seats_last():
    batch = batch_of(seats=2)
    for seq_id in (7, 3, 5):
        batch.join_line(seq_id, 10, 10)
    batch.seat_waiting()
    assert list(batch.running) == [7, 3]
    assert batch.newly_seated == [7, 3]
    assert [sequence.seq_id for sequence in batch.waiting] == [5]


def test_a_large_head_of_the_line_is_not_overtaken_by_a_small_request():
    batch = batch_of(kv_tokens=100)
    batch.join_line(0, 60, 1)
    batch.join_line(1, 90, 1)
    batch.join_line(2, 5, 1)
    batch.seat_waiting()
    assert list(batch.running) == [0]
    assert [sequence.seq_id for sequence in batch.waiting] == [1, 2]


def test_a_prompt_longer_than_the_chunk_is_prefilled_piece_by_piece():
    batch = batch_of(chunk=100)
    batch.join_line(0, 250, 5)
    batch.seat_waiting()
    assert prefill_all(batch) == [(0, 0, 100), (0, 100, 100), (0, 200, 50)]
    assert batch.running[0].phase is Phase.DECODE
    assert batch.running[0].committed == 1


def test_one_prompt_is_finished_before_the_next_begins():
    batch = batch_of(chunk=100)
    batch.join_line(0, 150, 5)
    batch.join_line(1, 30, 5)
    batch.seat_waiting()
    assert prefill_all(batch) == [(0, 0, 100), (0, 100, 50), (1, 0, 30)]


def test_the_last_prefill_chunk_yields_the_first_token():
    batch = batch_of()
    batch.join_line(0, 10, 1)
    batch.seat_waiting()
    prefill_all(batch)
    assert batch.running == {}
    assert batch.kv.used_bytes == 0


def test_only_decoding_sequences_are_decoding_oldest_first():
    batch = batch_of(seats=3)
    for seq_id in (4, 2, 9):
        batch.join_line(seq_id, 10, 10)
    batch.seat_waiting()
    batch.note_prefilled(4, 10)
    batch.note_prefilled(2, 10)
    assert [sequence.seq_id for sequence in batch.decoding()] == [4, 2]


def test_a_finished_sequence_gives_its_seat_and_its_memory_to_the_next():
    batch = batch_of(seats=1)
    batch.join_line(0, 10, 3)
    batch.join_line(1, 20, 3)
    batch.seat_waiting()
    prefill_all(batch)
    batch.note_committed(0, 2)
    assert batch.kv.used_bytes == 0
    batch.seat_waiting()
    assert list(batch.running) == [1]
    assert batch.kv.used_bytes == 20


def test_growing_takes_memory_for_the_context_and_one_block():
    batch = batch_of(block=8)
    batch.join_line(0, 10, 30)
    batch.seat_waiting()
    prefill_all(batch)
    assert [sequence.seq_id for sequence in batch.grow(batch.decoding())] == [0]
    assert batch.kv.used_bytes == 10 + 1 + 8


def test_when_memory_runs_out_the_youngest_goes_back_to_the_head_of_the_line():
    batch = batch_of(block=4, kv_tokens=100)
    for seq_id, prompt in enumerate((30, 30, 20)):
        batch.join_line(seq_id, prompt, 40)
    batch.join_line(3, 5, 40)
    batch.seat_waiting()
    assert list(batch.running) == [0, 1, 2, 3]
    prefill_all(batch)
    allowed = batch.grow(batch.decoding())
    assert [sequence.seq_id for sequence in allowed] == [0, 1, 2]
    batch.note_committed(0, 4)
    allowed = batch.grow(batch.decoding())
    assert [sequence.seq_id for sequence in allowed] == [0, 1, 2]
    batch.note_committed(0, 4)
    batch.note_committed(1, 4)
    allowed = batch.grow(batch.decoding())
    assert [sequence.seq_id for sequence in allowed] == [0, 1]
    assert [sequence.seq_id for sequence in batch.waiting] == [2, 3]
    assert batch.preemptions == 2


def test_a_preempted_sequence_recomputes_its_prompt_and_what_it_had_generated():
    batch = batch_of(seats=2, block=4, kv_tokens=50)
    batch.join_line(0, 20, 20)
    batch.join_line(1, 10, 20)
    batch.seat_waiting()
    prefill_all(batch)
    batch.grow(batch.decoding())
    batch.note_drafted(1)
    batch.note_predicted(1, (3,), 3)
    batch.note_committed(0, 9)
    batch.note_committed(1, 3)
    batch.grow([batch.running[0]])
    assert list(batch.running) == [0, 1]
    batch.note_committed(0, 9)
    batch.note_drafted(1)
    batch.grow([batch.running[0]])
    assert list(batch.running) == [0]
    sequence = batch.waiting[0]
    assert (sequence.prompt_tokens, sequence.output_tokens) == (14, 16)
    assert (sequence.prefilled, sequence.committed, sequence.kv_bytes) == (0, 0, 0)
    assert (sequence.drafted, sequence.predicted, sequence.phase) == (False, (), Phase.WAITING)
    batch.note_committed(0, 1)
    batch.seat_waiting()
    assert prefill_all(batch) == [(1, 0, 14)]
    assert batch.running[1].committed == 1


def test_a_request_that_can_never_fit_is_one_sentence():
    batch = batch_of(block=8, kv_tokens=100)
    batch.join_line(0, 50, 42)
    with pytest.raises(InputError, match="request 1 needs KV memory for 101 tokens, more than the 100 bytes"):
        batch.join_line(1, 50, 43)


def test_a_dropped_sequence_leaves_its_seat_and_its_memory():
    batch = batch_of(seats=1)
    batch.join_line(0, 10, 30)
    batch.join_line(1, 20, 30)
    batch.seat_waiting()
    batch.drop(0)
    assert (batch.running, batch.kv.used_bytes) == ({}, 0)
    batch.seat_waiting()
    assert list(batch.running) == [1]


@pytest.mark.parametrize("note", ["note_prefilled", "note_committed", "note_drafted", "drop"])
def test_a_sequence_that_does_not_run_cannot_advance(note):
    batch = batch_of()
    batch.join_line(0, 10, 10)
    with pytest.raises(IllegalEventError, match="sequence 0 is not running"):
        getattr(batch, note)(*((0, 1) if note in ("note_prefilled", "note_committed") else (0,)))


def test_committing_a_block_ends_its_draft():
    batch = batch_of(block=4)
    batch.join_line(0, 10, 30)
    batch.seat_waiting()
    prefill_all(batch)
    batch.note_drafted(0)
    batch.note_predicted(0, (1, 2), 9)
    batch.note_committed(0, 2)
    sequence = batch.running[0]
    assert (sequence.drafted, sequence.predicted, sequence.predicted_packed) == (False, (), 0)


@given(
    requests=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), min_size=1, max_size=8),
    seats=st.integers(1, 4),
    block=st.integers(1, 6),
    chunk=st.integers(1, 50),
    spare=st.integers(0, 120),
    data=st.data(),
)
def test_every_request_finishes_within_its_memory_however_often_it_is_preempted(
    requests, seats, block, chunk, spare, data
):
    kv_tokens = max(prompt + output for prompt, output in requests) + block + spare
    batch = batch_of(seats=seats, block=block, chunk=chunk, kv_tokens=kv_tokens)
    for seq_id, (prompt, output) in enumerate(requests):
        batch.join_line(seq_id, prompt, output)
    first_seated, forwards = [], 0
    committed = dict.fromkeys(range(len(requests)), 0)
    while batch.running or batch.waiting:
        batch.seat_waiting()
        first_seated += [seq_id for seq_id in batch.newly_seated if seq_id not in first_seated]
        batch.newly_seated.clear()
        oldest = next(iter(batch.running.values()))
        before = dict(batch.running)
        allowed = batch.grow(batch.decoding())
        gone = [seq_id for seq_id in before if seq_id not in batch.running]
        assert gone == list(before)[len(before) - len(gone) :], "only the youngest are preempted"
        assert oldest.seq_id in batch.running, "the oldest always goes on"
        assert all(sequence.phase is Phase.DECODE for sequence in allowed)
        assert len(batch.running) <= seats
        assert batch.kv.used_bytes == sum(sequence.kv_bytes for sequence in batch.running.values())
        assert batch.kv.used_bytes <= batch.kv.peak_bytes <= kv_tokens
        for sequence in allowed:
            tokens = data.draw(st.integers(1, block))
            tokens = min(tokens, sequence.output_tokens - sequence.committed)
            committed[sequence.seq_id] += tokens
            batch.note_committed(sequence.seq_id, tokens)
        part = batch.prefill_chunk()
        if part is not None:
            seq_id, first, tokens = part
            sequence = batch.running[seq_id]
            assert first == sequence.prefilled
            assert 1 <= tokens <= chunk
            committed[seq_id] += first + tokens == sequence.prompt_tokens
            batch.note_prefilled(seq_id, tokens)
        forwards += 1
        assert forwards < 5000
    assert committed == {seq_id: output for seq_id, (_, output) in enumerate(requests)}
    assert first_seated == list(range(len(requests)))
    assert batch.kv.used_bytes == 0


def test_a_dropped_sequence_gives_its_memory_back_and_is_not_seated_again() -> None:
    batch = Batch(BatchOptions(2, 4, 16), KvPool(1000, lambda tokens: tokens))
    batch.join_line(0, 10, 5)
    batch.seat_waiting()
    assert batch.kv.used_bytes == 10
    batch.drop(0)
    batch.seat_waiting()
    assert batch.kv.used_bytes == 0
    assert not batch.running
    with pytest.raises(IllegalEventError, match="sequence 0 is not running"):
        batch.drop(0)

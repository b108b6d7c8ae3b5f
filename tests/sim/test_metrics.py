"""Closed forms on hand-made runs: first tokens, rounds, the throughput window."""

import pytest

from hideaway.sim.metrics import MIN_WINDOW_TOKENS, Meter


def meter_with(*arrivals, output_tokens=1000):
    meter = Meter()
    for seq_id, at_seconds in enumerate(arrivals):
        meter.arrived(seq_id, at_seconds, output_tokens)
    return meter


def test_a_round_lasts_from_the_previous_commit_so_it_includes_the_wait_for_admission():
    meter = meter_with(0.0)
    meter.first_token(0, 1.0)
    meter.round(0, 1.5, 3)
    meter.round(0, 9.5, 2)
    assert meter.round_latencies().tolist() == [0.5, 8.0]
    assert (meter.rounds, meter.round_tokens) == (2, 5)


def test_rounds_of_different_sequences_are_measured_apart():
    meter = meter_with(0.0, 0.0)
    meter.first_token(0, 1.0)
    meter.first_token(1, 2.0)
    meter.round(1, 3.0, 1)
    meter.round(0, 4.0, 1)
    assert meter.round_latencies().tolist() == [1.0, 3.0]


def test_a_run_without_rounds_has_no_latencies():
    meter = meter_with(0.0)
    meter.first_token(0, 1.0)
    assert meter.round_latencies().tolist() == []


def test_the_first_token_of_a_recomputed_prompt_is_not_a_second_first_token():
    meter = meter_with(0.5)
    meter.first_token(0, 1.0)
    meter.first_token(0, 7.0)
    meter.round(0, 8.0, 1)
    assert meter.requests[0].first_token_seconds == 1.0
    assert meter.round_latencies().tolist() == [1.0]


def test_an_open_loop_counts_the_whole_run():
    meter = meter_with(0.0, 5.0)
    meter.first_token(0, 1.0)
    meter.round(0, 2.0, 4)
    meter.first_token(1, 6.0)
    meter.finished(0, 2.0)
    meter.finished(1, 10.0)
    assert meter.window(None) == (0.0, 10.0)
    assert meter.tokens_per_second(meter.window(None)) == 6 / 10.0


def closed_loop(window_tokens):
    """Two seats; the first wave has its first tokens by 2 s, the last request is admitted at 8 s, all end at 20 s."""
    meter = meter_with(0.0, 0.0, 6.0, 8.0)
    meter.admitted(0, 0.0)
    meter.admitted(1, 0.0)
    meter.first_token(0, 1.0)
    meter.round(0, 1.5, 7)
    meter.first_token(1, 2.0)
    meter.admitted(2, 6.0)
    meter.round(0, 6.0, window_tokens - 1)
    meter.finished(0, 6.0)
    meter.round(1, 8.0, 1)
    meter.finished(1, 8.0)
    meter.admitted(3, 8.0)
    meter.first_token(2, 8.5)
    meter.first_token(3, 9.0)
    meter.finished(2, 12.0)
    meter.finished(3, 20.0)
    return meter


def test_a_closed_loop_counts_from_the_first_waves_last_first_token_to_the_last_admission():
    meter = closed_loop(MIN_WINDOW_TOKENS)
    assert meter.window(2) == (2.0, 8.0)
    assert meter.tokens_per_second((2.0, 8.0)) == pytest.approx(MIN_WINDOW_TOKENS / 6.0)


def test_a_window_with_too_few_tokens_gives_way_to_the_whole_run():
    assert closed_loop(MIN_WINDOW_TOKENS - 1).window(2) == (0.0, 20.0)


def test_seating_a_preempted_sequence_again_is_no_new_admission():
    meter = closed_loop(MIN_WINDOW_TOKENS)
    meter.admitted(2, 11.0)
    assert meter.window(2) == (2.0, 8.0)


def test_a_window_that_never_opens_gives_way_to_the_whole_run():
    meter = meter_with(0.0, 0.0)
    meter.admitted(0, 0.0)
    meter.admitted(1, 0.0)
    meter.first_token(0, 3.0)
    meter.first_token(1, 4.0)
    meter.finished(1, 5.0)
    assert meter.window(2) == (0.0, 5.0)


def test_an_empty_window_has_no_throughput():
    assert meter_with(0.0).tokens_per_second((0.0, 0.0)) == 0.0


def test_occupancies_are_weighted_by_the_time_they_were_held():
    meter = Meter()
    meter.forward(0.0, 1.0, expert_bytes=100, kv_bytes=10)
    meter.forward(5.0, 8.0, expert_bytes=20, kv_bytes=30)
    assert meter.occupied_seconds == 4.0
    assert meter.occupied_expert_bytes / meter.occupied_seconds == (100 + 3 * 20) / 4
    assert meter.occupied_kv_bytes / meter.occupied_seconds == (10 + 3 * 30) / 4
    assert (meter.forwards, meter.forward_seconds) == (2, 4.0)

"""Arrivals: shipped extracts, the public formats, Poisson times, and files that are wrong."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.arrivals import (
    RequestSpec,
    arrival_source_names,
    load_arrival_source,
    load_arrivals,
)

AZURE_HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = AZURE_HEADER + "2023-11-16 18:17:03.9799600,374,44\n2023-11-16 18:17:08.2945600,396,109\n"
AZURE_2024 = AZURE_HEADER + "2024-05-10 00:00:00.009930+00:00,10,2\n2024-05-10 00:00:01.009930+00:00,20,3\n"
BURST_GPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n118,GPT-4,417,276,693,API log\n"
)
OURS = "arrival_seconds,input_tokens,output_tokens\n0.5,10,1\n2.0,20,2\n"
LENGTHS = "input_tokens,output_tokens\n10,1\n20,2\n"
MOONCAKE = "".join(
    json.dumps({"timestamp": at, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}) + "\n"
    for at in (0, 1500, 3000)
)
SHARE_GPT = json.dumps(
    [
        {
            "id": "a",
            "conversations": [{"from": "human", "value": "x" * 9}, {"from": "gpt", "value": "y" * 4}],
        },
        {"id": "b", "conversations": [{"from": "system", "value": "s"}, {"from": "user", "value": "x"}]},
        {
            "id": "c",
            "conversations": [{"from": "user", "value": "x" * 8}, {"from": "assistant", "value": "y"}],
        },
    ]
)


def write(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "rows", "last_seconds", "first"),
    [
        ("azure-conv", 2000, 424.2595, (374, 44)),
        ("azure-code", 2000, 853.0793, (4808, 10)),
        ("mooncake-conversation", 2000, 669.0, (6758, 500)),
        ("sharegpt", 300, 29.183763 - 0.046927, (2361, 532)),
    ],
)
def test_shipped_traces_hold_what_their_provenance_says(name, rows, last_seconds, first):
    source = load_arrival_source(name)
    assert source.num_requests == rows
    assert source.arrival_seconds[0] == 0.0
    assert source.arrival_seconds[-1] == pytest.approx(last_seconds, abs=1e-6)
    assert (source.input_tokens[0], source.output_tokens[0]) == first
    assert "left out" not in source.origin


def test_names_are_listed_and_every_one_loads():
    assert arrival_source_names() == ("azure-conv", "azure-code", "mooncake-conversation", "sharegpt")
    for name in arrival_source_names():
        assert len(load_arrivals(name, num_requests=5)) == 5


def test_a_thousand_requests_of_the_azure_conversation_trace_keep_its_times():
    requests = load_arrivals("azure-conv", num_requests=1000)
    assert len(requests) == 1000
    assert requests[1] == RequestSpec(4.3146, 396, 109)
    assert all(a.arrival_seconds <= b.arrival_seconds for a, b in pairwise(requests))


def test_a_rate_keeps_the_lengths_and_draws_poisson_times():
    count, rate = 2000, 4.0
    plain = load_arrivals("azure-code", num_requests=count)
    timed = load_arrivals(
        "azure-code", num_requests=count, rate_requests_per_second=rate, rng=np.random.default_rng(3)
    )
    assert [r.input_tokens for r in timed] == [r.input_tokens for r in plain]
    assert [r.output_tokens for r in timed] == [r.output_tokens for r in plain]
    gaps = np.diff([0.0, *(r.arrival_seconds for r in timed)])
    # Exponential gaps: mean 1/rate with standard error 1/(rate sqrt n); E[gap**2] = 2/rate**2 with var 20/rate**4.
    assert abs(gaps.mean() * rate - 1.0) < 4.0 / math.sqrt(count)
    assert abs((gaps**2).mean() * rate**2 - 2.0) < 4.0 * math.sqrt(20.0 / count)


def test_lengths_only_puts_every_request_at_zero(tmp_path):
    requests = load_arrivals(write(tmp_path, LENGTHS), lengths_only=True)
    assert requests == (RequestSpec(0.0, 10, 1), RequestSpec(0.0, 20, 2))


def test_a_trace_without_times_needs_a_rate(tmp_path):
    path = write(tmp_path, LENGTHS)
    with pytest.raises(InputError, match="lengths but no times; give a rate"):
        load_arrivals(path)
    assert len(load_arrivals(path, rate_requests_per_second=1.0, rng=np.random.default_rng(0))) == 2


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (AZURE, "t.csv", [(0.0, 374, 44), (4.3146, 396, 109)]),
        (AZURE_2024, "t.csv", [(0.0, 10, 2), (1.0, 20, 3)]),
        (BURST_GPT, "t.csv", [(0.0, 472, 18), (113.0, 417, 276)]),
        (OURS, "t.csv", [(0.0, 10, 1), (1.5, 20, 2)]),
        ("\ufeff" + OURS, "t.csv", [(0.0, 10, 1), (1.5, 20, 2)]),
        (MOONCAKE, "t.jsonl", [(0.0, 6758, 500), (1.5, 6758, 500), (3.0, 6758, 500)]),
    ],
)
def test_public_formats_are_read_from_a_path(tmp_path, text, name, expected):
    requests = load_arrivals(write(tmp_path, text, name))
    assert [(r.input_tokens, r.output_tokens) for r in requests] == [row[1:] for row in expected]
    assert [r.arrival_seconds for r in requests] == pytest.approx([row[0] for row in expected], abs=1e-6)


def test_share_gpt_lengths_are_a_quarter_of_the_characters_rounded_up_and_the_origin_says_so(tmp_path):
    source = load_arrival_source(write(tmp_path, SHARE_GPT, "t.json"))
    assert source.input_tokens.tolist() == [3, 2]
    assert source.output_tokens.tolist() == [1, 1]
    assert source.arrival_seconds is None
    assert "ceil(characters / 4)" in source.origin
    assert "1 requests without input or output tokens left out" in source.origin


def test_requests_without_output_are_left_out_and_counted(tmp_path):
    assert "1 requests without input or output" in load_arrival_source(write(tmp_path, BURST_GPT)).origin


def test_rows_out_of_order_are_sorted_by_time_and_ties_keep_their_order(tmp_path):
    text = "arrival_seconds,input_tokens,output_tokens\n7,1,1\n3,2,1\n7,3,1\n3,4,1\n"
    assert [r.input_tokens for r in load_arrivals(write(tmp_path, text))] == [2, 4, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_requests": 2001}, "2001 requests were asked of arrival trace 'azure-conv', which has 2000"),
        ({"num_requests": 2001, "rate_requests_per_second": 1.0}, "which has 2000"),
        ({"num_requests": 0}, "ask for 1 to 2000"),
        ({"rate_requests_per_second": 0.0}, "finite rate above 0"),
        ({"rate_requests_per_second": math.nan}, "finite rate above 0"),
        ({"rate_requests_per_second": 1.0}, "without a random generator"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        load_arrivals("azure-conv", **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "starts with columns ''; give one of"),
        ("a,b\n1,2\n", "give one of: arrival_seconds,input_tokens,output_tokens"),
        ("input_tokens,output_tokens\n", "holds no request"),
        ("input_tokens,output_tokens\n0,5\n", "holds no request"),
        ("input_tokens,output_tokens\n1\n", "has 1 fields"),
        ("input_tokens,output_tokens\n1.5,2\n", "input_tokens of line 2 .* whole number"),
        ("input_tokens,output_tokens\n-1,2\n", "whole number from 0"),
        ("input_tokens,output_tokens\nnan,2\n", "finite number"),
        ("input_tokens,output_tokens\n1e12,2\n", "whole number from 0 to 10000000"),
        ("input_tokens,output_tokens\n1_000,2\n", "finite number"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", "give a date and time"),
        ("{}\n", "neither Mooncake"),
        ("[]", "holds no request"),
        ("[1]", "neither Mooncake"),
        ('{"input_length": 1}\n', "has no timestamp, output_length"),
        ('{"timestamp": 0, "input_length": true, "output_length": 1}\n', "finite number"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}\n', "finite number"),
        ('{"timestamp": 0, "input_length": ' + "9" * 5000 + ', "output_length": 1}\n', "is not JSON"),
        ('{"conversations": 3}\n', "no list of conversations"),
        ('{"conversations": [{"from": "human"}]}\n', "from and value"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_malformed_files_are_refused_with_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        load_arrivals(write(tmp_path, text), rate_requests_per_second=1.0, rng=np.random.default_rng(0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("trace", ["", "azure", "no/such/file.csv", "a\0b", "."])
def test_names_and_paths_that_lead_nowhere_are_refused(trace):
    with pytest.raises(InputError):
        load_arrivals(trace)


def outcome(load):
    """Return what loading gives, or the sentence it is refused with."""
    try:
        return load()
    except InputError as error:
        return str(error)


@given(
    seed=st.sampled_from([AZURE, BURST_GPT, OURS, MOONCAKE, SHARE_GPT]),
    cuts=st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 4), st.binary(max_size=4)), min_size=1, max_size=4
    ),
)
def test_mutilated_files_load_or_are_refused(tmp_path_factory, seed, cuts):
    data = seed.encode()
    for place, length, inserted in cuts:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + length :]
    path = tmp_path_factory.mktemp("fuzz") / "trace"
    path.write_bytes(data)
    result = outcome(lambda: load_arrivals(str(path), lengths_only=True))
    assert "\n" not in result if isinstance(result, str) else len(result) >= 1

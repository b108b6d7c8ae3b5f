"""Some of the malformed inputs of the campaign, and the faults that were found with them."""

from __future__ import annotations

import copy
import io
import sys
from typing import Any

import numpy as np
import pytest

from hideaway.main import main
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import UnionTable, union_table
from hideaway.sim.inputs.routing.trace import RoutingTrace
from hideaway.sim.timeline import Timeline
from hideaway.sim.world import simulate as world_simulate
from tests.malformed import sound
from tests.malformed.case import (
    Case,
    Content,
    SparseFile,
    complaint_as_process,
    complaint_in_process,
)
from tests.malformed.draw import malformed_cases
from tests.malformed.spoilt_flags import HIDE_NOMINAL, SIMULATE
from tests.malformed.spoilt_json import spoilt_document, timeline_document

OTHER_SEED = 6


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_malformed_inputs_are_refused_with_one_sentence(first, tmp_path):
    complaints = []
    for index in range(first, first + 20):
        folder = tmp_path / str(index)
        folder.mkdir()
        complaints.append(complaint_in_process(malformed_cases(60, OTHER_SEED)[index], folder))
    assert [complaint for complaint in complaints if complaint] == []


def test_a_process_refuses_with_one_sentence_too(tmp_path):
    case = Case("flag", (*SIMULATE, "--rate", "1e-300"), (), ("rate",))
    assert complaint_as_process(case, tmp_path) is None


@pytest.mark.parametrize("number", range(0, 200, 50))
def test_a_spoilt_timeline_is_refused_with_the_number_of_the_line(number, tmp_path):
    path = tmp_path / "run.jsonl"
    document = timeline_document()
    for index in range(number, number + 50):
        ((_, content),) = spoilt_document(document, np.random.default_rng([OTHER_SEED, index])).files
        assert isinstance(content, bytes)
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"run\.jsonl"):
            Timeline.read_jsonl(path)


FAULTS: dict[str, tuple[tuple[str, ...], str]] = {
    "arrivals so far apart that no float tells a launch": (("--rate", "1e-300"), "rate"),
    "arrivals all at once": (("--rate", "1e17"), "rate"),
    "a block longer than any context": (("--block-size", "100000"), "block_size"),
    "more layers ahead than there are": (("--lookahead", "1000000000"), "lookahead"),
    "memory for as many copies as there are bytes": (("--submitted-depth", "1000000000"), "submitted_depth"),
    "staging slots of a model that stages nothing": (
        ("--baseline", "B3", "--staging-slots", "1000000000"),
        "staging_slots",
    ),
    "a copy a byte": (("--chunk-bytes", "1"), "chunk_bytes"),
    "a drafter of no weight": (("--drafter-parameters", "1e-300"), "drafter_parameters"),
    "a limit nobody meets": (("--ttft-limit-seconds", "1e-300"), "ttft_limit_seconds"),
    "a link that never delivers": (
        ("--set", "link.h2d_bytes_per_second=1e-300"),
        "link.h2d_bytes_per_second",
    ),
    "memory that is never read": (
        ("--set", "memory.read_bytes_per_second=1e-300"),
        "memory.read_bytes_per_second",
    ),
    "compute of no speed": (("--set", "compute.flops_per_second=5e-324"), "compute.flops_per_second"),
    "a number that is no plain one": (("--set", "link.latency_seconds=1_0"), "link.latency_seconds"),
    "an empty path for the scenario": (("--scenario", ""), "scenario"),
    "an empty name that would mean the default": (("--routing", ""), "routing"),
    "a path for the trace longer than a path can be": (("--trace", "a" * 5000), "arrival trace"),
    "a folder for the timeline": (("--timeline", "."), "--timeline"),
    "one file for two outputs": (
        ("--timeline", "a.jsonl", "--event-log", "./a.jsonl"),
        "--timeline and --event-log",
    ),
    "an output without a name": (("--perfetto", ""), "--perfetto"),
    "a device in place of an output": (("-o", "/dev/null"), "/dev/null"),
    "a device without an end as a scenario": (("--scenario", "/dev/zero"), "/dev/zero"),
}


@pytest.mark.parametrize(("flags", "name"), FAULTS.values(), ids=FAULTS.keys())
def test_what_made_a_run_endless_meaningless_or_fail_is_refused(flags, name, tmp_path):
    assert complaint_in_process(Case("flag", (*SIMULATE, *flags), (), (name,)), tmp_path) is None


@pytest.mark.parametrize(
    "flags",
    [
        ("--latency-seconds", "-1"), ("--experts-per-layer", "nan"), ("--dense-share", "7"),
        ("--block-size", "0"), ("--concurrency=-3",),
        ("--expert-bytes", "9" * 30), ("--idle-link-seconds", "inf"),
    ],
)  # fmt: skip
def test_terms_that_the_question_passes_over_are_checked_too(flags, tmp_path):
    name = flags[0].removeprefix("--").partition("=")[0].replace("-", "_")
    assert complaint_in_process(Case("flag", (*HIDE_NOMINAL, *flags), (), (name,)), tmp_path) is None


def large_model(layers: int, experts: int) -> dict[str, Any]:
    model = copy.deepcopy(sound.TINY_MODEL)
    model["layer_kinds"] = ["full"] * layers
    model["experts"]["count"] = experts
    return model


def short_sequences() -> dict[str, Any]:
    return {**sound.ROUTER_FIT, "sequence_lengths": [1]}


FILES: dict[str, tuple[tuple[str, ...], str, Content, str]] = {
    "more experts than tables of them fit in memory": (
        (*SIMULATE, "--model", "m.json"), "m.json", sound.text_of(large_model(4, 2**14)), "experts"),
    "more layers than can be simulated": (
        (*SIMULATE, "--model", "m.json"), "m.json", sound.text_of(large_model(4096, 64)), "experts"),
    "a router with as many sequences as tokens": (
        (*SIMULATE, "--model", "qwen3-30b-a3b", "--routing", "fitted:r.json"), "r.json",
        sound.text_of(short_sequences()),
        "sequence_lengths"),
    "a file of two gibibytes": (("gates", "rows.json"), "rows.json", SparseFile(), "rows.json"),
    "a key twice": (("profile", "show", "p.json"), "p.json",
                    sound.text_of(sound.PROFILES["rtx-5090"]).replace(b'"name":',
                                                                      b'"name": "other", "name":'),
                                                                      "'name' stands twice"),
    "a TOML number of thousands of digits": (("simulate", "--scenario", "s.toml"), "s.toml",
                                             b"seed = " + b"9" * 5000, "s.toml"),
    "a request of years": ((*SIMULATE, "--trace", "t.csv"), "t.csv",
                           b"input_tokens,output_tokens\n20,1000000000000\n", "t.csv"),
    "requests of hours": (
        ("simulate", "--trace", "t.csv", "--requests", "10", "--prefill-chunk-tokens", "1"), "t.csv",
        b"input_tokens,output_tokens\n" + b"9000000,9000000\n" * 10, "layer visits"),
    "arrivals that lie centuries apart": (
        ("simulate", "--trace", "t.csv", "--requests", "2", "--open-loop"), "t.csv",
        b"arrival_seconds,input_tokens,output_tokens\n0,20,5\n1e290,20,5\n", "arrives at"),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "file", "content", "name"), FILES.values(), ids=FILES.keys())
def test_files_that_ask_for_absurd_memory_or_time_are_refused(argv, file, content, name, tmp_path):
    assert complaint_in_process(Case("file", argv, ((file, content),), (name,)), tmp_path) is None


def test_a_routing_trace_too_long_for_its_table_says_what_length_fits(monkeypatch):
    monkeypatch.setattr(union_table, "MAX_TABLE_BYTES", 8 * 2 * 8 * (128 + 30))
    ids = np.zeros((31, 2, 1), dtype=np.int16)
    with pytest.raises(InputError, match=r"has 31 tokens, .* cut it to at most 30"):
        UnionTable(RoutingTrace("long", ids, 8, 1, np.array([31]), "made for tests"))
    assert UnionTable(RoutingTrace("fits", ids[:30], 8, 1, np.array([30]), "made for tests")).num_tokens == 30


def test_a_run_longer_than_a_timeline_can_say_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(world_simulate, "MAX_SECONDS", 0.5)
    assert complaint_in_process(Case("flag", SIMULATE, (), ("would last",)), tmp_path) is None


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_character_gets_an_escape(encoding, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["hide", "--model", "gpt-oss-20b", "--profile", "rtx-5090"]) == 0
    out.flush()


def test_a_sentence_about_something_long_is_short(capsys):
    assert main(["gates", "x" * 100_000]) == 2
    err = capsys.readouterr().err
    assert len(err) < 1500
    assert err.startswith("hideaway: cannot read row file 'xxx")

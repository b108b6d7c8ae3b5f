"""`hideaway run --model`: a folder in, metrics, texts and a verdict out; one sentence for what cannot be run."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hideaway.hw.target.prompts import Codec, Prompt, cut, read_prompts, text_prompts
from hideaway.main import main
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing.npz import read_routing_file
from tests.hw.engine.micro_pair import TEXT, VOCABULARY, write_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return write_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def words(pair, tmp_path, monkeypatch):
    """Return the words of a small run over three prompts, one of them text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(pair.parent / "cache"))
    prompts = tmp_path / "prompts.jsonl"
    lines = [
        {"text": "def f(x):", "output_tokens": 9},
        {"token_ids": list(range(20)), "output_tokens": 6},
        {"token_ids": [7, 7, 8], "output_tokens": 11},
    ]
    prompts.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    return [
        "run", "--model", str(pair), "--prompts", str(prompts), "--requests", "3", "--concurrency", "2", "--slots",
        "3", "--block-size", "4", "--threads", "1",
    ]  # fmt: skip


def test_a_model_runs_and_loses_nothing(words, tmp_path, capsys) -> None:
    out, record = tmp_path / "out.json", tmp_path / "record"
    flags = ["--check-lossless", "--json", "--out", str(out), "--record", str(record)]
    assert main([*words, *flags]) == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert result["lossless"]["passed"]
    assert result["lossless"]["equal"]
    assert result["lossless"]["tokens"] == 26 == result["lossless"]["fast_path"]["tokens"]
    assert [len(output["token_ids"]) for output in result["outputs"]] == [9, 6, 11]
    assert all(isinstance(output["text"], str) for output in result["outputs"])
    scenario = result["scenario"]
    assert scenario["router_exact_depth"] == 0
    assert scenario["route_predictor"] == "stale-gate"
    assert scenario["drafter"].endswith("drafter")
    assert scenario["drafter_parameters"] > 1000
    assert "acceptance" not in scenario
    written = json.loads(out.read_text())
    assert written["format"] == "hideaway-run"
    assert written["outputs"] == result["outputs"]
    assert "packing" in shown.err
    assert read_routing_file(record / "routing.npz").seq_lengths.tolist() == [8, 5, 10]
    assert (record / "acceptance.csv").read_text().startswith("seq_id,acceptance_length\n")


def test_plain_decode_needs_no_drafter_and_text_is_cut_to_the_traces_lengths(
    words, pair, tmp_path, capsys
) -> None:
    trace = tmp_path / "requests.csv"
    trace.write_text("arrival_seconds,input_tokens,output_tokens\n0,30,4\n0,5,3\n")
    plain = [
        "run",
        "--model",
        str(pair / "target"),
        "--trace",
        str(trace),
        "--requests",
        "2",
        "--baseline",
        "B0",
    ]
    with_text = [*plain, "--prompts", words[words.index("--prompts") + 1], "--slots", "3", "--threads", "1"]
    assert main(with_text) == 0
    shown = capsys.readouterr()
    assert "output_tokens_per_second" in shown.out
    assert "reusing" in shown.err
    assert "of the trace; prompts are cut" in " ".join(shown.out.split())
    assert main([*with_text, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [output["prompt_tokens"] for output in result["outputs"]] == [30, 5]
    assert main([*plain, "--slots", "3"]) == 2
    assert "there is no text to prompt" in capsys.readouterr().err


def test_a_difference_that_rounding_does_not_explain_exits_with_one(words, monkeypatch, capsys) -> None:
    from hideaway.hw.engine import generated

    accept = generated.accept_greedy

    def lenient(drafts, choices, num_drafts=None):
        """Keep one draft that the target did not choose."""
        outcome = accept(drafts, choices, num_drafts)
        return generated.Accepted((outcome.accepted + 1).clamp(max=drafts.shape[1]), outcome.own)

    monkeypatch.setattr(generated, "accept_greedy", lenient)
    assert main([*words, "--check-lossless"]) == 1
    shown = capsys.readouterr()
    assert "NOT equal to plain decode; request" in shown.err
    assert "true differences" in shown.err


@pytest.mark.parametrize(("flags", "sentence"), [
    (["--shape", "gpt-oss-20b"], "--shape and --model were given together"),
    (["--acceptance", "constant:2"], "--acceptance describes replayed runs"),
    (["--temperature", "0.7", "--check-lossless"], "compares greedy outputs"),
    (["--temperature", "-1"], "temperature is -1"),
    (["--baseline", "OURS-oracle"], "only knows after computing the layers before"),
    (["--block-size", "9"], "drafts blocks of 2 to 8 rows"),
    (["--drafter", "nowhere"], "nowhere"),
    (["--model", "nothing-here"], "neither a folder nor a shipped pair"),
    (["--prompts", "missing.jsonl"], "missing.jsonl"),
    (["--slots", "8"], "nothing is offloaded"),
])  # fmt: skip
def test_what_cannot_be_run_is_one_sentence(words, capsys, flags, sentence) -> None:
    assert main([*words, *flags]) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("flags", [["--temperature", "1"], ["--check-lossless"], ["--prompts", "x"]])
def test_flags_of_a_model_want_one(capsys, flags) -> None:
    assert main(["run", "--shape", "gpt-oss-20b", *flags]) == 2
    assert "without --model" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "words"), [
    ('{"text": "a", "token_ids": [1]}', "must have text or token_ids, and not both"),
    ('{"txt": "a"}', "is not an object of output_tokens, text, token_ids only"),
    ('{"token_ids": [260]}', "a token in line 1 of prompts file .* is 260 but must be a whole number from 0 to 259"),
    ('{"token_ids": []}', "has no tokens"),
    ('{"token_ids": 3}', "is not a list"),
    ('{"text": 3}', "is not a text"),
    ('{"text": "a", "output_tokens": 0}', "output_tokens in line 1"),
    ("", "holds no prompt"),
])  # fmt: skip
def test_a_bad_line_of_prompts_is_one_sentence(pair, tmp_path, line, words) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=words):
        read_prompts(path, Codec(pair / "target"), VOCABULARY)


def test_prompts_are_cut_or_repeated(pair, tmp_path) -> None:
    codec = Codec(pair / "target")
    assert cut(Prompt((1, 2, 3)), 2) == (1, 2)
    assert cut(Prompt((1, 2, 3)), 7) == (1, 2, 3, 1, 2, 3, 1)
    assert codec.decode(codec.encode(TEXT)) == TEXT
    one, two = text_prompts("abcd", 2, codec)
    assert [codec.decode(prompt.token_ids) for prompt in (one, two)] == ["abcd", "cdab"]
    with pytest.raises(InputError, match="so text cannot be turned into tokens"):
        Codec(tmp_path).encode("a")
    assert Codec(tmp_path).decode([1]) is None

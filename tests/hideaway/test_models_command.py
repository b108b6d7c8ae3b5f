"""`hideaway models`: the list, one model, what fits on a card, and the sentences for wrong flags."""

import json

import pytest

from hideaway.main import main
from hideaway.sim.inputs.models import builtin_model_names, load_model


def run(capsys, *words):
    code = main(["models", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_list_shows_every_built_in_model(capsys):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    for name in builtin_model_names():
        assert name in out
    assert "13,236,480" in out


def test_the_list_as_json_holds_the_numbers(capsys):
    code, out, _ = run(capsys, "--json")
    models = {model["name"]: model for model in json.loads(out)["models"]}
    assert code == 0
    assert set(models) == set(builtin_model_names())
    shown, model = models["openai/gpt-oss-20b"], load_model("gpt-oss-20b")
    assert shown["expert_bytes"] == model.expert_bytes
    assert shown["total_expert_bytes"] == model.total_expert_bytes
    assert shown["kv_bytes_per_1000_tokens"] == model.kv_bytes(1000)


def test_one_model_is_shown_in_full(capsys):
    code, out, err = run(capsys, "deepseek-v2-lite")
    assert (code, err) == (0, "")
    for text in ("26 + 1 dense", "27 mla", "15.71 billion", "17,301,504 bytes in bf16", "source"):
        assert text in out


@pytest.mark.parametrize(("name", "slots"), [("gpt-oss-120b", 58), ("gpt-oss-20b", 32), ("deepseek-v3", 9)])
def test_the_share_that_fits_is_what_the_memory_leaves(capsys, name, slots):
    code, out, _ = run(capsys, name, "--profile", "rtx-5090", "--context-tokens", "4096", "--json")
    fit = json.loads(out)["fit"]
    model = load_model(name)
    one_slot = model.num_layers * model.expert_bytes
    used = fit["dense_bytes"] + fit["kv_bytes"] + fit["reserved_bytes"] + fit["slots_per_layer"] * one_slot
    assert code == 0
    assert fit["slots_per_layer"] == slots
    assert fit["resident_fraction"] == slots / model.num_experts
    assert used <= fit["device_bytes"]
    assert slots == model.num_experts or used + one_slot > fit["device_bytes"]
    assert fit["kv_bytes"] == model.kv_bytes(4096)


def test_nothing_fits_when_the_dense_weights_do_not(capsys, tmp_path):
    profile = tmp_path / "small.json"
    assert main(["profile", "show", "rtx-5090", "--set", "memory.device_bytes=4e9", "-o", str(profile)]) == 0
    capsys.readouterr()
    _, out, _ = run(capsys, "gpt-oss-20b", "--profile", str(profile), "--json")
    assert json.loads(out)["fit"]["slots_per_layer"] == 0


def test_the_expert_format_can_be_chosen(capsys):
    _, out, _ = run(capsys, "qwen3-30b-a3b", "--expert-format", "bf16", "--json")
    assert json.loads(out)["model"]["expert_bytes"] == 9_437_184


def test_a_model_written_to_a_file_is_read_back_as_it_is(capsys, tmp_path):
    path = tmp_path / "mine.json"
    code, _, err = run(capsys, "qwen3-30b-a3b", "--expert-format", "mxfp4", "-o", str(path))
    assert (code, err) == (0, f"wrote {path}\n")
    _, out, _ = run(capsys, str(path), "--json")
    assert json.loads(out)["model"]["expert_format"] == "mxfp4"
    assert load_model(str(path)) == load_model("qwen3-30b-a3b", expert_format="mxfp4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such-model"], "there is no model or file 'no-such-model'"),
        (["gpt-oss-20b", "--profile", "none"], "there is no profile or file 'none'"),
        (["gpt-oss-20b", "--context-tokens", "-1"], "--context-tokens is -1"),
        (["gpt-oss-20b", "--context-tokens", "many"], "--context-tokens"),
        (["gpt-oss-20b", "--expert-format", "int4"], "--expert-format"),
        (["--profile", "rtx-5090"], "need a NAME"),
        (["gpt-oss-20b", "-o", "/proc/nowhere/model.json"], "cannot write"),
    ],
)
def test_wrong_flags_give_one_sentence_and_code_2(capsys, words, message):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_help_shows_an_example_that_runs(capsys):
    assert main(["models", "--help"]) == 0
    example = next(
        line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("hideaway models ")
    )
    assert main(example.split()[1:]) == 0

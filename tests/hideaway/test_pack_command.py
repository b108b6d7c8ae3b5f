"""`hideaway pack`: what it writes and says, and what interruption leaves behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hideaway.hw.store import ExpertStore
from hideaway.main import main

MODEL = """{
  "format": "hideaway-model", "version": 1, "name": "test/small", "source": "made up by a test",
  "hidden_size": %d, "vocab_size": 1000, "layer_kinds": ["full", "full"],
  "grouped_attention": {"num_heads": 4, "num_kv_heads": 2, "head_dim": 16},
  "experts": {"count": %d, "top_k": 2, "intermediate_size": %d}, "stored": {"experts": "bf16"}
}"""


def model_file(folder: Path, hidden: int = 64, experts: int = 4, inner: int = 96) -> str:
    path = folder / "model.json"
    path.write_text(MODEL % (hidden, experts, inner))
    return str(path)


def test_a_shape_is_packed_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "store"
    flags = ["--shape", model_file(tmp_path), "--layers", "1", "--seed", "3", "-o", str(out), "--json"]
    assert main(["pack", *flags]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["num_layers"] == 1
    assert answer["num_experts"] == 4
    assert answer["expert_format"] == "mxfp4"
    assert answer["expert_bytes"] == 3 * 64 * 96 // 32 * 17
    assert answer["source"] == "random FP4 weights of the shape of test/small, seed 3"
    assert answer["damaged"] is None
    assert main(["pack", "--verify", str(out)]) == 0
    assert re.search(r"^damaged +none", capsys.readouterr().out, re.MULTILINE)


def test_damage_is_named_and_makes_the_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "store"
    main(["pack", "--shape", model_file(tmp_path), "-o", str(out)])
    store = ExpertStore(out)
    data = bytearray(store.data_path.read_bytes())
    data[store.offset_bytes(1, 2) + 9] ^= 255
    store.data_path.write_bytes(data)
    capsys.readouterr()
    assert main(["pack", "--verify", str(out), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["damaged"] == [[1, 2]]
    assert main(["pack", "--verify", str(out)]) == 1
    assert "layer 1 expert 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "one of the arguments --model --shape --verify is required"),
        (["--shape", "gpt-oss-20b"], "packing needs a folder to write; give -o DIR"),
        (["--shape", "gpt-oss-21b", "-o", "x"], "there is no model or file 'gpt-oss-21b'"),
        (
            ["--shape", "gpt-oss-20b", "--layers", "99", "-o", "x"],
            "layers is 99 but openai/gpt-oss-20b has 24",
        ),
        (["--model", "nowhere", "-o", "x"], "'nowhere' is not a folder"),
        (["--verify", "nowhere"], "'nowhere' is not an expert store"),
        (["--shape", "gpt-oss-20b", "--expert-format", "fp8", "-o", "x"], "invalid choice: 'fp8'"),
    ],
)
def test_bad_flags_are_one_sentence(
    flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", *flags]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_pack_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    model = model_file(
        tmp_path, hidden=1024, experts=256, inner=256
    )  # far more than is written before the signal
    command = [sys.executable, "-m", "hideaway", "pack", "--shape", model, "-o", str(folder / "store")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not list(folder.glob(".store.partial-*/experts.safetensors")):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(number)
    _, error = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "interrupted" in error
    assert list(folder.iterdir()) == []

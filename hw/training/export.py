"""From a training run's checkpoint to the target's shipped folder: `python -m hideaway.hw.training.export`.

Dense parts become bfloat16, experts MXFP4: `…experts.gate_up_proj_blocks` (experts, 2 · inner, blocks, 16) and
`_scales` (experts, 2 · inner, blocks), gate's rows first, and the same of `down_proj`, the names gpt-oss has. Beside
`config.json` and `model.safetensors` there are `generation_config.json` and `tokenizer.json`, a byte a token.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import Qwen3MoeConfig

from hideaway.hw.fp4.mxfp4 import quantise_mxfp4
from hideaway.hw.training.corpus import BOS, EOS, MASK
from hideaway.hw.training.loop import CHECKPOINT_NAME, MODEL_PREFIX
from hideaway.hw.training.target_model import TargetShape
from hideaway.sim.files import write_bytes_atomically, write_json_atomically, write_text_atomically

NAME = "hideaway/tiny"
_EXPERT_MATRICES = ("experts.gate_up_proj", "experts.down_proj")
_DENSE_MODULES = ["self_attn", "mlp.gate", "embed_tokens", "lm_head"]


def export_target(state: dict[str, torch.Tensor], config: Qwen3MoeConfig, folder: Path) -> None:
    """Write the files of a target with these float32 weights, replacing what is there.

    Raises
    ------
    InputError
        The folder cannot be written, or a weight is not finite.
    """
    stored: dict[str, torch.Tensor] = {}
    for name, value in state.items():
        if name.endswith(_EXPERT_MATRICES):
            packed = [quantise_mxfp4(matrix.numpy()) for matrix in value.detach()]
            stored[f"{name}_blocks"] = torch.from_numpy(np.stack([tensor.packed for tensor in packed]))
            stored[f"{name}_scales"] = torch.from_numpy(np.stack([tensor.scales for tensor in packed]))
        else:
            stored[name] = value.detach().to(torch.bfloat16).contiguous()
    write_bytes_atomically(folder / "model.safetensors", save(stored, metadata={"format": "pt"}))
    facts = config.to_dict() | {
        "_name_or_path": NAME,
        "architectures": ["Qwen3MoeForCausalLM"],
        "dtype": "bfloat16",
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": _DENSE_MODULES},
    }
    write_json_atomically(folder / "config.json", facts)
    special = {"bos_token_id": BOS, "eos_token_id": EOS}
    write_json_atomically(folder / "generation_config.json", special)
    write_text_atomically(folder / "tokenizer.json", json.dumps(json.loads(byte_tokenizer().to_str())) + "\n")


def byte_tokenizer() -> Tokenizer:
    """Return a tokenizer whose ids are the bytes of the text in UTF-8."""
    # ByteLevel writes each byte as one printable character, in this order: printable bytes as themselves, the others
    # counted up from 256 (openai/gpt-2, encoder.py, bytes_to_unicode).
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    vocabulary = {chr(byte): byte for byte in printable}
    vocabulary |= {chr(256 + index): byte for index, byte in enumerate(others)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = {BOS: "<|bos|>", EOS: "<|eos|>", MASK: "<|mask|>"}
    tokenizer.add_special_tokens([AddedToken(names[token], normalized=False) for token in sorted(names)])
    return tokenizer


def main() -> None:
    """Export from the command line."""
    parser = argparse.ArgumentParser(
        description="Write a trained target's config.json, model.safetensors and tokenizer.json.",
        epilog="example: python -m hideaway.hw.training.export --run build/target --out build/pair/target",
    )
    parser.add_argument("--run", type=Path, required=True, help="the folder that target.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    given = parser.parse_args()
    stored = load_file(given.run / CHECKPOINT_NAME)
    state = {
        name.removeprefix(MODEL_PREFIX): value
        for name, value in stored.items()
        if name.startswith(MODEL_PREFIX)
    }
    export_target(state, TargetShape().config(), given.out)


if __name__ == "__main__":
    main()

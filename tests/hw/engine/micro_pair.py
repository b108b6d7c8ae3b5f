"""A pair of random micro models in a folder, with a tokenizer of bytes and some text: what `--model DIR` opens."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from hideaway.hw.draft.checkpoint import save_drafter
from hideaway.hw.draft.config import DrafterConfig
from hideaway.hw.draft.drafter import DFlashDrafter
from tests.hw.target.micro_models import HIDDEN, random_model, save_checkpoint

VOCABULARY = 260
TEXT = "def answer(question):\n    return question.strip() or 42\n\n\n" * 4


def write_pair(folder: Path) -> Path:
    save_checkpoint(folder / "target", random_model("qwen3_moe", vocab_size=VOCABULARY))
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "target" / "tokenizer.json"))
    save_drafter(folder / "drafter", micro_drafter())
    (folder / "held-out.txt").write_text(TEXT)
    return folder


def micro_drafter(**changes) -> DFlashDrafter:
    fields = {
        "hidden_size": HIDDEN, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": VOCABULARY, "block_size": 8,
        "mask_token_id": VOCABULARY - 1, "target_layer_ids": (0, 2), **changes,
    }  # fmt: skip
    return DFlashDrafter(DrafterConfig(**fields), torch.Generator().manual_seed(2))

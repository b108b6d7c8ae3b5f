"""Runs the public DFlash code on random weights and writes its outputs to `data/reference_outputs.json`.

Not a test: run it by hand in a clone of z-lab/dflash (MIT licence) with this repository on the path,

    PYTHONPATH=CLONE:. python tests/hw/draft/record_reference.py OUTPUT --commit COMMIT CONFIG...

Each block is drafted as `dflash_generate` there does it: features of the tokens committed since the last block go in
with positions that go on, the cache is cropped to the committed tokens afterwards.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import transformers
from transformers import DynamicCache, Qwen3Config

from tests.hw.draft.random_drafters import BLOCK, CALLS, CONFIGS, block, features, weights


def outputs(name: str) -> list[list[list[float]]]:
    from dflash.model import DFlashDraftModel

    config = Qwen3Config(**CONFIGS[name])
    config._attn_implementation = "sdpa"
    model = DFlashDraftModel(config).eval()
    shapes = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    model.load_state_dict({key: torch.from_numpy(value) for key, value in weights(shapes).items()})
    cache, every, start, hidden = DynamicCache(), torch.from_numpy(features(sum(CALLS))), 0, []
    for call, count in enumerate(CALLS):
        end = start + count
        with torch.inference_mode():
            rows = model(
                target_hidden=every[None, start:end],
                noise_embedding=torch.from_numpy(block(call))[None],
                position_ids=torch.arange(start, end + BLOCK)[None],
                past_key_values=cache,
                use_cache=True,
            )
        cache.crop(-BLOCK)
        hidden.append([[round(value, 7) for value in row] for row in rows[0].tolist()])
        start = end
    return hidden


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("configs", nargs="+", choices=list(CONFIGS))
    given = parser.parse_args()
    recorded = json.loads(given.output.read_text()) if given.output.exists() else {}
    for name in given.configs:
        recorded[name] = {
            "source": f"z-lab/dflash dflash/model.py at {given.commit}",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "hidden": outputs(name),
        }
    given.output.write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()

"""Real runs of random micro models: any baseline, real transfers from disk, few slots."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import torch

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.draft.checkpoint import save_drafter
from hideaway.hw.engine.block_drafter import Drafts
from hideaway.hw.engine.open_device import DeviceOptions, open_slots
from hideaway.hw.engine.run import Observers
from hideaway.hw.engine.run_model import ModelSetup, run_model
from hideaway.hw.engine.truncation import truncate
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.target.load import load_target
from hideaway.hw.target.resident import ResidentModel
from hideaway.sim.costs import CostModel
from hideaway.sim.inputs.scenario import BASELINES, Scenario
from hideaway.sim.world.memory import split_memory
from tests.hw.engine.micro_pair import micro_drafter
from tests.hw.target.micro_models import VOCABULARY, checkpoint_of

_ECHO = object()
_DEVICE_BYTES = 1e9
LENGTHS = ((20, 14), (9, 18), (31, 9))
NUM_REQUESTS = len(LENGTHS)
BLOCK = 4


class EchoDrafter:
    """Proposes what plain decode said, with every third token changed: a good drafter, imitated openly."""

    def __init__(self, texts):
        self._texts = texts
        self.observed: dict[int, int] = {}

    def observe(self, seq_id, first_position, features):
        expected = 0 if first_position == 0 else self.observed[seq_id]
        assert first_position == expected
        self.observed[seq_id] = first_position + len(features)

    def draft(self, seats, tokens, rule):
        drafts = []
        for seat in seats:
            assert self.observed[seat.seq_id] == seat.tokens_before
            text = self._texts[seat.seq_id]
            after = [
                text[at] if at < len(text) else 0
                for at in range(seat.context_tokens, seat.context_tokens + seat.num_rows - 1)
            ]
            drafts.append([
                token if (seat.context_tokens + place) % 3 else (token + 1) % VOCABULARY
                for place, token in enumerate(after)
            ])  # fmt: skip
        return Drafts(torch.tensor(drafts))

    def forget(self, seq_id):
        self.observed.pop(seq_id, None)


class MicroRun:
    """One checkpoint, its store and what plain decode makes of its prompts."""

    def __init__(self, family: str, folder: Path, lengths=LENGTHS, **changes):
        self.folder, self.store, self.plain = checkpoint_of(family, folder, **changes)
        self.target = load_target(self.folder)
        generator = torch.Generator().manual_seed(4)
        self.prompts = tuple(
            tuple(torch.randint(VOCABULARY, (size,), generator=generator).tolist()) for size, _ in lengths
        )
        self.lengths = lengths
        self._requests = folder / "requests.csv"
        lines = [f"0.0,{inputs},{outputs}" for inputs, outputs in lengths]
        self._requests.write_text("\n".join(["arrival_seconds,input_tokens,output_tokens", *lines]) + "\n")
        self.texts = self._plain_texts()

    def with_features(self, layers) -> MicroRun:
        """Return the same with a target that hands out features of `layers`."""
        other = copy(self)
        other.target = load_target(self.folder, feature_layers=layers)
        return other

    def setup(
        self,
        *,
        temperature=0.0,
        predictor="stale-gate",
        make_drafter=_ECHO,
        kv_tokens=None,
        max_tokens=512,
        count=NUM_REQUESTS,
        **fields,
    ) -> ModelSetup:
        if not {"concurrency", "rate", "open_loop"} & set(fields):
            fields["concurrency"] = 2
        scenario = Scenario(**{
            "model": str(self.folder), "trace": str(self._requests), "requests": count, "block_size": BLOCK,
            "drafter_parameters": 1000.0, "prefill_chunk_tokens": 8, "baseline": "OURS", "slots": 3,
            "parameters": {"memory.device_bytes": _DEVICE_BYTES, "memory.reserved_bytes": 0.0},
            "byte_budget": 10**9, **fields,
        })  # fmt: skip
        truncated = truncate(scenario, None)
        if kv_tokens is not None:
            truncated = replace(
                truncated, inputs=replace(truncated.inputs, costs=_with_kv(truncated, kv_tokens))
            )
        maker = (lambda: EchoDrafter(self.texts)) if make_drafter is _ECHO else make_drafter
        rule = SamplingRule(temperature=temperature)
        return ModelSetup(truncated, self.target, self.prompts[:count], maker, rule, predictor, max_tokens)

    def run(
        self, *, invariant=True, device="disk", make_device=open_slots, timeline=None, log=None, **fields
    ):
        options = DeviceOptions(device, 1, 1e9 if device == "paced-memory" else None)
        observers = Observers(timeline, log, make_device=make_device)
        return run_model(self.setup(**fields), self.store, options, observers, invariant=invariant)

    @torch.inference_mode()
    def _plain_texts(self):
        """Return prompts with greedy continuations, decoded token by token without the engine."""
        expert = CpuExpert(self.store.description.layout, threads=1, invariant=True)
        model = ResidentModel(self.target, self.store, expert.forward)
        self.target.invariant = True
        texts = []
        for prompt, (_, outputs) in zip(self.prompts, self.lengths, strict=True):
            text = list(prompt)
            decoder = model.decoder()
            logits = decoder(text)
            for _ in range(outputs):
                text.append(int(logits[-1].argmax()))
                logits = decoder(text[-1:])
            texts.append(text)
        self.target.invariant = False
        return texts


def random_drafter(folder: Path, layers) -> Path:
    """Return a saved DFlash drafter of random weights for a micro target."""
    changes = {"vocab_size": VOCABULARY, "mask_token_id": VOCABULARY - 1}
    save_drafter(folder / "drafter", micro_drafter(target_layer_ids=tuple(layers), **changes))
    return folder / "drafter"


def _with_kv(truncated, kv_tokens):
    """Return costs on a card whose memory leaves KV caches exactly `kv_tokens` of one sequence."""
    costs, scenario = truncated.inputs.costs, truncated.scenario
    held = split_memory(scenario, BASELINES[scenario.baseline], costs)
    device = _DEVICE_BYTES - held.kv_bytes + costs.model.kv_bytes(kv_tokens)
    profile = costs.profile.with_values({"memory.device_bytes": float(device)})
    return CostModel(costs.model, profile, drafter_parameters=scenario.drafter_parameters)

"""Speculation loses nothing: every baseline at every width, 2,000 tokens each, against plain decode token for token.

On the trained pair that ships with the program, whose drafter is right often enough to matter. Offloaded from disk into
fewer slots than one forward reads, several sequences at a time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hideaway.hw.draft.checkpoint import load_drafter
from hideaway.hw.engine.lossless import check_lossless, first_difference
from hideaway.hw.engine.open_device import DeviceOptions
from hideaway.hw.engine.open_model import RunOptions, find_model, open_model, open_store
from hideaway.hw.engine.run_model import ModelSetup, dflash_maker, run_model
from hideaway.sim.inputs.scenario import Scenario

pytestmark = pytest.mark.campaign

REQUESTS, PROMPT_TOKENS, OUTPUT_TOKENS = 16, 40, 128
OPTIONS = DeviceOptions("disk", 1)
SETTINGS = {
    "B0": {"baseline": "B0"},
    "B1": {"baseline": "B1"},
    "B2": {"baseline": "B2"},
    "OURS": {"baseline": "OURS"},
    "B1+deficit": {"baseline": "B1+deficit"},
    "B1+union": {"baseline": "B1+union"},
    "B3": {"baseline": "B3"},
    "cross-round": {"baseline": "OURS", "prefetch": "cross-round", "eviction": "aged-lfu", "lookahead": 3},
    "static": {"baseline": "B2", "eviction": "static", "issue": "batched"},
    "streamed": {"baseline": "OURS", "slots": 1, "staging_slots": 1},
}


class Pair:
    """The shipped pair, and what plain decode makes of its held-out text."""

    def __init__(self, folder: Path) -> None:
        self.files = find_model("tiny")
        line = f"0,{PROMPT_TOKENS},{OUTPUT_TOKENS}\n"
        (folder / "lengths.csv").write_text("arrival_seconds,input_tokens,output_tokens\n" + line * REQUESTS)
        scenario = Scenario(
            baseline="OURS",
            trace=str(folder / "lengths.csv"),
            requests=REQUESTS,
            concurrency=4,
            slot_fraction=0.25,
            block_size=8,
            prefill_chunk_tokens=16,
        )
        self.setup, _ = open_model(self.files, scenario, RunOptions(own_lengths=False))
        self.store = open_store(self.files, None, lambda *facts: None)
        self.drafter = load_drafter(self.files.drafter)
        plain = self.setup.with_scenario(baseline="B3-AR", concurrency=1)
        self.reference = run_model(plain, self.store, OPTIONS, invariant=True).outputs

    def under(self, block_size: int = 8, **fields) -> ModelSetup:
        """Return the model under other settings."""
        setup = self.setup.with_scenario(block_size=block_size, **fields)
        return replace(setup, make_drafter=dflash_maker(self.drafter, setup.target, block_size))


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Pair:
    folder = tmp_path_factory.mktemp("pair")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        return Pair(folder)


@pytest.mark.parametrize("block_size", [2, 4, 8])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_token_is_plain_decodes(pair, name, block_size) -> None:
    if name == "B0" and block_size != 8:
        pytest.skip("nothing is drafted, so there is no width")
    run = run_model(pair.under(block_size, **SETTINGS[name]), pair.store, OPTIONS, invariant=True)
    assert not run.real.failures
    assert sum(map(len, run.outputs.values())) == REQUESTS * OUTPUT_TOKENS >= 2000
    assert first_difference(pair.reference, run.outputs) is None


def test_the_fast_path_differs_by_rounding_only(pair) -> None:
    setup = pair.under(baseline="OURS")
    verdict = check_lossless(setup, pair.store, OPTIONS, run_model(setup, pair.store, OPTIONS))
    assert verdict.passed, verdict

"""The adapter computes what transformers' own forward computes, however rows are packed, chunked and rolled back."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file, save_file

from hideaway.hw.engine.kv_store import KvStore
from hideaway.hw.engine.work import Seat
from hideaway.hw.fp4.cpu_expert import CpuExpert
from hideaway.hw.target import attention
from hideaway.hw.target.attention import PackedRows
from hideaway.hw.target.load import load_target
from hideaway.hw.target.predict import StaleGate, make_predictor, mask_of
from hideaway.sim.errors import HideawayError, InputError
from tests.hw.target.micro_models import (
    FAMILIES,
    HIDDEN,
    LAYERS,
    VOCABULARY,
    checkpoint_of,
    random_model,
    save_checkpoint,
)


@pytest.fixture(scope="module", params=FAMILIES)
def made(request, tmp_path_factory):
    """Return (folder, store, plain model) of each family."""
    return checkpoint_of(request.param, tmp_path_factory.mktemp(request.param))


class Served:
    """A target with its caches and the experts of a store, all computed at once."""

    def __init__(self, folder, store, *, invariant=False, features=()):
        self.target = load_target(folder, feature_layers=features)
        self.target.invariant = invariant
        self.kv = KvStore()
        self.invariant = invariant
        self.read: list[torch.Tensor] = []
        self.ahead: dict[int, tuple[int, ...]] = {}
        self.predictor = StaleGate(self.target)
        self._store = store
        self._expert = CpuExpert(store.description.layout, threads=1, invariant=True)

    def experts(self, number, rows, ids, weights):
        self.read.append(ids)
        self.ahead[number] = self.predictor.ahead(number, LAYERS)
        out = torch.zeros_like(rows)
        for expert in torch.unique(ids).tolist():
            at, choice = torch.where(ids == expert)
            computed = self._expert.forward(self._store.read(number, expert), rows[at])
            out[at] += computed * weights[at, choice, None]
        return out

    def forward(self, *parts):
        """Return the hidden rows of (seq_id, tokens, tokens_before) parts, packed."""
        seats = tuple(Seat(seq, len(tokens), before + len(tokens), before) for seq, tokens, before in parts)
        tokens = torch.cat([tokens for _, tokens, _ in parts])
        self.read.clear()
        with torch.inference_mode():
            return self.target.forward(tokens, PackedRows(seats, self.kv, self.invariant), self.experts)

    def logits(self, *parts):
        with torch.inference_mode():
            return self.target.logits(self.forward(*parts).rows)


def tokens_of(count, seed=1):
    return torch.randint(VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def plain_logits(model, tokens):
    return model(input_ids=tokens[None], use_cache=False).logits[0]


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("invariant", [False, True])
def test_logits_are_those_of_transformers(made, invariant) -> None:
    folder, store, plain = made
    tokens = tokens_of(23)
    assert_close(
        Served(folder, store, invariant=invariant).logits((0, tokens, 0)), plain_logits(plain, tokens)
    )


def test_long_prompts_are_gathered_piece_by_piece(made, monkeypatch) -> None:
    folder, store, plain = made
    monkeypatch.setattr(attention, "_PIECE_ROWS", 4)
    tokens = tokens_of(23)
    served = Served(folder, store)
    served.forward((0, tokens[:9], 0))
    assert_close(served.logits((0, tokens[9:], 9)), plain_logits(plain, tokens)[9:])


def test_packed_ragged_rows_equal_each_sequence_by_itself(made) -> None:
    folder, store, plain = made
    first, second = tokens_of(19, 2), tokens_of(30, 3)
    served = Served(folder, store)
    served.forward((7, first[:11], 0))
    served.forward((9, second[:13], 0), (7, first[11:12], 11))
    rows = served.logits((9, second[13:21], 13), (7, first[12:], 12))
    assert_close(rows[:8], plain_logits(plain, second)[13:21])
    assert_close(rows[8:], plain_logits(plain, first)[12:])


def test_rejected_rows_leave_no_trace(made) -> None:
    folder, store, plain = made
    tokens, wrong = tokens_of(20), tokens_of(8, 9)
    served = Served(folder, store)
    served.forward((0, tokens[:10], 0))
    served.forward((0, wrong, 10))
    served.forward((0, tokens[10:12], 10))
    served.forward((0, wrong[:3], 12))
    assert_close(served.logits((0, tokens[12:], 12)), plain_logits(plain, tokens)[12:])


def test_an_invariant_row_is_the_same_bits_in_any_company(made) -> None:
    folder, store, _ = made
    tokens, others = tokens_of(26), tokens_of(24, 5)
    alone = Served(folder, store, invariant=True)
    one_by_one = torch.cat([alone.logits((0, tokens[at : at + 1], at)) for at in range(26)])
    crowd = Served(folder, store, invariant=True)
    pieces = [crowd.logits((0, tokens[:9], 0)), crowd.logits((3, others[:7], 0), (0, tokens[9:17], 9))[7:]]
    crowd.forward((0, others[:8], 17))
    pieces.append(crowd.logits((0, tokens[17:18], 17), (3, others[7:15], 7))[:1])
    pieces.append(crowd.logits((0, tokens[18:], 18)))
    assert torch.equal(torch.cat(pieces), one_by_one)


def test_features_are_the_hidden_states_of_transformers(made) -> None:
    folder, store, plain = made
    tokens = tokens_of(12)
    features = Served(folder, store, features=(2, 0)).forward((0, tokens, 0)).features
    with torch.inference_mode():
        states = plain(input_ids=tokens[None], use_cache=False, output_hidden_states=True).hidden_states
    assert features.shape == (12, 2 * HIDDEN)
    assert_close(features, torch.cat([states[3][0], states[1][0]], dim=1))


def test_the_stale_gate_guesses_from_what_is_at_hand(made) -> None:
    """At a visit: what the next routers make of this layer's residual. After the draft: of the tokens' embeddings."""
    folder, store, _ = made
    served = Served(folder, store)
    tokens = tokens_of(6)
    served.forward((0, tokens, 0))
    number_of_layers = len(served.target.moe_layers)
    assert [len(masks) for masks in served.ahead.values()] == list(range(number_of_layers - 1, -1, -1))
    with torch.inference_mode():
        embedded = served.target.embed(tokens)
        expected = [mask_of(served.target.routed_by(number, embedded)) for number in range(number_of_layers)]
        assert list(served.predictor.named(tokens, (), number_of_layers)) == expected
    assert make_predictor("previous-rows", served.target).named(tokens, (3, 5, 9), 2) == (3, 5)
    assert make_predictor("none", served.target).named(tokens, (3, 5), 2) == (0, 0)
    with pytest.raises(InputError, match="the predictor is 'x' but must be one of stale-gate"):
        make_predictor("x", served.target)


def test_routing_of_the_residual_at_hand_is_exact(made) -> None:
    folder, store, _ = made
    served = Served(folder, store)
    found = []

    def experts(number, rows, ids, weights):
        found.append(torch.equal(served.target.routed_by(number, served.target.residual()), ids))
        return torch.zeros_like(rows)

    seats = (Seat(0, 9, 9, 0),)
    with torch.inference_mode():
        served.target.forward(tokens_of(9), PackedRows(seats, served.kv), experts)
    assert found == [True] * len(served.target.moe_layers)


def test_layers_without_experts_are_not_counted(made) -> None:
    folder, _, plain = made
    expected = (0, 2) if plain.config.model_type == "qwen3_moe" else (0, 1, 2)
    assert load_target(folder).moe_layers == expected


def test_a_sharded_checkpoint_with_tied_embeddings_loads(tmp_path) -> None:
    model = random_model("qwen3_moe", tie_word_embeddings=True)
    folder = save_checkpoint(tmp_path / "model", model, shards="100KB")
    assert (folder / "model.safetensors.index.json").exists()
    target = load_target(folder)
    assert torch.equal(target.logits(torch.eye(HIDDEN)), target.embedding.T)


def test_published_names_of_mixtral_are_found(tmp_path) -> None:
    model = random_model("mixtral")
    folder = save_checkpoint(tmp_path / "model", model)
    tensors = load_file(folder / "model.safetensors")
    published = {name.replace(".mlp.", ".block_sparse_moe."): tensor for name, tensor in tensors.items()}
    assert any(name.endswith("block_sparse_moe.gate.weight") for name in published)
    save_file(published, folder / "model.safetensors")
    target = load_target(folder)
    router = target._layers[1].mlp.gate.weight
    assert torch.equal(router, model.model.layers[1].mlp.gate.weight)


@pytest.mark.parametrize(("changes", "words"), [
    ({"model_type": "qwen3_next"}, "'qwen3_next'; real targets are gpt_oss, qwen3_moe, olmoe, mixtral"),
    ({"model_type": None}, "of the family None"),
    ({"num_attention_heads": "four"}, "transformers cannot build the model"),
    ({"hidden_size": 128}, "has the shape .* but its config calls for"),
    ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "dynamic rotary embeddings"),
])  # fmt: skip
def test_what_cannot_be_served_is_one_sentence(tmp_path, changes, words) -> None:
    folder = save_checkpoint(tmp_path / "model", random_model("mixtral"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(InputError, match=words):
        load_target(folder)


def test_a_missing_tensor_or_feature_layer_is_one_sentence(tmp_path) -> None:
    folder = save_checkpoint(tmp_path / "model", random_model("olmoe"))
    with pytest.raises(InputError, match="reads features of target layer 5 but the target has 3 layers"):
        load_target(folder, feature_layers=(5,))
    target = load_target(folder)
    with pytest.raises(HideawayError, match="called outside of a forward"):
        target._experts[0](torch.zeros(1, HIDDEN), torch.zeros(1, 2), torch.zeros(1, 2))
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds no safetensors files"):
        load_target(folder)

"""Built-in models against what their makers publish: parameter counts, bytes of an expert, shapes."""

import json

import pytest

from hideaway.sim.inputs.models import builtin_model_names, load_architecture, load_model
from hideaway.sim.inputs.models.load import MODEL_FOLDER
from hideaway.sim.inputs.models.weight_formats import WEIGHT_FORMATS
from hideaway.sim.inputs.schemas import check_schema

PUBLISHED_PARAMETERS = [
    ("gpt-oss-20b", 20.91e9, "gpt-oss model card, arXiv 2508.10925, table 1"),
    ("gpt-oss-120b", 116.83e9, "gpt-oss model card, arXiv 2508.10925, table 1"),
    ("Qwen3-30B-A3B", 30.5e9, "Qwen3-30B-A3B model card: 30.5B in total"),
    ("Qwen3-Coder-30B-A3B", 30.5e9, "Qwen3-Coder-30B-A3B-Instruct model card: 30.5B in total"),
    ("Qwen3.5-35B-A3B", 35e9, "the model's name; its vision tower is not counted here"),
    ("Qwen3.6-35B-A3B", 35e9, "the model's name; its vision tower is not counted here"),
    ("OLMoE-1B-7B", 6.92e9, "OLMoE, arXiv 2409.02060, table 1: 6.9B"),
    ("Mixtral-8x7B", 46.7e9, "Mixtral of Experts, announcement: 46.7B total parameters"),
    ("DeepSeek-V2-Lite", 15_706_484_224, "sum over the checkpoint's tensors; model card: 15.7B"),
    ("DeepSeek-V3.1", 671e9, "DeepSeek-V3, arXiv 2412.19437: 671B without multi-token prediction"),
]
GPT_OSS_EXPERT_BYTES = 13_236_480
MODELS = [load_model(name) for name in builtin_model_names()]


@pytest.mark.parametrize(
    ("name", "published", "source"), PUBLISHED_PARAMETERS, ids=lambda value: str(value)[:20]
)
def test_parameters_are_within_one_percent_of_the_published_count(name, published, source):
    assert load_model(name).num_parameters == pytest.approx(published, rel=0.01), source


def test_deepseek_v2_lite_has_exactly_the_weights_of_its_checkpoint():
    assert load_model("DeepSeek-V2-Lite").num_parameters == 15_706_484_224


def test_every_built_in_model_is_checked_against_a_published_count():
    assert {load_model(name).name for name, _, _ in PUBLISHED_PARAMETERS} == set(builtin_model_names())


@pytest.mark.parametrize("name", ["gpt-oss-20b", "gpt-oss-120b"])
def test_a_gpt_oss_expert_has_the_published_bytes(name):
    blocks = 5760 * 2880 // 2 + 2880 * 2880 // 2
    scales = 5760 * 90 + 2880 * 90
    biases = 2 * (5760 + 2880)
    assert blocks + scales + biases == GPT_OSS_EXPERT_BYTES
    assert load_model(name).expert_bytes == GPT_OSS_EXPERT_BYTES


@pytest.mark.parametrize(
    ("name", "weight_format", "expected"),
    [
        ("Qwen3-30B-A3B", "nvfp4", 3 * (2048 * 768 * 9 // 16 + 4)),
        ("Qwen3-30B-A3B", "mxfp4", 3 * 2048 * 768 * 17 // 32),
        ("Qwen3-30B-A3B", "fp8", 3 * (2048 * 768 + 4)),
        ("Qwen3-30B-A3B", "bf16", 9_437_184),
        ("Qwen3.5-35B-A3B", "bf16", 6_291_456),
        ("Mixtral-8x7B", "bf16", 352_321_536),
        ("DeepSeek-V2-Lite", "bf16", 17_301_504),
        ("OLMoE-1B-7B", "bf16", 12_582_912),
        ("gpt-oss-20b", "bf16", 2 * (3 * 2880 * 2880 + 3 * 2880)),
    ],
)
def test_an_expert_has_the_bytes_of_its_shapes_and_format(name, weight_format, expected):
    model = load_model(name, expert_format=weight_format)
    assert model.expert_format == weight_format
    assert model.expert_bytes == expected


def test_the_experts_of_gpt_oss_120b_have_the_bytes_summed_from_its_shard_headers():
    published_gib = 56.8  # https://github.com/ml-explore/mlx-lm/issues/1438
    assert load_model("gpt-oss-120b").total_expert_bytes / 2**30 == pytest.approx(published_gib, abs=0.05)


@pytest.mark.parametrize(
    ("name", "layers", "dense_layers", "experts", "top_k"),
    [
        ("gpt-oss-20b", 24, 0, 32, 4),
        ("gpt-oss-120b", 36, 0, 128, 4),
        ("Qwen3-30B-A3B", 48, 0, 128, 8),
        ("Qwen3.5-35B-A3B", 40, 0, 256, 8),
        ("OLMoE-1B-7B", 16, 0, 64, 8),
        ("Mixtral-8x7B", 32, 0, 8, 2),
        ("DeepSeek-V2-Lite", 26, 1, 64, 6),
        ("DeepSeek-V3.1", 58, 3, 256, 8),
    ],
)
def test_shapes_are_the_published_ones(name, layers, dense_layers, experts, top_k):
    model = load_model(name)
    assert (model.num_layers, model.num_dense_layers, model.num_experts, model.top_k) == (
        layers,
        dense_layers,
        experts,
        top_k,
    )


def test_a_256_expert_model_with_an_fp4_release_is_built_in():
    found = [
        model for model in MODELS if model.num_experts == 256 and model.expert_format in ("mxfp4", "nvfp4")
    ]
    assert "deepseek-ai/DeepSeek-V3.1" in {model.name for model in found}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_default_fp4_format_names_the_release_it_follows(model):
    release = load_architecture(model.name).fp4_release
    assert (release is not None) == (model.expert_format in ("mxfp4", "nvfp4"))


@pytest.mark.parametrize("path", sorted(MODEL_FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_file_obeys_the_schema_and_cites_a_repository_and_commit(path):
    value = json.loads(path.read_text())
    check_schema(value, "model", path.name)
    repository, _, rest = value["source"].partition(" ")
    assert repository.count("/") == 1
    assert len(rest.split("@")[1].split(" ")[0].rstrip(":").split(",")[0]) >= 40


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_changing_the_expert_format_changes_nothing_else(model):
    for weight_format in WEIGHT_FORMATS:
        other = load_model(model.name, expert_format=weight_format)
        assert other.dense_bytes == model.dense_bytes
        assert other.num_parameters == model.num_parameters
        assert other.total_expert_bytes == model.num_layers * model.num_experts * other.expert_bytes


def test_smaller_formats_make_smaller_experts():
    sizes = [load_model("Qwen3-30B-A3B", expert_format=each).expert_bytes for each in WEIGHT_FORMATS]
    assert sizes == sorted(sizes)
    assert WEIGHT_FORMATS == ("mxfp4", "nvfp4", "fp8", "bf16")

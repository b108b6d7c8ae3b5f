"""`hideaway hide`: numbers, verdicts, sets, chances, pictures, and one sentence for every slip."""

import contextlib
import io
import json

import numpy as np
import pytest

from hideaway.main import main
from hideaway.sim.contract import evaluate_hide_inequality
from hideaway.sim.costs import CostModel
from hideaway.sim.hide import Worth, link_arrival_seconds, split_by_layer, staggered_exposed_seconds
from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import load_profile
from hideaway.sim.inputs.routing import load_routing
from hideaway.subcommands.hide_chance import RoundSampler
from hideaway.subcommands.hide_terms import HideScenario, terms_from_scenario

NOMINAL = {
    "resident-fraction": 0.5,
    "saturation": 1,
    "total-expert-bytes": 14e9,
    "measured-h2d-bytes-per-second": 50e9,
    "draft-seconds": 0.06,
    "router-seconds": 0.02,
    "overlap-seconds": 0.03,
}
WHOLE = {
    "resident-fraction": 0.6,
    "num-experts": 128,
    "top-k": 8,
    "num-layers": 48,
    "expert-bytes": 2654208,
    "measured-h2d-bytes-per-second": 50e9,
    "draft-seconds": 0.02,
    "router-seconds": 0.02,
    "verify-seconds": 0.03,
    "latency-seconds": 3e-6,
    "issue-seconds": 1.5e-6,
    "acceptance-length": 4,
    "b0-seconds-per-token": 0.03,
    "block-size": 8,
}
SCENARIO = {"model": "gpt-oss-20b", "profile": "rtx-pro-6000", "block-size": 8}
MEASURED = SCENARIO | {
    "routing": "replay:gpt-oss-20b",
    "slot-fraction": 0.75,
    "acceptance": "mixture:default",
}


def flags(values):
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.fixture
def ask(capsys):
    """Run the command with --json and return its object."""

    def run(values, *more):
        assert main(["hide", *flags(values), "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(scope="module")
def measured():
    """The answer for the scenario with measured unions, asked once."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["hide", *flags(MEASURED), "--json"]) == 0
    return json.loads(out.getvalue())


@pytest.fixture
def refuse(capsys):
    """Run the command, demand exit code 2 with nothing on stdout, and return the one sentence."""

    def run(arguments):
        assert main(["hide", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def test_both_sides_and_verdict_are_those_of_the_frozen_inequality(ask):
    answer = ask(NOMINAL)
    frozen = evaluate_hide_inequality(**{name.replace("-", "_"): value for name, value in NOMINAL.items()})
    form = answer["forms"]["nominal"]
    assert form["fetch_seconds"] == frozen.fetch_seconds == 0.14
    assert form["hide_window_seconds"] == frozen.hide_window_seconds
    assert form["hidden"] is frozen.hidden is False
    assert form["slack_seconds"] == frozen.hide_window_seconds - frozen.fetch_seconds
    assert answer["forms"]["achievable"]["hide_window_seconds"] == 0.05
    assert set(answer["forms"]) == {"nominal", "achievable"}


def test_inverses_put_back_as_flags_hide(ask):
    inverses = ask(NOMINAL)["inverses"]
    for name in ("resident-fraction", "measured-h2d-bytes-per-second"):
        key = "smallest_" + name.replace("-", "_").replace("measured_h2d_bytes", "bandwidth_bytes")
        assert ask(NOMINAL | {name: inverses[key]})["forms"]["nominal"]["hidden"]
        assert not ask(NOMINAL | {name: inverses[key] * 0.999})["forms"]["nominal"]["hidden"]


def test_whole_terms_answer_with_every_form(ask):
    answer = ask(WHOLE | {"overlap-seconds": 0.03})
    forms = answer["forms"]
    assert answer["terms"]["saturation"] == 0.5
    assert answer["terms"]["total_expert_bytes"] == 48 * 128 * 2654208
    missing = round(48 * 0.4 * 64)
    union = 48 * 0.4 * 64 * (1.5e-6 + 3e-6 + 2654208 / 50e9)
    assert forms["measured_union"]["fetch_seconds"] == pytest.approx(union, rel=1e-12)
    assert forms["nominal"]["hidden"]
    assert not forms["measured_union"]["hidden"]
    assert forms["staggered"]["num_transfers"] == forms["depth_one"]["num_transfers"] == missing
    assert forms["staggered"]["exposed_seconds"] <= forms["staggered_barrier"]["exposed_seconds"]
    assert forms["staggered"]["exposed_seconds"] <= forms["depth_one"]["exposed_seconds"]


def test_staggered_form_is_the_library_function_for_layers_that_are_alike(ask):
    answer = ask(WHOLE | {"experts-per-layer": 40, "resident-fraction": 0.5, "draft-seconds": 0.001})
    copies = np.full(960, 3e-6 + 2654208 / 50e9)
    arrivals = split_by_layer(link_arrival_seconds(np.full(960, 1.5e-6), copies), [20] * 48)
    layer, one = 0.03 / 48, 0.03 / 48 / 2 / 40
    expected = staggered_exposed_seconds(
        0.001 + 0.02, np.full(48, layer / 2), np.full(48, 20 * one), arrivals, [np.full(20, one)] * 48
    )
    assert answer["forms"]["staggered"]["exposed_seconds"] == pytest.approx(expected, rel=1e-12)
    assert expected > 0


def test_idle_link_stands_beside_the_realised_overlap(ask):
    forms = ask(WHOLE | {"overlap-seconds": 0.03, "idle-link-seconds": 0.001})["forms"]
    assert forms["measured_union"]["overlap_seconds"] == 0.03
    assert forms["measured_union"]["idle_link_seconds"] == 0.001
    assert not forms["measured_union"]["hidden"]
    assert forms["measured_union_idle_link_used"]["hidden"]


def test_a_slow_drafter_is_hidden_but_slower_than_b0(ask):
    answer = ask(WHOLE | {"draft-seconds": 0.5})["forms"]["nominal"]
    assert answer["hidden"]
    assert answer["worth"] == Worth.HIDDEN_BUT_SLOWER.value
    assert answer["seconds_per_committed_token"] == pytest.approx((0.5 + 0.02 + 0.03) / 4)
    assert answer["break_even_acceptance_length"] == pytest.approx((0.5 + 0.02 + 0.03) / 0.03)


def test_published_case_restates_its_margin_and_says_what_flips_it(ask, capsys):
    answer = ask({"published": "bm4"})
    margins = {
        (reading["only_expert_copies"], reading["own_draft_in_window"]): reading["margin_seconds"]
        for reading in answer["readings"]
    }
    assert margins[False, True] == pytest.approx(-0.030211633, abs=5e-10)
    assert margins[True, True] == pytest.approx(0.151, abs=5e-4)
    assert margins[True, False] == pytest.approx(0.024, abs=5e-4)
    assert answer["deciding_assumptions"] == ["only_expert_copies"]
    assert main(["hide", "--published", "bm4"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Nominal verdict: not hidden." in text
    assert "-0.030211633" in text
    assert "only 584 copies of one expert (13,236,480 bytes) are expert traffic" in text
    assert "the margin is +0.151 s, and without the sequence's own draft in the window +0.024 s" in text


def test_scenario_terms_are_the_cost_models():
    model, profile = load_model("gpt-oss-20b"), load_profile("rtx-pro-6000")
    costs = CostModel(model, profile)
    scenario = HideScenario(
        model=model,
        profile=profile,
        slot_fraction=0.5,
        block_size=8,
        num_sequences=2,
        context_tokens=512,
        router_exact_depth=3,
        batched_issue=True,
    )
    terms = terms_from_scenario(scenario)
    assert terms.nominal.draft_seconds == costs.draft_seconds(2, 8)
    assert terms.nominal.router_seconds == costs.route_seconds(16, 3)
    assert terms.nominal.total_expert_bytes == model.total_expert_bytes
    assert terms.nominal.saturation == 1.0
    transfers, verify = terms.transfers, terms.verify
    assert transfers.missing_per_layer == 16
    copy = transfers.latency_seconds + transfers.expert_bytes / terms.nominal.measured_h2d_bytes_per_second
    assert copy == costs.transfer_seconds(model.expert_bytes)
    batch = transfers.batch_issue_seconds + 100 * transfers.issue_seconds
    assert batch == pytest.approx(costs.issue_seconds(100, batched=True), rel=1e-12)
    rows = 16 * model.top_k
    assert verify.group_seconds + 32 * verify.expert_seconds == pytest.approx(costs.experts_seconds(32, rows))


def test_scenario_with_routing_measures_unions_and_chances(measured):
    answer = measured
    forms, terms = answer["forms"], answer["terms"]
    assert 4 < terms["experts_per_layer"] < 32 * terms["saturation"]
    assert terms["missing_per_layer"] < terms["experts_per_layer"]
    assert forms["measured_union"]["fetch_seconds"] < forms["nominal"]["fetch_seconds"]
    rounds = answer["chances"]["round_hidden"]
    assert rounds["staggered"]["probability"] >= rounds["measured_union"]["probability"]
    assert answer["chances"]["mean_hidden"]["measured_union"]["num_samples"] == 1000
    assert "link.h2d_bytes_per_second" in answer["chances"]["varied_parameters"]
    assert terms["b0_seconds_per_token"] > 0
    assert forms["staggered"]["worth"] in {verdict.value for verdict in Worth}


def test_flags_replace_what_a_scenario_derives(ask):
    derived = ask(SCENARIO)
    changed = ask(SCENARIO | {"measured-h2d-bytes-per-second": 25e9, "overlap-seconds": 0.004})
    assert derived["sources"]["measured_h2d_bytes_per_second"] == "profile rtx-pro-6000"
    assert changed["sources"]["measured_h2d_bytes_per_second"] == "flag"
    assert changed["forms"]["nominal"]["fetch_seconds"] > derived["forms"]["nominal"]["fetch_seconds"]
    window = derived["forms"]["nominal"]["hide_window_seconds"]
    assert changed["forms"]["nominal"]["hide_window_seconds"] == pytest.approx(window + 0.004)
    assert changed["terms"]["b0_seconds_per_token"] > derived["terms"]["b0_seconds_per_token"]


def test_block_sizes_and_slots_that_hide_are_sets(ask, measured):
    sets = ask(WHOLE | {"overlap-seconds": 0.03})["sets"]
    assert sets["block_size"]["candidates"] == [1, 32]
    assert sets["block_size"]["hiding"] == list(range(1, 9))
    assert sets["block_size"]["hiding_by_union_text"] == "1 to 7"
    assert sets["slots_per_layer"]["hiding_text"] == "74 to 128"
    by_union = measured["sets"]["block_size"]["hiding_by_union"]
    assert 1 not in by_union
    assert 2 in by_union


def test_same_seed_same_bytes_and_another_seed_other_rounds(ask, measured):
    assert ask(MEASURED) == measured
    other = ask(MEASURED | {"seed": 2})
    assert other["terms"]["experts_per_layer"] != measured["terms"]["experts_per_layer"]


def test_sampled_rounds_agree_with_their_means_and_grow_with_the_block():
    trace = load_routing(
        "replay:gpt-oss-20b", num_layers=24, num_experts=32, top_k=4, rng=np.random.default_rng(0)
    )
    sampler = RoundSampler(
        trace, num_sequences=2, longest_block=16, num_slots=16, num_rounds=50, rng=np.random.default_rng(3)
    )
    means = [sampler.means(block_size) for block_size in (1, 2, 8, 16)]
    assert means == sorted(means)
    sample = sampler.sample(8)
    assert sampler.means(8) == pytest.approx((sample.sizes.mean(), sample.missing(16).mean()), rel=1e-12)
    assert 4 <= sampler.means(1)[0] <= 8


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (NOMINAL, "png"),
        (WHOLE, "png"),
        (WHOLE, "svg"),
        ({"published": "bm4"}, "png"),
        ({"published": "bm4"}, "svg"),
    ],
)
def test_pictures_are_whole_and_repeat_byte_for_byte(tmp_path, capsys, values, kind):
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path in paths:
        assert main(["hide", *flags(values), "--plot", str(path)]) == 0
    assert f"wrote {paths[0]}" in capsys.readouterr().err
    data = paths[0].read_bytes()
    assert data.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    assert data == paths[1].read_bytes()


def test_extreme_terms_can_be_drawn(tmp_path):
    for changes in (
        {"draft-seconds": 0, "router-seconds": 0, "overlap-seconds": 0},
        {"total-expert-bytes": 0},
        {"saturation": 0, "resident-fraction": 1},
    ):
        assert main(["hide", *flags(NOMINAL | changes), "--plot", str(tmp_path / "extreme.png")]) == 0


def test_out_file_holds_the_json_object(tmp_path, ask):
    path = tmp_path / "answer.json"
    answer = ask(NOMINAL, "--out", str(path))
    assert json.loads(path.read_text()) == answer


def test_tables_print_every_term_form_and_note(capsys):
    assert main(["hide", *flags(MEASURED)]) == 0
    text = capsys.readouterr().out
    for words in (
        "slot fraction",
        "staggered, exact prefetch",
        "depth 1, no prediction",
        "a round is hidden",
        "the mean is hidden",
        "block sizes that hide, of 1 to 32",
        "Unions of replay:gpt-oss-20b",
        "Nominal verdict: not hidden",
    ):
        assert words in text


def test_help_shows_an_example(capsys):
    assert main(["hide", "--help"]) == 0
    assert "hideaway hide --published bm4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "--resident-fraction, --saturation"),
        (NOMINAL | {"resident-fraction": 1.5}, "resident_fraction is 1.5"),
        (NOMINAL | {"saturation": "nan"}, "saturation is nan"),
        (NOMINAL | {"measured-h2d-bytes-per-second": 0}, "measured_h2d_bytes_per_second is 0"),
        (NOMINAL | {"draft-seconds": "soon"}, "invalid float value"),
        (NOMINAL | {"draft-seconds": 1e300}, "draft_seconds is 1e+300"),
        (NOMINAL | {"seed": -1}, "seed is -1"),
        (NOMINAL | {"slot-fraction": 0.5}, "--slot-fraction needs a scenario"),
        (NOMINAL | {"plot": "picture.bmp"}, "must end in .png or .svg"),
        (NOMINAL | {"published": "bm4"}, "--published brings its own terms"),
        (WHOLE | {"top-k": 200}, "top_k is 200 but num_experts is 128"),
        (WHOLE | {"num-layers": 0}, "num_layers is 0"),
        (WHOLE | {"num-layers": 10**9}, "num_layers is 1000000000 but must be at most 4096"),
        (WHOLE | {"acceptance-length": 9}, "acceptance_length is 9"),
        (WHOLE | {"acceptance-length": 0.5}, "acceptance_length is 0.5"),
        (WHOLE | {"dense-share": 2}, "dense_share is 2"),
        (WHOLE | {"b0-seconds-per-token": 0}, "b0_seconds_per_token is 0"),
        ({"published": "bm9"}, "the cases are bm4"),
        ({"model": "gpt-oss-20b"}, "needs both a model and a profile"),
        (SCENARIO | {"model": "gpt-oss-21b"}, "gpt-oss-21b"),
        (SCENARIO | {"router-exact-depth": 25}, "router_exact_depth is 25 but openai/gpt-oss-20b has 24"),
        (SCENARIO | {"num-experts": 8}, "--num-experts comes from --model"),
        (SCENARIO | {"slot-fraction": -0.1}, "slot_fraction is -0.1"),
        (SCENARIO | {"concurrency": 0}, "concurrency is 0"),
        (MEASURED | {"acceptance-length": 2}, "--acceptance and --acceptance-length"),
        (SCENARIO | {"routing": "replay:nothing"}, "nothing"),
    ],
)
def test_a_slip_is_one_sentence(refuse, values, words):
    assert words in refuse(flags(values))


def test_a_scenario_file_names_the_scenario_and_says_what_it_does_not_use(tmp_path, capsys):
    path = tmp_path / "scenario.toml"
    path.write_text("slot_fraction = 0.25\nblock_size = 4\nrequests = 3\n")
    assert main(["hide", "--scenario", str(path), "--json"]) == 0
    from_file = capsys.readouterr()
    assert "not used by this question: requests" in from_file.err
    flags = [
        "--model",
        "gpt-oss-20b",
        "--profile",
        "rtx-pro-6000",
        "--slot-fraction",
        "0.25",
        "--block-size",
        "4",
    ]
    assert main(["hide", *flags, "--json"]) == 0
    assert capsys.readouterr().out == from_file.out

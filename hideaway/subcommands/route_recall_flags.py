"""The flags of `hideaway route-recall`, and what of them is refused before any work."""

from __future__ import annotations

import argparse

from hideaway.hw.pairs import PAIR_NAMES
from hideaway.hw.route_recall.guesses import AHEAD, BEFORE
from hideaway.options import (
    add_json_option,
    add_out_option,
    add_seed_option,
    output_file,
    refuse_same_file,
)
from hideaway.report.style import picture_kind
from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import finite_number, shown, whole_number

_DEFAULT_PRESET = "stale-gate"
_LEAST_SEQUENCES = 2


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add all flags."""
    parser.add_argument(
        "--model",
        default="tiny",
        metavar="DIR",
        help="Hugging Face checkpoint (gpt-oss, Qwen3-MoE, OLMoE, Mixtral), a pair's folder, or the name of a shipped "
        f"pair: {', '.join(PAIR_NAMES)} (default %(default)s)",
    )
    parser.add_argument("--drafter", metavar="DIR", help="DFlash checkpoint (default: the pair's)")
    parser.add_argument(
        "--drafts",
        choices=("drafter", "replay"),
        help="drafter, or replay: the text's own tokens, some spoilt (default: drafter where there is one)",
    )
    parser.add_argument("--text", metavar="FILE", help="text to decode (default: the pair's held-out text)")
    _add_amounts(parser)
    group = parser.add_argument_group("what comes in time", "rounds replayed over LRU slots and one link")
    group.add_argument("--slots", type=int, metavar="N", help="slots of a layer (default half its experts)")
    group.add_argument(
        "--profile", default="rtx-pro-6000", metavar="NAME", help="where the two times below come from unless "
        "given: a built-in name or a JSON file (default %(default)s)",
    )  # fmt: skip
    group.add_argument("--expert-seconds", type=float, metavar="S", help="to bring one expert")
    group.add_argument(
        "--layer-seconds",
        type=float,
        metavar="S",
        help="to compute one layer of a block, its dense part and its experts",
    )
    parser.add_argument(
        "--plot", type=output_file, metavar="FILE", help="draw the curves to this .png or .svg file"
    )
    parser.add_argument(
        "--preset",
        type=output_file,
        metavar="FILE",
        help="write a predictor for `simulate --predictor FILE.json`",
    )
    parser.add_argument(
        "--preset-predictor",
        default=_DEFAULT_PRESET,
        metavar="NAME",
        help=f"whose curve that is: {', '.join((*AHEAD, *BEFORE))} (default %(default)s)",
    )
    add_seed_option(parser)
    add_json_option(parser)
    add_out_option(parser, "write the whole result to this JSON file")


def _add_amounts(parser: argparse.ArgumentParser) -> None:
    for flag, default, text in (
        ("--rounds", 480, "rounds to judge, and as many to fit on"),
        ("--sequences", 16, "texts they are spread over, each half of the text"),
        ("--prompt-tokens", 128, "tokens of each text that are its prompt"),
        ("--distances", 8, "most layers ahead"),
    ):
        parser.add_argument(
            flag, type=int, default=default, metavar="N", help=f"{text} (default %(default)s)"
        )
    parser.add_argument(
        "--block-size", type=int, metavar="B", help="rows of a block (default the drafter's, or 8)"
    )
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 is greedy (default 0)")
    parser.add_argument(
        "--spoilt-share",
        type=float,
        default=0.3,
        metavar="P",
        help="--drafts replay: chance that a token is replaced (default %(default)s)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads that compute (default all cores)")


def check_flags(arguments: argparse.Namespace) -> None:
    """Refuse what is out of range or does not go together.

    Raises
    ------
    InputError
        Naming the flag.
    """
    for name, least, most in (
        ("rounds", 1, 10**6), ("sequences", _LEAST_SEQUENCES, 10**5), ("prompt_tokens", 1, 10**6),
        ("distances", 1, 4096),
    ):  # fmt: skip
        whole_number(f"--{name.replace('_', '-')}", getattr(arguments, name), minimum=least, maximum=most)
    for name, least, most in (("block_size", 2, 4096), ("slots", 1, 2**14), ("threads", 1, 1024)):
        if getattr(arguments, name) is not None:
            whole_number(f"--{name.replace('_', '-')}", getattr(arguments, name), minimum=least, maximum=most)
    finite_number("--temperature", arguments.temperature)
    finite_number("--spoilt-share", arguments.spoilt_share, maximum=1.0)
    for name in ("expert_seconds", "layer_seconds"):
        if getattr(arguments, name) is not None:
            finite_number(f"--{name.replace('_', '-')}", getattr(arguments, name), above_minimum=True)
    whole_number("--seed", arguments.seed, maximum=2**62)
    if arguments.drafts == "replay" and arguments.temperature != 0:
        raise InputError("--temperature was given with --drafts replay, which draws nothing; leave one out")
    if arguments.drafts == "replay" and arguments.drafter is not None:
        raise InputError("--drafter was given with --drafts replay, which asks no drafter; leave one out")
    if arguments.preset_predictor not in (*AHEAD, *BEFORE):
        raise InputError(
            f"--preset-predictor is {shown(arguments.preset_predictor)}; choose one of {', '.join((*AHEAD, *BEFORE))}"
        )
    if arguments.preset and not arguments.preset.endswith(".json"):
        raise InputError(f"--preset is {arguments.preset!r}; a scenario takes files that end in .json")
    if arguments.plot:
        picture_kind(arguments.plot)
    refuse_same_file(arguments, "out", "plot", "preset")

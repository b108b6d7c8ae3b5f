"""Command lines with one word wrong: a flag, a value, a name, a combination, or where the output goes.

Certain because values are drawn from what the kind or the range of a flag excludes, and unknown words from what no
command knows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.malformed.case import Case, Content, Folder, device
from tests.malformed.spoilt_scenarios import CHOICES, FIELDS, FLAGS

WHOLE_JUNK = (
    "abc",
    "1.5",
    "",
    " ",
    "1e3",
    "0x10",
    "nan",
    "inf",
    "½",
    "1,000",
    "1 2",
    "9" * 5000,
    "None",
    "true",
    "-",
    "0b1",
    "1_",
    "二",
)
NUMBER_JUNK = (
    "abc",
    "",
    " ",
    "1,5",
    "0x1p3",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1..2",
    "½",
    "None",
    "true",
    "1e",
    "--5",
    "9" * 400,
    "50%",
)
NEGATIVE = ("-1", "-1e300", "-1e-9")
UNKNOWN_FLAGS = (
    "--bogus",
    "--Model",
    "--block_size",
    "--verbose",
    "-x",
    "-Z9",
    "--no-such-flag=3",
    "---model",
    "--jsonl",
    "--é",
    "--=1",
    "--seeds",
)
EXTRA_WORDS = ("bogus", "gpt-oss-20b", "", "7", "a b", "é\n", "*")

SIMULATE = ("simulate", "--requests", "1")
HEADROOM = ("headroom", "--replications", "2", "--workers", "1")
MATRIX = ("matrix", "--requests", "1", "--block-size", "2", "--concurrency", "1", "--workers", "1")
HIDE_SCENARIO = ("hide", "--model", "gpt-oss-20b", "--profile", "rtx-pro-6000")
HIDE_TERMS = (
    "hide", "--resident-fraction", "0.5", "--saturation", "1", "--total-expert-bytes", "14e9",
    "--draft-seconds", "0.06",
    "--router-seconds", "0.02", "--measured-h2d-bytes-per-second", "50e9", "--num-layers", "24",
    "--expert-bytes", "13236480",
    "--num-experts", "32", "--top-k", "4", "--block-size", "8", "--verify-seconds", "0.05",
    "--acceptance-length", "3",
    "--b0-seconds-per-token", "0.05",
)  # fmt: skip
HIDE_NOMINAL = HIDE_TERMS[: HIDE_TERMS.index("--num-layers")]
MODELS = ("models", "gpt-oss-20b", "--profile", "rtx-5090")
PROFILE = ("profile", "show", "rtx-5090")
GATES = ("gates",)
MATRIX_ONLY_HAS = ("block_size", "concurrency", "baseline", "rate", "open_loop", "max_sequences")
"""Scenario flags that `matrix` lacks or reads its own way."""

Draw = Callable[[np.random.Generator], Case]


def _pick(choices: tuple[str, ...] | list[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _flag_case(kind: str, base: tuple[str, ...], flag: str, value: str, *names: str) -> Case:
    """Return a case with the value joined to its flag, so that one that starts with a dash stays a value."""
    return Case(
        f"flag:{kind}", (*base, f"--{flag}={value}"), (), (f"--{flag}", flag.replace("-", "_"), *names)
    )


def _scenario_number(rng: np.random.Generator) -> Case:
    base = (SIMULATE, HEADROOM, MATRIX)[rng.integers(3)]
    names = [name for name in FIELDS if base is not MATRIX or name not in MATRIX_ONLY_HAS]
    name = _pick(names, rng)
    kind, least, most = FIELDS[name]
    if kind == "whole":
        low, high = int(least), int(most)
        texts = WHOLE_JUNK + tuple(
            str(value) for value in (low - 1, low - 7, -(10**12), high + 1, 2 * high + 5, 10**25, 10**400)
        )
    else:
        texts = (
            NUMBER_JUNK
            + NEGATIVE
            + tuple(repr(float(value)) for value in (least * 0.9 or -0.1, most * 1.1, most * 1e6, 1e300))
        )
    return _flag_case("scenario number", base, name.replace("_", "-"), _pick(texts, rng))


def _scenario_choice(rng: np.random.Generator) -> Case:
    base = (SIMULATE, HEADROOM, MATRIX)[rng.integers(3)]
    name = _pick([name for name in CHOICES if base is not MATRIX or name not in MATRIX_ONLY_HAS], rng)
    words = ("", "nope", "LRU ", "b1", "none,all", "7", "é", "fp3", "a" * 3000)
    return _flag_case(
        "scenario choice", base, name.replace("_", "-"), _pick(words, rng), name.replace("_", " ")
    )


def _flag_with_value(rng: np.random.Generator) -> Case:
    base = (SIMULATE, MATRIX, GATES, MODELS, HIDE_TERMS)[rng.integers(5)]
    names = (
        ["json"]
        if base in (GATES, MODELS, HIDE_TERMS)
        else ["json", *(name for name in FLAGS if name != "open_loop")]
    )
    return _flag_case(
        "switch with a value",
        base,
        _pick(names, rng).replace("_", "-"),
        _pick(("yes", "1", "true", "no"), rng),
    )


def _unknown_flag(rng: np.random.Generator) -> Case:
    base = _some_base(rng)
    flag = _pick(UNKNOWN_FLAGS, rng)
    return Case(
        "flag:unknown", (*base, flag, *(["3"] if rng.integers(2) else [])), (), (flag.partition("=")[0],)
    )


def _some_base(rng: np.random.Generator) -> tuple[str, ...]:
    bases = (
        SIMULATE,
        HEADROOM,
        MATRIX,
        HIDE_SCENARIO,
        HIDE_TERMS,
        MODELS,
        PROFILE,
        GATES,
        ("models",),
        ("profile", "list"),
    )
    return bases[rng.integers(len(bases))]


def _missing_value(rng: np.random.Generator) -> Case:
    flags: dict[tuple[str, ...], tuple[str, ...]] = {
        SIMULATE: (
            "--model",
            "--requests",
            "--set",
            "--scenario",
            "--timeline",
            "--perfetto",
            "-o",
            "--out",
            "--rate",
            "--seed",
        ),
        MATRIX: (
            "--block-size",
            "--concurrency",
            "--baselines",
            "--workers",
            "--plot-metric",
            "--out",
            "--trace",
        ),
        HEADROOM: ("--replications", "--share", "--most-users", "--plot", "--requests", "-o"),
        HIDE_TERMS: ("--published", "--plot", "--draft-seconds", "--model", "--seed", "--out"),
        MODELS: ("--expert-format", "--profile", "--context-tokens", "-o"),
        PROFILE: ("--set", "-o"),
        GATES: ("--bm2", "--bm3", "--bm4", "--bm5", "--allow-blocked", "-o"),
    }
    base = list(flags)[rng.integers(len(flags))]
    flag = _pick(flags[base], rng)
    tail = ("--json",) if rng.integers(2) else ()
    return Case("flag:without its value", (*base, flag, *tail), (), (flag,))


def _extra_word(rng: np.random.Generator) -> Case:
    base = (SIMULATE, HEADROOM, HIDE_SCENARIO, HIDE_TERMS, MODELS, PROFILE, ("profile", "list"))[
        rng.integers(7)
    ]
    return Case("flag:word too many", (*base, _pick(EXTRA_WORDS, rng)), (), ("unrecognized arguments",))


def _no_command(rng: np.random.Generator) -> Case:
    words = (
        "",
        "simulates",
        "Simulate",
        "--bogus",
        "-v",
        "run",
        "sim ulate",
        "\n",
        "é",
        "help",
        "--Help",
        "profile show",
        "simulate\0",
        "a" * 4000,
    )
    tail = ("", "--json", "--help")[rng.integers(3)]
    return Case("flag:no command", (_pick(words, rng), *filter(None, [tail])), (), ("there is no command",))


def _name(rng: np.random.Generator) -> Case:
    names = {
        "model": ("gpt-oss-21b", "gpt oss 20b", "openai", ".", "..", "no/such", "", "é", "a" * 5000, "C:\\x",
                  "gpt-oss-20b\0", "~"),
        "profile": ("rtx-5091", "h100", "", "..", "no/such", "a" * 5000, "rtx-5090.json", "rtx-5090\0"),
        "trace": ("azure", "Azure-conv", "", ".", "no/such.csv", "a" * 5000, "burstgpt", "azure-conv\0"),
        "routing": ("replay:nope", "replay:", "fitted:", "fitted:nope", "fitted:no.json", "nope", "no.npz",
                    "", ":", "replay:gpt-oss-120b-top2",
                    "Replay:gpt-oss-20b", "fitted:a.json\0", "\0.npz", "replay:qwen3-30b-a3b-top6"),
        "acceptance": ("constant:", "constant:abc", "constant:0.5", "constant:4097", "constant:nan",
                       "constant:-1", "rate:1.5", "rate:-0.1",
                       "rate:x", "rate:", "vector:", "vector:1.5,0.2", "vector:0.5,,0.2", "vector:nope",
                       "vector:0.5,nan", "mixture:",
                       "mixture:0.5", "mixture:1,2,3,4", "mixture:0.9,0.6,0.3,x", "mixture:0.9,0.6,0.3,1.1",
                       "replay:", "replay:nope",
                       "replay:.", "poisson:3", "3", "", "constant", "Constant:3", "vector:" + "0.5," * 5000,
                       "replay:a\0"),
    }  # fmt: skip
    flag = list(names)[rng.integers(len(names))]
    base = (SIMULATE, MATRIX, HEADROOM)[rng.integers(3)]
    return _flag_case(
        f"unknown {flag}", base, flag, _pick(names[flag], rng), flag, "rate", "path", "persistence", "mixture"
    )


def _override(rng: np.random.Generator) -> Case:
    texts = ("a", "=", "", "link.latency_seconds", "link.latency_seconds=", "link.latency_seconds=abc", "=1",
             "link.nope=1", "link.latency_seconds=-1",
             "link.latency_seconds=3601", "link.latency_seconds=nan", "link.latency_seconds=inf",
             "link.latency_seconds=1e-5=2", "link.latency_seconds:1e-5",
             "link.h2d_bytes_per_second=0", "link.h2d_bytes_per_second=1e-300",
             "link.h2d_bytes_per_second=999", "link.h2d_bytes_per_second=1e19",
             "compute.flops_per_second=5e-324", "memory.read_bytes_per_second=1e-300",
             "memory.reserved_bytes=1e17", "memory.device_bytes=0",
             "contention.link_slowdown=101", "Link.latency_seconds=1", "link.latency_seconds=1_0",
             "link.latency_seconds=0x1", "é=1",
             "link.latency_seconds=" + "9" * 5000, "a" * 5000 + "=1", "link.latency_seconds=1e-5\0")  # fmt: skip
    base = (SIMULATE, MATRIX, HEADROOM, PROFILE)[rng.integers(4)]
    return Case(
        "flag:parameter",
        (*base, "--set", _pick(texts, rng)),
        (),
        ("--set", "parameter", "link.", "memory.", "compute.", "contention."),
    )


def _matrix_list(rng: np.random.Generator) -> Case:
    lists = {
        "--block-size": (("0",), ("-1",), ("8", "8"), ("4097",), ("8", "x"), ("1.5",), ("8,16",),
                         ("9" * 5000,), ("8", "16", "0"), ("",)),
        "--concurrency": (("0",), ("2", "2"), ("4097",), ("1e3",), ("2", "-4"), ("nan",), ("1", "2", "1"),
                          ("10" * 20,), ("four",)),
        "--baselines": (("B4",), ("b0",), ("B0", "B1", "ours"), ("",), ("B0,B1",), ("OURS ",)),
        "--workers": (("0",), ("-1",), ("two",), ("1.5",), ("",)),
        "--plot-metric": (("tokens",), ("",), ("ttft_seconds_p99",), ("Goodput_at_slo",)),
    }  # fmt: skip
    flag = list(lists)[rng.integers(len(lists))]
    words = lists[flag][rng.integers(len(lists[flag]))]
    return Case("flag:matrix list", ("matrix", "--requests", "1", flag, *words), (), (flag,))


def _headroom_number(rng: np.random.Generator) -> Case:
    numbers = {
        "replications": ("0", "1", "-3", "1001", "2.5", "many", "", "9" * 5000),
        "share": ("0", "-0.1", "1.01", "nan", "inf", "all", "", "1e300"),
        "most-users": ("0", "-1", "4097", "1e3", "x", ""),
        "workers": ("0", "-2", "x", "1.5"),
        "requests": ("0", "-1", "1.5", "x", "", "2001", "1000001", "9" * 400),
        "plot": ("gains.pdf", "gains", "", "gains.PNGX", ".png/"),
    }  # fmt: skip
    flag = list(numbers)[rng.integers(len(numbers))]
    return _flag_case("headroom", ("headroom",), flag, _pick(numbers[flag], rng), "picture")


def _hide_term(rng: np.random.Generator) -> Case:
    beyond = {
        "resident-fraction": ("1.1", "2", *NEGATIVE), "saturation": ("1.1", "2", *NEGATIVE),
        "total-expert-bytes": ("1e19", *NEGATIVE), "measured-h2d-bytes-per-second": ("0", "1e-300", "1e19",
                                                                                     *NEGATIVE),
        "draft-seconds": ("1e10", *NEGATIVE), "router-seconds": ("1e10", *NEGATIVE),
        "overlap-seconds": ("1e10", *NEGATIVE),
        "experts-per-layer": ("33", "1e9", *NEGATIVE), "latency-seconds": ("1e10", *NEGATIVE),
        "issue-seconds": ("1e10", *NEGATIVE),
        "batch-issue-seconds": ("1e10", *NEGATIVE), "idle-link-seconds": ("1e10", *NEGATIVE),
        "verify-seconds": ("1e10", *NEGATIVE),
        "acceptance-length": ("0", "0.5", "9", *NEGATIVE), "b0-seconds-per-token": ("1e10", *NEGATIVE),
        "dense-share": ("1.1", *NEGATIVE),
    }  # fmt: skip
    flag = list(beyond)[rng.integers(len(beyond))]
    if rng.integers(2):
        return _flag_case("hide term", HIDE_TERMS, flag, _pick(NUMBER_JUNK + beyond[flag], rng))
    return _flag_case("hide term", HIDE_NOMINAL, flag, _pick(NUMBER_JUNK + NEGATIVE, rng))


def _hide_count(rng: np.random.Generator) -> Case:
    terms = {
        "num-layers": "4097",
        "num-experts": "65537",
        "top-k": "33",
        "block-size": "1025",
        "concurrency": "4097",
        "expert-bytes": "1" + "0" * 30,
    }
    scenario = {
        "block-size": "1025",
        "concurrency": "4097",
        "context-tokens": "1" + "0" * 15,
        "router-exact-depth": "25",
        "seed": "-5",
    }
    alone = {name: text for name, text in terms.items() if name != "top-k"}
    base, most = ((HIDE_TERMS, terms), (HIDE_SCENARIO, scenario), (HIDE_NOMINAL, alone))[rng.integers(3)]
    flag = list(most)[rng.integers(len(most))]
    texts = (*WHOLE_JUNK, "-1", "-100", most[flag], "9" * 400)
    if flag not in ("context-tokens", "seed"):
        texts += ("0",)
    return _flag_case(
        "hide count", base, flag, _pick(texts, rng), "num_sequences", "--" + flag, "depth", "seed"
    )


def _hide_combination(rng: np.random.Generator) -> Case:
    required = (
        "--resident-fraction",
        "--draft-seconds",
        "--router-seconds",
        "--measured-h2d-bytes-per-second",
    )
    flag = _pick(required, rng)
    place = HIDE_TERMS.index(flag)
    combinations: tuple[tuple[tuple[str, ...], str], ...] = (
        (HIDE_TERMS[:place] + HIDE_TERMS[place + 2 :], flag),
        (("hide",), "--resident-fraction"),
        (("hide", "--model", "gpt-oss-20b"), "--profile"),
        (("hide", "--profile", "rtx-5090"), "--model"),
        (("hide", "--published", "bm5"), "bm4"),
        (("hide", "--published", ""), "bm4"),
        (("hide", "--published", "bm4", flag, "0.5"), flag),
        (("hide", "--published", "bm4", "--model", "gpt-oss-20b"), "--model"),
        (("hide", "--published", "bm4", "--block-size", "8"), "--block-size"),
        ((*HIDE_NOMINAL, "--batched-issue"), "--batched-issue"),
        ((*HIDE_SCENARIO, "--experts-per-layer", _pick(("33", "60000"), rng)), "experts_per_layer"),
        ((*HIDE_SCENARIO, "--num-layers", "3"), "--num-layers"),
        ((*HIDE_SCENARIO, "--total-expert-bytes", "3e9"), "--total-expert-bytes"),
        ((*HIDE_SCENARIO, "--slot-fraction", _pick(("1.1", "-0.1", "nan", "x", "inf"), rng)), "slot"),
        ((*HIDE_SCENARIO, "--expert-format", _pick(("fp3", "", "MXFP4"), rng)), "expert"),
        ((*HIDE_SCENARIO, "--routing", _pick(("replay:nope", "fitted:", "x", ""), rng)), "rout"),
        ((*HIDE_SCENARIO, "--acceptance", _pick(("rate:2", "constant:x", "x", ""), rng)), "acceptance"),
        ((*HIDE_TERMS, "--routing", "replay:gpt-oss-20b"), "--routing"),
        ((*HIDE_SCENARIO, "--plot", _pick(("x.pdf", "x", "x.png.gz"), rng)), "picture"),
    )
    argv, name = combinations[rng.integers(len(combinations))]
    tail = ("--json",) if rng.integers(2) else ()
    return Case("flag:hide combination", (*argv, *tail), (), (name, name.lstrip("-").replace("-", "_")))


def _models_profile(rng: np.random.Generator) -> Case:
    choices: tuple[tuple[tuple[str, ...], str], ...] = (
        ((*MODELS, f"--context-tokens={_pick((*WHOLE_JUNK, '-1', '1000000001', '9' * 400), rng)}"),
         "--context-tokens"),
        ((*MODELS, f"--expert-format={_pick(('fp3', '', 'MXFP4', 'int4'), rng)}"), "--expert-format"),
        (("models", _pick(("gpt-oss-21b", "", ".", "no/such", "a" * 5000), rng)), "model"),
        (("models", "--profile", "rtx-5090"), "NAME"),
        (("models", "-o", "new.json"), "NAME"),
        (("profile",), "list|show"),
        (("profile", _pick(("shows", "", "LIST", "show rtx-5090"), rng)), "invalid choice"),
        (("profile", "show"), "NAME"),
        (("profile", "show", _pick(("rtx-5091", "", "..", "no/such", "a" * 5000), rng)), "profile"),
        (("gates", "--allow-blocked", _pick(("B4", "", "b3", "OURS"), rng)), "--allow-blocked"),
        (("gates", _pick(("no/such.json", "", "a" * 5000), rng)), ""),
        (("gates", f"--bm{int(rng.integers(2, 6))}", _pick(("no/such.json", "", "."), rng)), ""),
    )  # fmt: skip
    argv, name = choices[rng.integers(len(choices))]
    tail = ("--json",) if rng.integers(2) and argv[-1] != "profile" else ()
    return Case("flag:models, profile, gates", (*argv, *tail), (), (name,) if name else ())


def _pack(rng: np.random.Generator) -> Case:
    layers = ("--shape", "gpt-oss-20b", "-o", "new")
    choices: tuple[tuple[tuple[str, ...], str], ...] = (
        ((), "--model --shape --verify"),
        (("--shape", "gpt-oss-20b"), "-o"),
        (("--shape", _pick(("gpt-oss-21b", "", "no/such", "a" * 5000), rng), "-o", "new"), "model"),
        (("--shape", "gpt-oss-20b", "--model", "x", "-o", "new"), "--model"),
        (("--shape", "gpt-oss-20b", "--verify", "x"), "--verify"),
        (("--verify", _pick(("no/such", "", ".", "/"), rng)), "expert store"),
        ((*layers, f"--layers={_pick((*WHOLE_JUNK, '0', '-1', '25', '9' * 400), rng)}"), "layers"),
        ((*layers, f"--seed={_pick((*WHOLE_JUNK, '-1', '9' * 400), rng)}"), "seed"),
        ((*layers, f"--expert-format={_pick(('fp3', '', 'MXFP4'), rng)}"), "--expert-format"),
    )
    words, name = choices[rng.integers(len(choices))]
    return Case("flag:pack", ("pack", *words), (), (name,))


def _does_not_fit(rng: np.random.Generator) -> Case:
    """Return a scenario whose parts are sound but do not fit together or the device."""
    combinations: tuple[tuple[str, ...], ...] = (
        ("--slots", "33"), ("--slots", "16384"), ("--slot-fraction", "1", "--baseline",
                                                  _pick(("B0", "B1", "B2"), rng)),
        ("--model", "mixtral-8x7b", "--expert-format", "bf16", "--profile", "rtx-5090", "--slot-fraction", "0.9"),
        ("--drafter-parameters", f"{rng.integers(60, 9000)}e9"), ("--staging-slots", "16384"),
        ("--set", f"memory.device_bytes={rng.integers(5, 11)}e9"),
        ("--model", "qwen3-30b-a3b", "--routing", "replay:gpt-oss-20b"), ("--routing", "replay:gemma4-26b-a4b-top6"),
        ("--requests", str(int(rng.integers(2001, 10**6)))), ("--trace", "sharegpt", "--requests",
                                                              str(int(rng.integers(301, 10**6)))),
        ("--rate", "1e-6", "--requests", "2000"), ("--concurrency", "2", "--rate", "1"),
        ("--concurrency", "2", "--open-loop"),
        ("--rate", "1", "--open-loop"), ("--chunk-bytes", str(int(rng.integers(1, 65536)))),
        ("--timeline", "new.jsonl", "--perfetto", "new.jsonl"), ("-o", "new.json", "--timeline", "./new.json"),
    )  # fmt: skip
    tail = combinations[rng.integers(len(combinations))]
    return Case("flag:does not fit", (*SIMULATE, *tail), ())


def _output(rng: np.random.Generator) -> Case:
    flags: dict[tuple[str, ...], tuple[str, ...]] = {
        SIMULATE: ("-o", "--out", "--timeline", "--perfetto", "--event-log"),
        MATRIX: ("-o", "--out"),
        HIDE_SCENARIO: ("-o", "--plot"),
        HIDE_TERMS: ("--out", "--plot"),
        MODELS: ("-o", "--out"),
        PROFILE: ("-o", "--out"),
        GATES: ("-o", "--out"),
        HEADROOM: ("-o", "--out", "--plot"),
    }
    base = list(flags)[rng.integers(len(flags))]
    flag = _pick(flags[base], rng)
    ending = {"--plot": ".png", "--timeline": ".jsonl", "--perfetto": ".pftrace"}.get(flag, ".json")
    paths = [
        "note.txt/new" + ending,
        "note.txt/deep/er/new" + ending,
        "",
        "a\0b" + ending,
        *filter(None, [device("null"), device("full")]),
    ]
    if base is MATRIX:
        paths += ["note.txt"]
    else:
        paths += ["results" + ending, "results" + ending + "/", "new/", ".", "..", "/"]
    path = _pick(paths, rng)
    tail = ("--json",) if rng.integers(2) else ()
    files: tuple[tuple[str, Content], ...] = (("note.txt", b"mine\n"), ("results" + ending, Folder()))
    return Case("flag:unwritable output", (*base, flag, path, *tail), files, ())


FLAG_WAYS: dict[str, tuple[Draw, int]] = {
    "scenario number": (_scenario_number, 6),
    "scenario choice": (_scenario_choice, 2),
    "switch": (_flag_with_value, 1),
    "unknown": (_unknown_flag, 3),
    "missing value": (_missing_value, 2),
    "extra word": (_extra_word, 1),
    "no command": (_no_command, 1),
    "name": (_name, 4),
    "override": (_override, 3),
    "matrix list": (_matrix_list, 2),
    "headroom": (_headroom_number, 1),
    "hide term": (_hide_term, 5),
    "hide count": (_hide_count, 4),
    "hide combination": (_hide_combination, 2),
    "models and profile": (_models_profile, 3),
    "pack": (_pack, 2),
    "does not fit": (_does_not_fit, 3),
    "output": (_output, 4),
}
"""How to spoil a command line, and how often against the others."""


def spoilt_flags(rng: np.random.Generator) -> Case:
    """Return a command line with one word wrong."""
    names = [name for name, (_, weight) in FLAG_WAYS.items() for _ in range(weight)]
    return FLAG_WAYS[_pick(names, rng)][0](rng)


def sound_command_lines() -> tuple[tuple[str, ...], ...]:
    """Return the command lines that are spoilt here, as they are before."""
    return (SIMULATE, MATRIX, HIDE_SCENARIO, HIDE_TERMS, MODELS, PROFILE, GATES)

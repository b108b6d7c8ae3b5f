"""Scenario files with one line wrong: its type, its range, its name or its syntax.

Certain because the kind and the range of every key are written down here, independently of the code, and because what
is no TOML is none whatever stands around it.
"""

from __future__ import annotations

import numpy as np

from tests.malformed import sound
from tests.malformed.case import Case

FIELDS: dict[str, tuple[str, float, float]] = {
    "requests": ("whole", 1, 10**6),
    "concurrency": ("whole", 1, 4096),
    "max_sequences": ("whole", 1, 4096),
    "slots": ("whole", 1, 2**14),
    "block_size": ("whole", 1, 4096),
    "router_exact_depth": ("whole", 1, 4096),
    "lookahead": ("whole", 0, 4096),
    "token_budget": ("whole", 1, 10**9),
    "byte_budget": ("whole", 1, 10**18),
    "prefill_chunk_tokens": ("whole", 1, 10**7),
    "submitted_depth": ("whole", 1, 65536),
    "copy_streams": ("whole", 1, 16),
    "chunk_bytes": ("whole", 0, 10**18),
    "staging_slots": ("whole", 1, 2**14),
    "page_cache_bytes": ("whole", 0, 10**18),
    "seed": ("whole", 0, 2**63 - 1),
    "rate": ("number", 1e-6, 1e6),
    "slot_fraction": ("number", 1e-5, 1),
    "recall": ("number", 0, 1),
    "precision": ("number", 1e-4, 1),
    "drafter_parameters": ("number", 1, 1e13),
    "ttft_limit_seconds": ("number", 1e-6, 1e6),
    "tpot_limit_seconds": ("number", 1e-6, 1e6),
}
"""Kind, least and most of every number of a scenario, as `--help` promises them."""
CHOICES = (
    "expert_format",
    "baseline",
    "rejected_routing",
    "predictor",
    "eviction",
    "prefetch",
    "admission",
    "issue",
    "launch",
)
TEXTS = ("model", "profile", "trace", "routing", "acceptance", *CHOICES)
FLAGS = ("open_loop", "pageable", "verify_reuses_route")

DATES = ("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z")
WRONG = {
    "whole": ("1.5", "true", '"3"', "[1]", "{a = 1}", "nan", "inf", "1e3", "9" * 5000, "[[[[[]]]]]", *DATES),
    "number": ('"1"', "true", "[0.5]", "{}", "nan", "inf", "-inf", "1e400", "9" * 400, "9" * 5000, *DATES),
    "text": ("1", "true", '["x"]', "{}", "nan", '""', "1.5", *DATES),
    "flag": ("1", "0", '"yes"', "[]", "0.0", "{}", *DATES),
}
BROKEN_LINES = (
    "block_size = ", "block_size 8", "= 3", "[unclosed", 'note = "no end', "note = 'no end", "requests = 08",
    "requests = 0x",
    "requests = 1__0", "requests = _1", "slots = [1, 2", "slots = {a = 1", "slots = tru", "slots = True",
    "slots = None",
    'a."b = 1', "a b = 1", "slots = 1 2", "slots = 1,", 'trace = """', 'trace = "\\q"', 'trace = "\\ud800"',
    "slots = +-1",
    "slots = 1.e3", "slots = .5", "rate = 1e", "seed = 0b2", "<<<<<<< HEAD", "\x01", "\x00", "slots = 1\x7f",
    "{", "}", "]", ",",
)  # fmt: skip
STRUCTURES = (
    "[extra]\na = 1\n", "[[parameters]]\n", '[parameters]\n"link.latency_seconds" = 1e-5\n', "[model]\nname = 'x'\n",
    "[parameters.link]\nlatency_seconds = 1e-5\n", "[[extra]]\na = 1\n[[extra]]\nb = 1\n", "[requests]\n",
    "[slots]\nn = 1\n",
)  # fmt: skip
PARAMETERS = (
    '"link.nope" = 1.0', "link.latency_seconds = 1e-5", '"" = 1', '"link.latency_seconds" = -1',
    '"link.latency_seconds" = 3601',
    '"link.latency_seconds" = "1e-5"', '"link.latency_seconds" = true', '"link.latency_seconds" = nan',
    '"link.latency_seconds" = inf', '"link.latency_seconds" = [1]', '"link.h2d_bytes_per_second" = 0',
    '"link.h2d_bytes_per_second" = 1e-300', '"link.h2d_bytes_per_second" = 1e19',
    '"compute.flops_per_second" = 1e-300',
    '"memory.device_bytes" = 0', '"memory.reserved_bytes" = 1e17', '"contention.link_slowdown" = 101',
    '"ssd.latency_seconds" = 1979-05-27', '"host.round_trip_seconds" = ' + "9" * 400, '"Link.latency_seconds" = 1',
)  # fmt: skip
CONFLICTS = ("rate = 2.0", "open_loop = true")


def out_of_range(kind: str, least: float, most: float) -> tuple[str, ...]:
    if kind == "whole":
        low, high = int(least), int(most)
        return tuple(
            str(value)
            for value in (low - 1, low - 10, -(10**15), high + 1, high * 3, 10**19, 10**30, 10**400)
        )
    return tuple(
        repr(float(value)) for value in (least - 1e-7, -1.0, -1e300, most * 1.01, most * 10, 1e18, 1e300)
    )


def spoilt_scenario(rng: np.random.Generator) -> Case:
    """Return a scenario file with one line wrong."""
    ways = (
        _value,
        _value,
        _value,
        _value,
        _syntax,
        _syntax,
        _structure,
        _parameter,
        _unknown,
        _twice,
        _conflict,
        _choice,
    )
    what, key, text = ways[rng.integers(len(ways))](rng)
    commands = [("simulate", "--scenario", "run.toml", "-o", "new.json")]
    commands += [
        (
            "simulate",
            "--scenario",
            "run.toml",
            "--json",
            "--timeline",
            "new.jsonl",
            "--perfetto",
            "new.pftrace",
        )
    ]
    if what != "wrong value":  # a matrix replaces block sizes and concurrencies
        commands.append(("matrix", "--scenario", "run.toml", "--workers", "1", "--out", "new"))
    argv = commands[rng.integers(len(commands))]
    return Case(f"scenario:{what}", argv, (("run.toml", text.encode()),), ("run.toml", *filter(None, [key])))


def with_line(line: str, *, instead_of: str | None = None) -> str:
    """Return the sound scenario with a line more, before the table of parameters."""
    lines = [
        old
        for old in sound.SCENARIO.splitlines()
        if instead_of is None or not old.startswith(f"{instead_of} =")
    ]
    place = lines.index("[parameters]")
    return "\n".join([*lines[:place], line, *lines[place:]]) + "\n"


def _value(rng: np.random.Generator) -> tuple[str, str, str]:
    names = [*FIELDS, *TEXTS, *FLAGS]
    name = names[rng.integers(len(names))]
    if name in FIELDS:
        kind, least, most = FIELDS[name]
        texts: tuple[str, ...] = WRONG[kind] + out_of_range(kind, least, most)
    else:
        texts = WRONG["text" if name in TEXTS else "flag"]
    text = with_line(f"{name} = {texts[rng.integers(len(texts))]}", instead_of=name)
    if name in ("rate", "max_sequences"):
        text = text.replace("concurrency = 2\n", "")
    return "wrong value", name, text


def _choice(rng: np.random.Generator) -> tuple[str, str, str]:
    name = CHOICES[rng.integers(len(CHOICES))]
    words = ("nope", "LRU!", "b1", "all ", "None", "fp3")
    return "unknown choice", name, with_line(f'{name} = "{words[rng.integers(len(words))]}"', instead_of=name)


def _syntax(rng: np.random.Generator) -> tuple[str, str, str]:
    return "no TOML", "", with_line(BROKEN_LINES[rng.integers(len(BROKEN_LINES))])


def _structure(rng: np.random.Generator) -> tuple[str, str, str]:
    addition = STRUCTURES[rng.integers(len(STRUCTURES))]
    name = addition.strip("[").partition("]")[0].partition(".")[0].removesuffix("s")
    return "wrong structure", name, sound.SCENARIO + addition


def _parameter(rng: np.random.Generator) -> tuple[str, str, str]:
    line = PARAMETERS[rng.integers(len(PARAMETERS))]
    text = sound.SCENARIO.replace('"link.latency_seconds" = 1.2e-5\n', line + "\n")
    return (
        "wrong parameter",
        "parameter" if line.startswith('""') else line.partition(" =")[0].strip('"').partition(".")[0],
        text,
    )


def _unknown(rng: np.random.Generator) -> tuple[str, str, str]:
    names = (
        "Requests",
        "block-size",
        "slot_fractions",
        '"model "',
        "timeline",
        "out",
        '""',
        "a" * 400,
        "json",
        "scenario",
    )
    name = names[rng.integers(len(names))]
    return "unknown key", "scenario key", with_line(f"{name} = 1")


def _twice(rng: np.random.Generator) -> tuple[str, str, str]:
    lines = [line for line in sound.SCENARIO.splitlines() if " = " in line and "link" not in line]
    return "key twice", "", with_line(lines[rng.integers(len(lines))])


def _conflict(rng: np.random.Generator) -> tuple[str, str, str]:
    line = CONFLICTS[rng.integers(len(CONFLICTS))]
    return "conflict", line.partition(" ")[0], with_line(line) + "# " + "x" * int(rng.integers(200)) + "\n"

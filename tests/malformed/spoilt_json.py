"""JSON documents with one place spoilt.

Certain because a place gets a value that its type or range excludes, a required key goes, a key that a strict format
does not know comes, or a key stands twice. What a document lets through (null where a value is optional, text of any
kind) is declared beside it and never drawn.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.malformed import sound
from tests.malformed.case import Case

Path = tuple[Any, ...]
HOLE = "@@hole@@"
DEEP = "[" * 500 + "]" * 500

NOT_NUMBERS = ("true", "false", '"7"', '"x"', '""', "[]", "[1]", "{}", '{"value": 1}', "NaN", "Infinity", "-Infinity",
               "1e999", "-1e999", "9" * 400, "-" + "9" * 400, "9" * 5000, DEEP)  # fmt: skip
WRONG = {
    "number": (*NOT_NUMBERS, "-1", "-0.001", "-1e300"),
    "signed": (*NOT_NUMBERS, "-1e300"),
    "whole": (*NOT_NUMBERS, "-1", "-1e300", "1.5", "0.25", "1e30"),
    "place": (*NOT_NUMBERS, "-2", "-1e300", "1.5"),
    "flag": ("0", "1", '"true"', '""', "[]", "{}", "NaN", "1.5", DEEP),
    "text": ("true", "7", "1.5", "[]", '["a"]', "{}", "NaN", DEEP),
    "name": ("true", "7", "1.5", "[]", '["a"]', "{}", "NaN", DEEP, '""', '"\\u0000"', '"a\\nb"', '"\\ud800"',
             '"' + "a" * 5000 + '"'),
    "list": ("7", "true", '"full"', "{}", '{"0": 1}', "NaN"),
    "object": ("7", "true", '"x"', "[]", "[1]", "NaN", "1.5"),
}  # fmt: skip
"""JSON texts that are wrong for a kind of value whatever its range (numbers are at least 0 unless signed)."""


def kind_by_type(value: object) -> str:
    if isinstance(value, bool):
        return "flag"
    for kind, types in (("whole", int), ("number", float), ("text", str), ("list", list)):
        if isinstance(value, types):
            return kind
    return "object"


@dataclass(frozen=True)
class Document:
    """A valid document, the file it goes into, the commands that read it, and what its format lets through.

    `kinds` overrides the kind of a place, or excludes it with an empty text; it is asked with the path.
    `null_is_wrong` and `required` are asked with the path too. `strict` formats refuse unknown keys. `more` are
    texts that are wrong at a place for reasons of its own.
    """

    name: str
    value: Any
    file: str
    commands: tuple[tuple[str, ...], ...]
    kinds: Callable[[Path], str | None] = lambda path: None
    null_is_wrong: Callable[[Path], bool] = lambda path: False
    required: Callable[[Path], bool] = lambda path: False
    more: Callable[[Path], tuple[str, ...]] = lambda path: ()
    strict: bool = False
    lines: bool = False

    def content(self, value: Any, fragment: str = "null", key: str = HOLE) -> bytes:
        parts = value if self.lines else [value]
        texts = [json.dumps(part, indent=None if self.lines else 1) for part in parts]
        text = "\n".join(texts) + "\n"
        return text.replace(f'"{HOLE}":', f'"{key}":').replace(f'"{HOLE}"', fragment).encode()


def places(value: Any, path: Path = ()) -> list[Path]:
    found: list[Path] = [path]
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, item in members:
        found += places(item, (*path, step))
    return found


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def with_value(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    at(changed, path[:-1])[path[-1]] = new
    return changed


def without(value: Any, path: Path) -> Any:
    changed = copy.deepcopy(value)
    del at(changed, path[:-1])[path[-1]]
    return changed


def spoilt_document(document: Document, rng: np.random.Generator) -> Case:
    """Return the document with one thing wrong."""
    ways = [_wrong_value, _wrong_value, _wrong_value, _repeated_key, _wrong_top]
    if any(document.required(path) for path in places(document.value) if path):
        ways += [_missing_key, _missing_key]
    if document.strict:
        ways.append(_unknown_key)
    what, content, path = ways[rng.integers(len(ways))](document, rng)
    argv = document.commands[rng.integers(len(document.commands))]
    keys = [step for step in path if isinstance(step, str)]
    names = (document.file, *keys[-1:], document.name)
    return Case(f"{document.name}:{what}", argv, ((document.file, content),), names)


def _wrong_value(document: Document, rng: np.random.Generator) -> tuple[str, bytes, Path]:
    candidates = [path for path in places(document.value) if path and _texts(document, path)]
    path = candidates[rng.integers(len(candidates))]
    texts = _texts(document, path)
    fragment = texts[rng.integers(len(texts))]
    return "wrong value", document.content(with_value(document.value, path, HOLE), fragment), path


def _texts(document: Document, path: Path) -> tuple[str, ...]:
    kind = document.kinds(path)
    kind = kind_by_type(at(document.value, path)) if kind is None else kind
    texts = WRONG.get(kind, ()) + document.more(path)
    return (*texts, "null") if document.null_is_wrong(path) else texts


def _repeated_key(document: Document, rng: np.random.Generator) -> tuple[str, bytes, Path]:
    objects = [
        path
        for path in places(document.value)
        if isinstance(at(document.value, path), dict) and at(document.value, path)
    ]
    if not objects:
        return _wrong_value(document, rng)
    path = objects[rng.integers(len(objects))]
    keys = list(at(document.value, path))
    key = keys[rng.integers(len(keys))]
    grown = with_value(
        document.value, path, {**at(document.value, path), HOLE: at(document.value, path)[key]}
    )
    return "repeated key", document.content(grown, key=key), (*path, key)


def _wrong_top(document: Document, rng: np.random.Generator) -> tuple[str, bytes, Path]:
    fragments = (
        "null",
        "7",
        '"x"',
        "true",
        "NaN",
        "[null]",
        "[[]]",
        '[{"a": 1}]',
        '["x", {}]',
        '{"a": {"b": []}}',
        "{}",
        "[7]",
    )
    if document.name in ("recording", "vector"):
        fragments = tuple(text for text in fragments if text != "[7]")
    return "wrong top level", fragments[rng.integers(len(fragments))].encode(), ()


def _missing_key(document: Document, rng: np.random.Generator) -> tuple[str, bytes, Path]:
    candidates = [path for path in places(document.value) if path and document.required(path)]
    path = candidates[rng.integers(len(candidates))]
    return "missing key", document.content(without(document.value, path)), path


def _unknown_key(document: Document, rng: np.random.Generator) -> tuple[str, bytes, Path]:
    objects = [path for path in places(document.value) if isinstance(at(document.value, path), dict)]
    path = objects[rng.integers(len(objects))]
    names = ("values", "Name", "expert count", "é", "", "__proto__", "a" * 300, "version ")
    key = names[rng.integers(len(names))]
    grown = with_value(document.value, path, {**at(document.value, path), key: 1})
    return "unknown key", document.content(grown), (*path, key[:40])


def documents(rng: np.random.Generator) -> dict[str, Document]:
    """Return every document, the profile and the model drawn from those that are shipped."""
    profile = list(sound.PROFILES.values())[rng.integers(len(sound.PROFILES))]
    models = [*sound.MODELS.values(), sound.TINY_MODEL, sound.TINY_MODEL]
    model = models[rng.integers(len(models))]
    return {document.name: document for document in (
        _profile(profile), _model(model), _config(), _rows(), *_benchmarks(), _mooncake(), _sharegpt(),
        *_acceptances(),
        _router_fit(),
    )}  # fmt: skip


def _profile(value: Any) -> Document:
    beyond = {"bytes/second": ("0", "999", "1e19"), "flops/second": ("0", "1e22"), "seconds": ("3601", "1e5"),
              "bytes": ("1e19",), "fraction": ("101",)}  # fmt: skip

    def more(path: Path) -> tuple[str, ...]:
        if path[-1] == "value":
            return beyond[value["parameters"][path[1]]["unit"]]
        texts = {"unit": ('"second"', '"GB/s"'), "origin": ('"guessed"', '"Measured"'),
                 "format": ('"hideaway-model"',),
                 "version": ("0", "2", "1.5")}  # fmt: skip
        return texts.get(path[-1], ())

    def kinds(path: Path) -> str | None:
        if path[-1] in ("name", "device", "source", "unit", "origin"):
            return "name"
        return "number" if path[-1] in ("value", "standard_error") else None

    return Document(
        "profile",
        value,
        "card.json",
        (
            ("profile", "show", "card.json"),
            ("profile", "show", "card.json", "--json", "-o", "new.json"),
            ("models", "gpt-oss-20b", "--profile", "card.json", "-o", "new.json"),
            (
                "simulate",
                "--requests",
                "1",
                "--profile",
                "card.json",
                "--timeline",
                "new.jsonl",
                "-o",
                "new.json",
            ),
            ("matrix", "--requests", "1", "--profile", "card.json", "--workers", "1", "--out", "new"),
            ("hide", "--model", "gpt-oss-20b", "--profile", "card.json", "--plot", "new.png"),
        ),
        kinds=kinds,
        null_is_wrong=lambda path: path[-1] != "standard_error",
        required=lambda path: True,
        more=more,
        strict=True,
    )


def _model(value: Any) -> Document:
    never_null = ("format", "version", "name", "source", "hidden_size", "vocab_size", "layer_kinds",
                  "experts", "stored",
                  "count", "top_k", "intermediate_size")  # fmt: skip

    def more(path: Path) -> tuple[str, ...]:
        if path[0] == "layer_kinds":
            return ("[]",) if len(path) == 1 else ('"half"', '"Full"', "null")
        if (
            path[0] == "stored"
            and isinstance(path[-1], str)
            and path[-1] != "stored"
            and path[-1] != "fp8_block"
        ):
            return ('"int4"', '"FP8"')
        return {
            "top_k": ("100000",),
            "hidden_size": ("0",),
            "format": ('"hideaway-profile"',),
            "version": ("2",),
        }.get(path[-1], ())

    def kinds(path: Path) -> str | None:
        if path[-1] in ("name", "source") or (path[0] == "aliases" and len(path) == 2):
            return "name"
        return None

    return Document(
        "model",
        value,
        "shapes.json",
        (
            ("models", "shapes.json", "-o", "new.json"),
            ("models", "shapes.json", "--profile", "rtx-5090", "--json"),
            ("simulate", "--requests", "1", "--model", "shapes.json", "-o", "new.json"),
            ("matrix", "--requests", "1", "--model", "shapes.json", "--workers", "1", "--out", "new"),
            ("hide", "--model", "shapes.json", "--profile", "rtx-5090", "-o", "new.json"),
        ),
        kinds=kinds,
        null_is_wrong=lambda path: path[-1] in never_null,
        required=lambda path: path[-1] in never_null,
        more=more,
        strict=True,
    )


def _config() -> Document:
    whole = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_local_experts",
             "num_experts_per_tok", "vocab_size",
             "num_attention_heads")  # fmt: skip
    checked = (
        *whole,
        "num_key_value_heads",
        "head_dim",
        "tie_word_embeddings",
        "attention_bias",
        "layer_types",
    )
    return Document(
        "config",
        sound.HF_CONFIG,
        "config.json",
        (
            ("models", "config.json"),
            ("models", ".", "-o", "new.json"),
            ("simulate", "--requests", "1", "--model", "config.json", "--perfetto", "new.pftrace"),
        ),
        kinds=lambda path: None if len(path) == 1 and path[0] in checked else "",
        required=lambda path: len(path) == 1 and path[0] in whole,
        more=lambda path: (
            ('"wavy"', "7", "null", "{}") if path[0] == "layer_types" and len(path) == 2 else ()
        ),
    )


def _rows() -> Document:
    counts = ("block_size", "concurrency", "repeat")
    identity = ("model", "draft", "baseline", *counts)

    def kinds(path: Path) -> str | None:
        return "" if len(path) > 1 and path[1] == "cost_terms" and len(path) == 3 else None

    def more(path: Path) -> tuple[str, ...]:
        if len(path) == 3:
            return ("NaN", "Infinity", "9" * 400, DEEP)
        return {"block_size": ("0",), "concurrency": ("0",), "model": ('""', '"\\ud800"'), "baseline": ('""',),
                "cost_terms": ("null",)}.get(path[-1], ())  # fmt: skip

    return Document(
        "rows",
        sound.ROWS,
        "rows.json",
        (
            ("gates", "rows.json"),
            ("gates", "rows.json", "--json", "-o", "new.json"),
            ("gates", ".", "--allow-blocked", "B3"),
        ),
        kinds=kinds,
        null_is_wrong=lambda path: len(path) < 3 and path[-1] != "cost_terms",
        required=lambda path: len(path) == 2 and path[1] in identity,
        more=more,
    )


def _benchmarks() -> tuple[Document, ...]:
    def commands(flag: str) -> tuple[tuple[str, ...], ...]:
        return (("gates", flag, "bench.json"), ("gates", flag, "bench.json", "--json", "-o", "new.json"))

    return (
        Document("bm2", sound.BM2, "bench.json", commands("--bm2"),
                 more=lambda path: ("0",) if path[0] == "window_us" else ()),
        Document("bm3", sound.BM3, "bench.json", commands("--bm3"), null_is_wrong=lambda path: len(path) > 1,
                 required=lambda path: True),
        Document("bm4", sound.BM4, "bench.json", commands("--bm4"),
                 more=lambda path: ("0",) if path[0] in ("num_rounds", "expert_bytes") else ()),
        Document("bm5", sound.BM5, "bench.json", commands("--bm5"),
                 required=lambda path: len(path) == 1 and path[0] != "rel_tol",
                 null_is_wrong=lambda path: len(path) == 1,
                 kinds=lambda path: None if len(path) == 1 or path[-1] in _BM5_METRICS else ""),
    )  # fmt: skip


_BM5_METRICS = (
    "acceptance_length_a",
    "route_ahead_prefetch_coverage",
    "wasted_prefetch_bytes",
    "output_tokens_per_second",
)


def _trace_commands(name: str) -> tuple[tuple[str, ...], ...]:
    return (
        ("simulate", "--trace", name, "--requests", "1", "-o", "new.json"),
        (
            "simulate",
            "--trace",
            name,
            "--requests",
            "2",
            "--rate",
            "1",
            "--json",
            "--perfetto",
            "new.pftrace",
        ),
        ("matrix", "--trace", name, "--requests", "1", "--workers", "1", "--out", "new"),
    )


def _mooncake() -> Document:
    lengths = ("input_length", "output_length")
    return Document(
        "mooncake",
        sound.MOONCAKE,
        "requests.jsonl",
        _trace_commands("requests.jsonl"),
        kinds=lambda path: (
            "object"
            if len(path) == 1
            else "signed"
            if path[1] == "timestamp"
            else None
            if path[1] in lengths
            else ""
        ),
        null_is_wrong=lambda path: len(path) == 1 or path[1] != "hash_ids",
        required=lambda path: len(path) == 2 and path[1] != "hash_ids",
        more=lambda path: ("10000001",) if path[-1] in lengths else (),
        lines=True,
    )


def _sharegpt() -> Document:
    return Document(
        "sharegpt",
        sound.SHAREGPT,
        "chats.json",
        _trace_commands("chats.json"),
        kinds=lambda path: "" if path[-1] == "id" else None,
        null_is_wrong=lambda path: path[-1] != "id",
        required=lambda path: path[-1] in ("conversations", "from", "value"),
    )


def acceptance_commands(form: str, name: str) -> tuple[tuple[str, ...], ...]:
    return (
        ("simulate", "--requests", "1", "--acceptance", f"{form}:{name}", "-o", "new.json"),
        ("hide", "--model", "gpt-oss-20b", "--profile", "rtx-5090", "--acceptance", f"{form}:{name}"),
    )


def _acceptances() -> tuple[Document, ...]:
    def rates(path: Path) -> tuple[str, ...]:
        return ("1.5", "-0.1", "2") if isinstance(path[-1], int) else ("[]",)

    vector = acceptance_commands("vector", "accept.json")
    return (
        Document("recording", sound.RECORDING, "accept.json", acceptance_commands("replay", "accept.json"),
                 null_is_wrong=lambda path: True, more=lambda path: ("0", "4097")),
        Document("vector", sound.RATES, "accept.json", vector, null_is_wrong=lambda path: True, more=rates),
        Document("conditional", {"conditional": sound.RATES}, "accept.json", vector, null_is_wrong=lambda path: True,
                 required=lambda path: len(path) == 1, more=rates, strict=True),
        Document("cumulative", {"cumulative": sound.CUMULATIVE}, "accept.json", vector,
                 null_is_wrong=lambda path: True,
                 required=lambda path: len(path) == 1,
                 more=lambda path: (*rates(path), "0.95") if path[-1] == 3 else rates(path), strict=True),
    )  # fmt: skip


def _router_fit() -> Document:
    shares = ("within", "slow", "boost", "boost_decay")

    def more(path: Path) -> tuple[str, ...]:
        if path[-1] in shares:
            return ("1.01", "2")
        if path[-1] in ("layers", "sequence_lengths"):
            return ("[]",)
        if path[0] == "sequence_lengths":
            return ("0", "10000001")
        return {"burstiness": ("5.5", "-6"), "drift_tokens": ("0.1", "1e7"), "version": ("2",), "format": ('"x"',),
                "base_quantiles": ("[]", "[0.5]", "[0, 21]")}.get(path[-1], ())  # fmt: skip

    def kinds(path: Path) -> str | None:
        signed = path[-1] == "burstiness" or "base_quantiles" in path[:-1]
        return "signed" if signed else None

    return Document(
        "router fit",
        sound.ROUTER_FIT,
        "router.json",
        (
            ("simulate", "--requests", "1", "--routing", "fitted:router.json", "-o", "new.json"),
            ("hide", "--model", "gpt-oss-20b", "--profile", "rtx-5090", "--routing", "fitted:router.json"),
        ),
        kinds=kinds,
        null_is_wrong=lambda path: True,
        required=lambda path: isinstance(path[-1], str),
        more=more,
        strict=True,
    )


def timeline_document() -> Document:
    """Return a timeline, which no command reads: only `Timeline.read_jsonl` does. Its header may carry more keys."""
    lines = [json.loads(line) for line in sound.TIMELINE.splitlines()]

    def more(path: Path) -> tuple[str, ...]:
        return {"format": ('"x"', '"hideaway-profile"'), "version": ("2", "0"), "track": ('"gpu"', '""', "null"),
                "experts": ('"20"', '"0x"', '"0xg"', '"-0x1"', '"0x' + "f" * 5000 + '"'), "kind": ('""',),
                "band": ("3", "-2"),
                "step": ("-2",), "layer": ("-2",), "bytes": (str(2**63),), "end_seconds": ("1e10",),
                "start_seconds": ("1e10",)}.get(path[-1], ())  # fmt: skip

    def kinds(path: Path) -> str | None:
        if len(path) == 1:
            return "object"
        if path[1] in ("step", "layer", "band"):  # -1 stands for none
            return "place"
        return "signed" if path[1] == "value" else "" if path[1] == "seed" else None

    return Document(
        "timeline",
        lines,
        "run.jsonl",
        ((),),
        kinds=kinds,
        null_is_wrong=lambda path: len(path) < 3 and path[-1] != "seed",
        required=lambda path: len(path) == 2 and path[1] != "seed" and path != (1, "value"),
        more=more,
        lines=True,
    )

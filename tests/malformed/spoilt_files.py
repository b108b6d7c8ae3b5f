"""Files that are not what they are handed in as: absent, a folder, cut, binary, of another format.

Certain because no text file is valid UTF-8 with such a byte in it, no proper prefix of a JSON object or list is JSON,
and no format is another.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import numpy as np

from tests.malformed import sound
from tests.malformed.case import Case, Content, Folder, LinkToItself, SparseFile, device


@dataclass(frozen=True)
class Consumer:
    """A flag that reads a file: a sound file for it, its command line, and which formats it takes."""

    name: str
    file: str
    data: bytes
    argv: tuple[str, ...]
    takes: tuple[str, ...]

    @property
    def is_json(self) -> bool:
        return self.data[:1] in (b"{", b"[")

    @property
    def is_text(self) -> bool:
        return not self.file.endswith(".npz")


def formats() -> dict[str, tuple[str, bytes]]:
    """Return a sound file of every format: its name and content."""
    return {
        "profile": ("card.json", sound.text_of(sound.PROFILES["rtx-5090"])),
        "model": ("shapes.json", sound.text_of(sound.TINY_MODEL)),
        "config": ("config.json", sound.text_of(sound.HF_CONFIG)),
        "rows": ("rows.json", sound.text_of(sound.ROWS)),
        "bm3": ("bm3.json", sound.text_of(sound.BM3)),
        "bm4": ("bm4.json", sound.text_of(sound.BM4)),
        "arrivals": ("requests.csv", sound.ARRIVALS["hideaway"].encode()),
        "mooncake": ("requests.jsonl", sound.lines_of(sound.MOONCAKE)),
        "sharegpt": ("chats.json", sound.text_of(sound.SHAREGPT)),
        "recording": ("accept.json", sound.text_of(sound.RECORDING)),
        "vector": ("rates.json", sound.text_of({"conditional": sound.RATES})),
        "vector table": ("rates.csv", sound.RATES_CSV.encode()),
        "routing": ("rows.npz", sound.archive(sound.routing_arrays())),
        "router fit": ("router.json", sound.text_of(sound.ROUTER_FIT)),
        "scenario": ("run.toml", sound.SCENARIO.encode()),
        "timeline": ("run.jsonl", sound.TIMELINE.encode()),
    }


def consumers() -> tuple[Consumer, ...]:
    """Return every flag that reads a file, with the formats that it takes."""
    known = formats()
    simulate = ("simulate", "--requests", "1")

    def consumer(name: str, example: str, *argv: str, takes: tuple[str, ...] = ()) -> Consumer:
        file, data = known[example]
        return Consumer(
            name, file, data, tuple(word.replace("FILE", file) for word in argv), (example, *takes)
        )

    traces = ("arrivals", "mooncake", "sharegpt")
    return (
        consumer("profile show", "profile", "profile", "show", "FILE"),
        consumer("simulate --profile", "profile", *simulate, "--profile", "FILE", "-o", "new.json"),
        consumer("hide --profile", "profile", "hide", "--model", "gpt-oss-20b", "--profile", "FILE"),
        consumer("models", "model", "models", "FILE", takes=("config",)),
        consumer("simulate --model", "model", *simulate, "--model", "FILE", takes=("config",)),
        consumer("models config", "config", "models", "FILE", "-o", "new.json", takes=("model",)),
        consumer("gates", "rows", "gates", "FILE"),
        consumer("gates --bm2", "bm4", "gates", "--bm2", "FILE", takes=("no file",)),
        consumer("gates --bm3", "bm3", "gates", "--bm3", "FILE", "-o", "new.json"),
        consumer("gates --bm4", "bm4", "gates", "--bm4", "FILE"),
        consumer("gates --bm5", "bm4", "gates", "--bm5", "FILE", takes=("no file",)),
        consumer(
            "simulate --trace",
            "arrivals",
            *simulate,
            "--trace",
            "FILE",
            "--timeline",
            "new.jsonl",
            takes=traces,
        ),
        consumer("simulate --trace jsonl", "mooncake", *simulate, "--trace", "FILE", takes=traces),
        consumer(
            "matrix --trace chats",
            "sharegpt",
            "matrix",
            "--requests",
            "1",
            "--trace",
            "FILE",
            "--out",
            "new",
            takes=traces,
        ),
        consumer("simulate --acceptance replay", "recording", *simulate, "--acceptance", "replay:FILE"),
        consumer(
            "simulate --acceptance vector",
            "vector",
            *simulate,
            "--acceptance",
            "vector:FILE",
            takes=("vector table",),
        ),
        consumer("simulate --routing", "routing", *simulate, "--routing", "FILE", "-o", "new.json"),
        consumer("simulate --routing fit", "router fit", *simulate, "--routing", "fitted:FILE"),
        consumer("simulate --scenario", "scenario", "simulate", "--scenario", "FILE", "-o", "new.json"),
        consumer("matrix --scenario", "scenario", "matrix", "--scenario", "FILE", "--out", "new"),
        consumer("headroom --scenario", "scenario", "headroom", "--scenario", "FILE", "-o", "new.json"),
    )


def spoilt_file(rng: np.random.Generator) -> Case:
    """Return a file that is not what it is handed in as."""
    found = consumers()
    consumer = found[rng.integers(len(found))]
    ways = [_not_a_file, _other_format, _bytes_not_text, _bytes_not_text]
    if consumer.is_json:
        ways += [_not_json, _not_json]
    what, content = ways[rng.integers(len(ways))](consumer, rng)
    argv = consumer.argv
    if isinstance(content, str):
        argv = tuple(word.replace(consumer.file, content) for word in argv)
    files: tuple[tuple[str, Content], ...] = () if isinstance(content, str) else ((consumer.file, content),)
    return Case(f"file:{what}", argv, files, (content[:60] if isinstance(content, str) else consumer.file,))


Spoilt = tuple[str, Content | str]
"""What was done, and the content of the file; or the path of another file to name."""


def _not_a_file(consumer: Consumer, rng: np.random.Generator) -> Spoilt:
    ending = consumer.file.rpartition(".")[2]
    choices: list[Spoilt] = [
        ("missing", f"nowhere.{ending}"),
        ("missing folder", f"no/where.{ending}"),
        ("below a file", f"{consumer.file}/x.{ending}"),
        ("too long a name", "n" * 300 + f".{ending}"),
        ("link to itself", LinkToItself()),
        ("folder", Folder()),
    ]
    if not consumer.argv[0] == "gates" or "--bm" in " ".join(consumer.argv):
        choices.append(("sparse", SparseFile()))
    if consumer.is_text and ":" not in "".join(consumer.argv):
        choices += [("device", path) for path in (device("null"), device("zero")) if path]
    return choices[rng.integers(len(choices))]


def _other_format(consumer: Consumer, rng: np.random.Generator) -> Spoilt:
    known = formats()
    name = [name for name in known if name not in consumer.takes][
        rng.integers(len(known) - len(set(consumer.takes) & set(known)))
    ]
    return "another format", known[name][1]


def _bytes_not_text(consumer: Consumer, rng: np.random.Generator) -> Spoilt:
    data = consumer.data
    place = int(rng.integers(len(data)))
    junk = rng.integers(128, 256, size=int(rng.integers(1, 400)), dtype=np.uint8).tobytes()
    choices: list[tuple[str, bytes]] = [
        ("binary", b"\xff" + junk),
        ("compressed", gzip.compress(data, mtime=0)[: int(rng.integers(10, 40))]),
        ("two-byte text", b"\xff\xfe" + data.decode("latin-1").encode("utf-16-le")),
    ]
    if consumer.is_text:
        flipped = data[:place] + bytes([data[place] | 0x80]) + data[place + 1 :]
        inserted = (
            data[:place] + (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x80")[rng.integers(4)] + data[place:]
        )
        choices += [
            ("flipped byte", flipped),
            ("inserted byte", inserted),
            ("flipped byte", flipped),
            ("inserted byte", inserted),
        ]
    return choices[rng.integers(len(choices))]


def _not_json(consumer: Consumer, rng: np.random.Generator) -> Spoilt:
    text = consumer.data.decode()
    place = int(rng.integers(1, len(text.rstrip())))
    line = text.splitlines()[-1]
    cut = text[:place]
    if consumer.file.endswith(".jsonl"):  # cut inside the last line: what ends with a line is whole
        cut = text[: len(text.rstrip()) - int(rng.integers(1, len(line)))]
    choices: list[tuple[str, str]] = [
        ("empty", "" if rng.integers(2) else " \n" * int(rng.integers(1, 50))),
        ("cut", cut),
        ("cut", cut),
        ("cut", cut),
        ("control character", text[:place] + "\x00\x01\x1b"[rng.integers(3)] + text[place:]),
        ("text after the end", text.rstrip() + (" {}", ",", "]", " x", "}", "[]")[rng.integers(6)]),
        ("single quotes", text.replace('"', "'")),
        ("comment", ("// ", "# ", "/* */ ")[rng.integers(3)] + text),
        ("deep nesting", "[" * (100_000 + int(rng.integers(1000)))),
        ("deep nesting", '{"a":' * 50_000 + "1" + "}" * (50_000 + int(rng.integers(1000)))),
        ("long number", text.replace(": ", ": " + "9" * 5000, 1) if ": " in text else "[" + "9" * 5000 + "]"),
        (
            "Python",
            repr(json.loads(text.splitlines()[0] if consumer.file.endswith(".jsonl") else text)).replace(
                "'", "`"
            ),
        ),
    ]
    if '"' not in text:
        choices = [choice for choice in choices if choice[0] not in ("single quotes", "Python")]
    if consumer.data[:1] == b"[" and consumer.file == "accept.json":
        choices = [choice for choice in choices if choice[0] != "comment"]
    what, spoilt = choices[rng.integers(len(choices))]
    return what, spoilt.encode()

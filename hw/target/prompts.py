"""Prompts of a real run: from a file or the text that ships with the trained pair, cut or cycled to wanted lengths.

A prompts file is JSON lines, each an object with `text` or `token_ids`, and optionally `output_tokens`. Text becomes
tokens through the checkpoint's own `tokenizer.json`; nothing is added around it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_text
from hideaway.sim.inputs.arrivals.source import MAX_TOKENS
from hideaway.sim.inputs.bounded import bounded_whole
from hideaway.sim.inputs.plain_numbers import json_from_text

TOKENIZER_NAME = "tokenizer.json"
HELD_OUT_NAME = "held-out.txt"
DEFAULT_INPUT_TOKENS, DEFAULT_OUTPUT_TOKENS = 256, 128
"""Lengths where neither the prompts nor a trace say otherwise."""
_KEYS = frozenset({"text", "token_ids", "output_tokens"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens of one prompt, and how many are wanted after it where it says so."""

    token_ids: tuple[int, ...]
    output_tokens: int | None = None


class Codec:
    """Text to tokens and back, by a checkpoint's tokenizer.

    Parameters
    ----------
    folder : str or path
        The checkpoint's; without a `tokenizer.json` there is no text, only token ids.

    Raises
    ------
    InputError
        The tokenizer cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        path = self._folder / TOKENIZER_NAME
        self._tokenizer: Any = None
        if path.is_file():
            from tokenizers import Tokenizer

            try:
                self._tokenizer = Tokenizer.from_file(str(path))
            except Exception as error:  # the library raises bare exceptions of its own
                raise InputError(f"cannot read the tokenizer {path}: {error}; download it again") from error

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, without special ones around it.

        Raises
        ------
        InputError
            There is no tokenizer.
        """
        if self._tokenizer is None:
            raise InputError(
                f"{self._folder} has no {TOKENIZER_NAME}, so text cannot be turned into tokens; give token_ids"
            )
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, token_ids: Sequence[int]) -> str | None:
        """Return the text of tokens, None where there is no tokenizer."""
        if self._tokenizer is None:
            return None
        text: str = self._tokenizer.decode(list(token_ids), skip_special_tokens=False)
        return text


def read_prompts(path: str | os.PathLike[str], codec: Codec, vocab_size: int) -> tuple[Prompt, ...]:
    """Return the prompts in a file.

    Raises
    ------
    InputError
        The file cannot be read, a line is malformed, or a token is not one of the model's.
    """
    prompts = tuple(_lines(os.fspath(path), codec, vocab_size))
    if not prompts:
        raise InputError(f"prompts file {os.fspath(path)!r} holds no prompt; give at least one")
    return prompts


def text_prompts(text: str, count: int, codec: Codec) -> tuple[Prompt, ...]:
    """Return `count` prompts that start at evenly spread places of one text and go on in a circle."""
    tokens = codec.encode(text)
    starts = [number * len(tokens) // count for number in range(count)]
    return tuple(Prompt(tokens[start:] + tokens[:start]) for start in starts)


def cut(prompt: Prompt, num_tokens: int) -> tuple[int, ...]:
    """Return the first tokens of a prompt, repeated from its beginning where it is shorter."""
    return tuple(islice(cycle(prompt.token_ids), num_tokens))


def _lines(path: str, codec: Codec, vocab_size: int) -> Iterator[Prompt]:
    for number, line in enumerate(read_text(path, "prompts file").splitlines(), start=1):
        if not line.strip():
            continue
        where = f"line {number} of prompts file {path!r}"
        value = json_from_text(line, where)
        if not isinstance(value, Mapping) or not value.keys() <= _KEYS:
            raise InputError(f"{where} is not an object of {', '.join(sorted(_KEYS))} only; correct it")
        if ("text" in value) == ("token_ids" in value):
            raise InputError(f"{where} must have text or token_ids, and not both; correct it")
        yield _prompt(value, where, codec, vocab_size)


def _prompt(value: Mapping[str, Any], where: str, codec: Codec, vocab_size: int) -> Prompt:
    if "text" in value:
        if not isinstance(value["text"], str):
            raise InputError(f"text in {where} is not a text; write it in quotes")
        ids = codec.encode(value["text"])
    else:
        if not isinstance(value["token_ids"], list):
            raise InputError(f"token_ids in {where} is not a list; write [1, 2, …]")
        ids = tuple(value["token_ids"])
    for token in ids:
        bounded_whole(f"a token in {where}", token, 0, vocab_size - 1)
    if not ids:
        raise InputError(f"{where} has no tokens; a prompt needs at least one")
    output = value.get("output_tokens")
    if output is not None:
        bounded_whole(f"output_tokens in {where}", output, 1, MAX_TOKENS)
    return Prompt(ids, output)

"""Arrival traces in JSON: Mooncake's JSON lines and ShareGPT conversations.

- Mooncake (kvcache-ai/Mooncake, FAST'25 release): one object a line with `timestamp` in milliseconds, `input_length`,
  `output_length` and `hash_ids` (not used);
- ShareGPT: a list (or one object a line) with `conversations: [{from, value}, …]`. The first human turn is the prompt
  and the answer after it the output. There is no time, and text stands where counts are needed: tokens are taken
  as ceil(characters / 4), a rule of thumb for English that this project did not measure.
"""

from __future__ import annotations

from collections.abc import Iterator

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.arrivals.source import MAX_TOKENS, RawRequests
from hideaway.sim.inputs.plain_numbers import json_from_text, number, whole_number
from hideaway.sim.units import MILLISECOND

CHARACTERS_PER_TOKEN = 4
_PROMPT_SPEAKERS = ("human", "user")
_ANSWER_SPEAKERS = ("gpt", "assistant", "chatgpt", "bard", "bing")


def requests_from_json(text: str, what: str) -> RawRequests:
    """Return the requests in the text of a JSON or JSON-lines file; `what` names the file in errors.

    Raises
    ------
    InputError
        The text is not JSON or its objects are of no known format.
    """
    objects = _objects(text, what)
    if not objects:
        raise InputError(f"{what} holds no request; give at least one")
    first = objects[0]
    if isinstance(first, dict) and "conversations" in first:
        return _share_gpt(objects, what)
    if isinstance(first, dict) and "input_length" in first:
        return _mooncake(objects, what)
    raise InputError(
        f"{what} holds neither Mooncake objects (timestamp, input_length, output_length) nor ShareGPT ones"
        " (conversations); give one of the two"
    )


def _objects(text: str, what: str) -> list[object]:
    if text.lstrip().startswith("["):
        value = json_from_text(text, what)
        return value if isinstance(value, list) else [value]
    return list(_lines(text, what))


def _lines(text: str, what: str) -> Iterator[object]:
    for number_of_line, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield json_from_text(line, f"line {number_of_line} of {what}")


def _mooncake(objects: list[object], what: str) -> RawRequests:
    times: list[float] = []
    inputs: list[int] = []
    outputs: list[int] = []
    for index, entry in enumerate(objects, start=1):
        where = f"of request {index} of {what}"
        if not isinstance(entry, dict):
            raise InputError(f"request {index} of {what} is not a JSON object; give one object a line")
        missing = [key for key in ("timestamp", "input_length", "output_length") if key not in entry]
        if missing:
            raise InputError(
                f"request {index} of {what} has no {', '.join(missing)}; Mooncake traces have all three"
            )
        times.append(number(entry["timestamp"], f"timestamp {where}") * MILLISECOND)
        inputs.append(whole_number(entry["input_length"], f"input_length {where}", MAX_TOKENS))
        outputs.append(whole_number(entry["output_length"], f"output_length {where}", MAX_TOKENS))
    return RawRequests("Mooncake", times, inputs, outputs)


def _share_gpt(objects: list[object], what: str) -> RawRequests:
    inputs: list[int] = []
    outputs: list[int] = []
    for index, entry in enumerate(objects, start=1):
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list):
            raise InputError(
                f"conversation {index} of {what} has no list of conversations; give from and value pairs"
            )
        prompt, answer = _first_exchange(turns, f"conversation {index} of {what}")
        inputs.append(_tokens(prompt, index, what))
        outputs.append(_tokens(answer, index, what))
    remark = f", tokens taken as ceil(characters / {CHARACTERS_PER_TOKEN}) of the first exchange of each conversation"
    return RawRequests("ShareGPT", None, inputs, outputs, remark)


def _first_exchange(turns: list[object], where: str) -> tuple[str, str]:
    """Return the first prompt and the answer after it; empty text for what is not there."""
    prompt = ""
    for turn in turns:
        if (
            not isinstance(turn, dict)
            or not isinstance(turn.get("value"), str)
            or not isinstance(turn.get("from"), str)
        ):
            raise InputError(f"a turn of {where} is not an object with texts from and value; give both")
        if prompt and turn["from"] in _ANSWER_SPEAKERS:
            return prompt, turn["value"]
        if not prompt and turn["from"] in _PROMPT_SPEAKERS:
            prompt = turn["value"]
    return prompt, ""


def _tokens(text: str, index: int, what: str) -> int:
    return whole_number(
        -(-len(text) // CHARACTERS_PER_TOKEN), f"text of conversation {index} of {what}", MAX_TOKENS
    )

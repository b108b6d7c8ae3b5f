"""Values in a Hugging Face config: found under any of the names that models use for them, and checked.

Not here: what the values mean together (`hf_layers.py`, `hf_config.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import bounded_whole, json_object
from hideaway.sim.number_checks import shown

TEXT_SECTIONS = ("text_config", "language_config", "llm_config")


class ConfigKeys:
    """The text part of a config; keys that are null count as absent."""

    def __init__(self, config: object) -> None:
        self.top = json_object("the top level", config)
        section = next((key for key in TEXT_SECTIONS if self.top.get(key) is not None), None)
        self.text: Mapping[str, Any] = (
            self.top if section is None else json_object(section, self.top[section])
        )

    def get(self, *keys: str) -> object:
        """Return the first value under one of `keys`, in the text part or else at the top; else None."""
        return self.named(*keys)[1]

    def named(self, *keys: str) -> tuple[str, object]:
        """Return the key that is there and its value; the first key and None where there is none."""
        for part in (self.text, self.top):
            for key in keys:
                if part.get(key) is not None:
                    return key, part[key]
        return keys[0], None

    def whole(self, *keys: str, maximum: int, minimum: int = 1, default: int | None = None) -> int:
        """Return a whole number under one of `keys`, or the default.

        Raises
        ------
        InputError
            It is absent and has no default, or it is not a whole number in [minimum, maximum].
        """
        key, value = self.named(*keys)
        if value is not None:
            return bounded_whole(key, value, minimum, maximum)
        if default is None:
            raise InputError(
                f"there is no {' or '.join(keys)}; give the config.json of a mixture-of-experts model"
            )
        return default

    def optional_whole(self, *keys: str, maximum: int, minimum: int = 0) -> int | None:
        """Return a whole number under one of `keys`, or None where there is none."""
        key, value = self.named(*keys)
        return None if value is None else bounded_whole(key, value, minimum, maximum)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false under `key`, or the default."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InputError(f"{key} is {shown(value)} but must be true or false; correct {key}")
        return value

    def word(self, key: str) -> str:
        """Return text under `key`, or an empty string."""
        value = self.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InputError(f"{key} is {shown(value)} but must be text; correct {key}")
        return value

    def entries(self, key: str, number: int) -> list[Any] | None:
        """Return a list with one entry a layer under `key`, or None where there is none.

        Longer lists are cut: some configs count multi-token-prediction layers too.
        """
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) < number:
            raise InputError(
                f"{key} is {shown(value)} but must be a list of {number} entries, one a layer; correct {key}"
            )
        return value[:number]

"""The decorator of values that are made by the million: frozen to the type checker, plain at run time.

A frozen dataclass checks every assignment, its own initialisation included, which makes it three times as slow to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class a slotted dataclass with equality and hash; the type checker refuses to assign to its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)

"""Experts off the device: one file format, loaders and packers.

A store is a folder with `index.json` and `experts.safetensors`, in which every expert is one contiguous blob that
starts on a page. Start with `reader.py` (reading), `pack.py` (writing, from a checkpoint or made up).
"""

from __future__ import annotations

from hideaway.hw.store.description import StoreDescription, StoredTensor
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.writer import StoreWriter

__all__ = ["ExpertStore", "StoreDescription", "StoreWriter", "StoredTensor"]

"""Where experts are kept between runs, random ones and those of checkpoints, and whether there is room for them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.source import ExpertSource
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.sim.errors import InputError
from hideaway.sim.units import GB

WEIGHT_SEED = 0
"""Weights do not depend on a scenario's seed: one store serves every run of a shape."""
_SPARE_BYTES = GB // 2


def cache_folder() -> Path:
    """Return the folder for what can be made again (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hideaway" / "stores"


def synthetic_source(shape: str, num_layers: int | None, expert_format: str | None) -> SyntheticExperts:
    """Return random experts of a shape."""
    return SyntheticExperts(shape, num_layers=num_layers, seed=WEIGHT_SEED, expert_format=expert_format)


def store_path(source: SyntheticExperts) -> Path:
    """Return where the experts of a source are kept."""
    description = source.description
    name = re.sub(r"[^A-Za-z0-9.]+", "-", description.model).strip("-")
    widths = f"{description.num_experts}x{description.hidden_size}x{description.expert_intermediate_size}"
    return cache_folder() / f"{name}-{widths}-{description.num_layers}-layers-{description.expert_format}"


def checkpoint_store_path(folder: str | os.PathLike[str], source: CheckpointExperts) -> Path:
    """Return where the packed experts of a checkpoint are kept: another place whenever one of its files changes."""
    files = sorted(path for path in Path(folder).iterdir() if path.suffix in (".json", ".safetensors"))
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    digest = hashlib.sha256(repr((os.path.realpath(folder), facts)).encode()).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", Path(os.path.realpath(folder)).name).strip("-")
    return cache_folder() / f"{name}-{digest}-{source.description.expert_format}"


def cached_store(
    source: ExpertSource, progress: Callable[[], None] | None = None, path: Path | None = None
) -> ExpertStore:
    """Return the store of a source, made when it is not there.

    Parameters
    ----------
    path : path, optional
        Where it is kept; needed for experts that are not random ones.

    Raises
    ------
    InputError
        The disk has too little room, or what is there is another store.
    """
    if path is None:
        if not isinstance(source, SyntheticExperts):
            raise InputError("the place of a store was not given; only random experts have one of their own")
        path = store_path(source)
    if path.exists():
        store = ExpertStore(path)
        if store.description != source.description:
            raise InputError(f"{path} holds other experts than this run needs; remove it, or give --store")
        return store
    needed = source.description.total_bytes
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < needed + _SPARE_BYTES:
        raise InputError(
            f"the experts take {needed / GB:.2f} GB in {path.parent} but {free / GB:.2f} GB are free there; "
            "lower --layers, or set XDG_CACHE_HOME to a disk with room"
        )
    return pack_experts(source, path, progress=progress)

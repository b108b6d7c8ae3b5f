"""Small stores and faulty readers that the tests of stores and devices share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hideaway.hw.store import ExpertStore, StoreDescription, StoredTensor, StoreWriter


def description(num_layers: int = 2, num_experts: int = 4, expert_bytes: int = 10_000) -> StoreDescription:
    head = expert_bytes // 2
    return StoreDescription(
        model="test/small",
        source="made up by a test",
        expert_format="mxfp4",
        swiglu="plain",
        num_layers=num_layers,
        num_experts=num_experts,
        top_k=1,
        hidden_size=32,
        expert_intermediate_size=32,
        layer_indices=tuple(range(num_layers)),
        tensors=(
            StoredTensor(name="first", offset=0, bytes=head, dtype="uint8", shape=(head,)),
            StoredTensor(
                name="second",
                offset=head,
                bytes=expert_bytes - head,
                dtype="uint8",
                shape=(expert_bytes - head,),
            ),
        ),
    )


def blob(layer: int, expert: int, expert_bytes: int = 10_000) -> np.ndarray:
    return np.random.default_rng((layer, expert)).integers(0, 256, expert_bytes, dtype=np.uint8)


def make_store(
    path: Path, num_layers: int = 2, num_experts: int = 4, expert_bytes: int = 10_000
) -> ExpertStore:
    with StoreWriter(path, description(num_layers, num_experts, expert_bytes)) as writer:
        for layer in range(num_layers):
            for expert in range(num_experts):
                writer.write(layer, expert, blob(layer, expert, expert_bytes))
    return ExpertStore(path)


class WrappedReader:
    """Reads through `before`, which may raise, wait, or return how many bytes to really read (None: all)."""

    def __init__(
        self,
        inner: object,
        before: Callable[[int, int], int | None],
        after: Callable[[int, np.ndarray], None] = lambda offset, into: None,
    ) -> None:
        self._inner = inner
        self._before = before
        self._after = after
        self.place = inner.place
        self.reads: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def read_into(self, offset: int, into: np.ndarray) -> int:
        with self._lock:
            self.reads.append((offset, into.nbytes))
        size = self._before(offset, into.nbytes)
        count = self._inner.read_into(offset, into if size is None else into[:size])
        self._after(offset, into)
        return count

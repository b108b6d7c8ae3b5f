"""Keys and values of every sequence and layer, appended row by row and cut back when drafts are rejected.

A layer's cache is one tensor (2, heads, tokens, width) that grows by doubling; for latent attention it is
(1, 1, tokens, rank + rope). Sliding layers keep everything and read the window.
"""

from __future__ import annotations

import torch

from hideaway.sim.errors import HideawayError

_FIRST_TOKENS = 512


class _Cache:
    __slots__ = ("tokens", "values")

    def __init__(self) -> None:
        self.tokens = 0
        self.values: torch.Tensor | None = None


class KvStore:
    """Caches by sequence and layer."""

    def __init__(self) -> None:
        self._caches: dict[int, dict[int, _Cache]] = {}

    def tokens(self, seq_id: int, layer: int) -> int:
        """Return how many tokens a sequence has in a layer."""
        return self._cache(seq_id, layer).tokens

    def append(self, seq_id: int, layer: int, new: torch.Tensor, keep_tokens: int) -> torch.Tensor:
        """Cut a cache back to `keep_tokens`, append `new`, and return all of it without a copy. Changes state.

        Parameters
        ----------
        new : torch.Tensor
            (parts, heads, rows, width).
        """
        cache = self._cache(seq_id, layer)
        if keep_tokens > cache.tokens:
            raise HideawayError(
                f"sequence {seq_id} has {cache.tokens} tokens cached in layer {layer} but {keep_tokens} precede the "
                "new ones; this is a fault in the engine"
            )
        cache.tokens = keep_tokens
        end = cache.tokens + new.shape[2]
        if cache.values is None or cache.values.shape[2] < end:
            room = max(_FIRST_TOKENS, 1 << (end - 1).bit_length())
            grown = new.new_empty((new.shape[0], new.shape[1], room, new.shape[3]))
            if cache.values is not None:
                grown[:, :, : cache.tokens] = cache.values[:, :, : cache.tokens]
            cache.values = grown
        cache.values[:, :, cache.tokens : end] = new
        cache.tokens = end
        return cache.values[:, :, :end]

    def forget(self, seq_id: int) -> None:
        """Give back what a sequence holds. Changes state."""
        self._caches.pop(seq_id, None)

    def _cache(self, seq_id: int, layer: int) -> _Cache:
        return self._caches.setdefault(seq_id, {}).setdefault(layer, _Cache())

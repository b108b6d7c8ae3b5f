"""Keys and values of one sequence's committed tokens in every draft layer, while serving.

Only features of committed tokens ever enter (`DFlashDrafter.extend`): those of rejected rows are not handed over. A
draft writes its block's rows behind the committed ones and forgets them: `num_tokens` does not move.
"""

from __future__ import annotations

import torch

from hideaway.hw.draft.config import DrafterConfig
from hideaway.sim.errors import InputError

_FIRST_CAPACITY_TOKENS = 64


class ContextCache:
    """Grows by doubling. Sliding layers keep everything, too: they read only their window of it.

    Attributes
    ----------
    num_tokens : int
        Committed tokens whose features are in; also the position of the next token and of the next block's anchor.
    """

    def __init__(self, config: DrafterConfig, *, dtype: torch.dtype, device: torch.device) -> None:
        self.num_tokens = 0
        shape = (config.num_hidden_layers, 2, config.num_key_value_heads, 0, config.head_dim)
        self._stored = torch.empty(shape, dtype=dtype, device=device)

    @property
    def num_bytes(self) -> int:
        """Return the bytes that are allocated."""
        return self._stored.numel() * self._stored.element_size()

    def truncate(self, num_tokens: int) -> None:
        """Forget all but the first tokens. Changes the cache.

        Raises
        ------
        InputError
            The cache holds fewer.
        """
        if not 0 <= num_tokens <= self.num_tokens:
            raise InputError(
                f"a cache of {self.num_tokens} tokens was to be truncated to {num_tokens}; "
                f"give a count from 0 to {self.num_tokens}"
            )
        self.num_tokens = num_tokens

    def reserve(self, num_rows: int) -> None:
        """Make room for rows behind the committed tokens. Changes the cache."""
        needed = self.num_tokens + num_rows
        capacity = self._stored.shape[3]
        if needed <= capacity:
            return
        layers, two, heads, _, width = self._stored.shape
        shape = (layers, two, heads, max(needed, 2 * capacity, _FIRST_CAPACITY_TOKENS), width)
        # A tensor made in inference mode could not be written outside it.
        with torch.inference_mode(False):
            grown = torch.empty(shape, dtype=self._stored.dtype, device=self._stored.device)
        grown[:, :, :, : self.num_tokens] = self._stored[:, :, :, : self.num_tokens]
        self._stored = grown

    def place(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write rows behind the committed tokens of a layer and return all its keys and values with them.

        Changes the cache, though not `num_tokens`: until `commit`, the next rows are written over these.

        Parameters
        ----------
        layer
            Index of the draft layer.
        keys, values
            (rows, kv_heads, head_dim); `reserve` has made room.

        Returns
        -------
        tuple of tensors
            Views, each (kv_heads, tokens + rows, head_dim).
        """
        first, end = self.num_tokens, self.num_tokens + keys.shape[0]
        stored = self._stored[layer, :, :, :end]
        stored[0, :, first:] = keys.transpose(0, 1)
        stored[1, :, first:] = values.transpose(0, 1)
        return stored[0], stored[1]

    def commit(self, num_rows: int) -> None:
        """Keep the rows that were placed last in every layer. Changes the cache."""
        self.num_tokens += num_rows

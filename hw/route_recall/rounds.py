"""One round of speculative decoding, as far as routing goes: what the rows chose, and what a predictor may look at.

No torch here. Shapes: L layers with routed experts, B rows of the block (the anchor first), k experts a row, E experts
of a layer, D the farthest distance in layers. Expert ids that do not exist (a guess for a layer that is nearer to the
start than the distance) are -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int16]
Chosen = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DraftInputs:
    """What a drafter knows of a block before verify.

    Parameters
    ----------
    anchor : array
        Of the anchor: the target's features of the row before it, beside its embedding, (width,).
    drafts : array
        Of the other rows: the drafter's final hidden state, beside the drafted token's embedding, (B - 1, width).
    """

    anchor: Floats
    drafts: Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Round:
    """What one block's rows chose and what was known of them before.

    Parameters
    ----------
    sequence : int
        Number of the text.
    position : int
        Position of the anchor in it.
    kept : int
        Rows whose token is committed: the anchor's and those of accepted drafts, 1 to B.
    ids : array
        What every row chose, (L, B, k).
    stale : array
        What layer l's router says of the residual that layer l - d adds its experts to, (D, L, B, k); d from 1.
    stale_after : array
        The same with layer l - d's experts added, as the residual leaves that layer.
    embedded : array
        What layer l's router says of the tokens' embeddings, (L, B, k).
    last : array
        What the row before the anchor chose, (L, k).
    last_kept : array
        What the kept rows of the round before chose, (L, rows, k).
    embeddings : array
        Of the tokens, (B, hidden).
    inputs : DraftInputs or None
        None without a drafter.
    """

    sequence: int
    position: int
    kept: int
    ids: Ids
    stale: Ids
    stale_after: Ids
    embedded: Ids
    last: Ids
    last_kept: Ids
    embeddings: Floats
    inputs: DraftInputs | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The rounds of several texts.

    Parameters
    ----------
    rounds : sequence of Round
        Text by text, in order.
    truth : sequence of dict of position to array
        Of each text, what every committed row chose, (L, k), by its position.
    num_experts : int
        Of a layer.
    """

    rounds: Sequence[Round]
    truth: Sequence[dict[int, Ids]] = field(repr=False)
    num_experts: int

    @property
    def num_sequences(self) -> int:
        """Return how many texts there are."""
        return len(self.truth)

    @property
    def num_layers(self) -> int:
        """Return the layers with routed experts."""
        return int(self.rounds[0].ids.shape[0])

    @property
    def block_size(self) -> int:
        """Return the rows of a block."""
        return int(self.rounds[0].ids.shape[1])

    @property
    def top_k(self) -> int:
        """Return the experts of a row."""
        return int(self.rounds[0].ids.shape[2])


def chosen(ids: npt.NDArray[np.integer], num_experts: int) -> Chosen:
    """Return ids (..., k) as booleans (..., E); -1 chooses nothing."""
    marks = np.zeros((*ids.shape[:-1], num_experts + 1), dtype=np.bool_)
    np.put_along_axis(marks, ids.astype(np.int64) % (num_experts + 1), True, axis=-1)
    return marks[..., :num_experts]


def union(experts: Chosen) -> Chosen:
    """Return what any row of (…, rows, E) chooses, (…, E)."""
    anyone: Chosen = np.asarray(experts.any(axis=-2))
    return anyone

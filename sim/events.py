"""What the world tells the scheduler. Frozen, checked when built, ordered at equal times by kind then id.

The scheduler (`hideaway.sim.scheduler`) answers each event with the commands of `hideaway.sim.commands`.
Expert sets are Python-int bitmasks: bit e is expert e of the layer.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from hideaway.sim.values import message


class EventKind(IntEnum):
    """Order in which events of one instant are handled: facts that free something before questions that use it."""

    TRANSFERS_ARRIVED = 0
    TRANSFERS_CANCELLED = 1
    LAYER_DONE = 2
    FORWARD_DONE = 3
    REQUEST_FAILED = 4
    REQUEST_ARRIVED = 5
    DRAFT_DONE = 6
    ROUTE_DONE = 7
    LAYER_ROUTED = 8
    READY = 9


@message
class TransfersArrived:
    """Copies that finished since the last event: `arrivals` holds (layer, expert mask) pairs."""

    kind: ClassVar[EventKind] = EventKind.TRANSFERS_ARRIVED
    at_seconds: float
    arrivals: tuple[tuple[int, int], ...]


@message
class TransfersCancelled:
    """Queued copies that the world dropped on request; copies already submitted are not among them."""

    kind: ClassVar[EventKind] = EventKind.TRANSFERS_CANCELLED
    at_seconds: float
    layer: int
    experts: int


@message
class LayerDone:
    """A layer visit ended; `fetched` are the on-demand experts that are now in slots (streamed ones are not)."""

    kind: ClassVar[EventKind] = EventKind.LAYER_DONE
    at_seconds: float
    layer: int
    fetched: int


@message
class ForwardDone:
    """A forward ended.

    Parameters
    ----------
    committed : tuple of (seq_id, tokens)
        Tokens that each verified sequence commits, its own last token included (a, 1 <= a <= B).
    prefilled : tuple of (seq_id, tokens) or None
        The prefill chunk that was part of the forward.
    last_rows, kept_rows : tuple of int
        Per layer: union of the experts of every sequence's last committed row, and of all its committed
        rows. Empty when the policy did not ask for them.
    """

    kind: ClassVar[EventKind] = EventKind.FORWARD_DONE
    at_seconds: float
    committed: tuple[tuple[int, int], ...]
    prefilled: tuple[int, int] | None
    last_rows: tuple[int, ...] = ()
    kept_rows: tuple[int, ...] = ()


@message
class RequestFailed:
    """A running request cannot go on, because an expert it needs could not be brought; between forwards only."""

    kind: ClassVar[EventKind] = EventKind.REQUEST_FAILED
    at_seconds: float
    seq_id: int


@message
class RequestArrived:
    """A request joins the waiting line."""

    kind: ClassVar[EventKind] = EventKind.REQUEST_ARRIVED
    at_seconds: float
    seq_id: int
    input_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        if self.input_tokens < 1 or self.output_tokens < 1:
            raise ValueError(
                f"request {self.seq_id} has {self.input_tokens} input and {self.output_tokens} output tokens; "
                "both must be at least 1"
            )


@message
class DraftDone:
    """The draft forward of these sequences ended; their drafted tokens exist from now on."""

    kind: ClassVar[EventKind] = EventKind.DRAFT_DONE
    at_seconds: float
    seq_ids: tuple[int, ...]


@message
class RouteDone:
    """Which experts the drafted blocks will read, exactly or by prediction.

    Parameters
    ----------
    predicted : tuple of tuple of int
        Per sequence of `seq_ids`, for as many layers as `Route` asked: the predicted expert set of its block.
    """

    kind: ClassVar[EventKind] = EventKind.ROUTE_DONE
    at_seconds: float
    seq_ids: tuple[int, ...]
    predicted: tuple[tuple[int, ...], ...]


@message
class LayerRouted:
    """The host has learnt which experts this layer visit reads.

    Parameters
    ----------
    needed : int
        Union of the experts of all rows of the forward.
    ahead : tuple of int
        Predicted unions of the next layers, nearest first; as many as the prefetch policy asked for.
    """

    kind: ClassVar[EventKind] = EventKind.LAYER_ROUTED
    at_seconds: float
    layer: int
    needed: int
    ahead: tuple[int, ...] = ()


@message
class LayersHit:
    """A run of layer visits, starting with layer 0, of a model whose experts are all resident."""

    kind: ClassVar[EventKind] = EventKind.LAYER_ROUTED
    at_seconds: float
    needed: tuple[int, ...]


@message
class Ready:
    """The compute stream is free and asks for the next piece of work."""

    kind: ClassVar[EventKind] = EventKind.READY
    at_seconds: float


Event = (
    TransfersArrived
    | TransfersCancelled
    | LayerDone
    | ForwardDone
    | RequestFailed
    | RequestArrived
    | DraftDone
    | RouteDone
    | LayerRouted
    | LayersHit
    | Ready
)

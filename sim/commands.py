"""What the scheduler tells the world to do. Plain frozen values; `Draft`, `Route`, `Forward` and `Idle` come last.

`hideaway.sim.world.engine` executes them on the simulated machine.
"""

from __future__ import annotations

from enum import IntEnum

from hideaway.sim.values import message


class Band(IntEnum):
    """Transfer priority, most urgent first; first-in first-out inside a band."""

    ON_DEMAND = 0
    ROUTE_AHEAD = 1
    BACKGROUND = 2


@message
class Fetch:
    """Copy these experts into slots that are already reserved for them (victims already dropped)."""

    layer: int
    experts: int
    band: Band


@message
class Stream:
    """Move, use and drop these experts one by one through the staging slots; they are not kept."""

    layer: int
    experts: int


@message
class Promote:
    """Move queued copies of these experts to the on-demand band; what is submitted stays where it is."""

    layer: int
    experts: int


@message
class Cancel:
    """Drop queued copies of these experts; the world answers with what it could drop."""

    layer: int
    experts: int


@message
class Draft:
    """Run the drafter once for these sequences."""

    seq_ids: tuple[int, ...]


@message
class Route:
    """Find out which experts the drafted blocks will read.

    Parameters
    ----------
    exact_depth : int
        Layers whose experts are to be known exactly.
    num_layers : int
        Layers that are to be named at all; the rest nobody asks for.
    """

    seq_ids: tuple[int, ...]
    exact_depth: int
    num_layers: int


@message
class Forward:
    """Run the target once over these rows.

    Parameters
    ----------
    seats : tuple of (seq_id, rows)
        Verified sequences and their rows (block size, or 1 for autoregressive decode).
    prefill : tuple of (seq_id, first_token, tokens) or None
        At most one prefill chunk.
    """

    seats: tuple[tuple[int, int], ...]
    prefill: tuple[int, int, int] | None


@message
class Idle:
    """Nothing to do until a request arrives."""


Command = Fetch | Stream | Promote | Cancel | Draft | Route | Forward | Idle

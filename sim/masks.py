"""Expert sets as Python-int bitmasks: bit e stands for expert e."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def mask_of(experts: Iterable[int]) -> int:
    """Return the mask with the bits of `experts` set.

    >>> mask_of([0, 2])
    5
    """
    mask = 0
    for expert in experts:
        mask |= 1 << expert
    return mask


def experts_of(mask: int) -> Iterator[int]:
    """Yield the experts of a mask in ascending order.

    >>> list(experts_of(5))
    [0, 2]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def lowest(mask: int, count: int) -> int:
    """Return the mask of the `count` lowest bits of `mask` (all of it when it holds fewer).

    >>> lowest(0b10110, 2)
    6
    """
    if count <= 0:
        return 0
    excess = mask.bit_count() - count
    if excess <= 0:
        return mask
    if excess < count:
        rest = mask
        for _ in range(excess):
            rest ^= 1 << (rest.bit_length() - 1)
        return rest
    kept = 0
    for _ in range(count):
        low = mask & -mask
        kept |= low
        mask ^= low
    return kept


def packed(masks: Iterable[int], num_experts: int) -> int:
    """Return the masks of successive layers side by side in one integer, whole bytes each.

    Set operations on all layers at once are then one operation on integers.

    >>> packed([1, 2], 8) == 1 | 2 << 8
    True
    """
    size = -(-num_experts // 8)
    return int.from_bytes(b"".join([mask.to_bytes(size, "little") for mask in masks]), "little")

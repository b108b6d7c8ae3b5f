"""What each baseline stands for: every row isolates one thing.

B1, B2 and OURS share drafter, eviction, batching and issue mode, and the same device bytes; B0 and B3-AR have no
drafter and give its memory to expert slots. Source of the rows B0 to B3: the experiment contract of the PD-DFlash
serving plan (EfficientMoE/MoE-Infinity, benchmarks/dflash/pd_dflash_serving.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Baseline:
    """The choices that a baseline fixes unless the scenario overrides them.

    Parameters
    ----------
    meaning : str
        One line for tables.
    speculative : bool
        Draft and verify blocks.
    resident : bool
        Every expert has a slot; unavailable where they do not fit.
    prefetch, admission : str
        Names of policies.
    oracle : bool
        The route pass is exact in every layer.
    """

    meaning: str
    speculative: bool
    resident: bool
    prefetch: str
    admission: str
    oracle: bool = False


BASELINES: dict[str, Baseline] = {
    "B0": Baseline(
        "autoregressive, offloaded, previous-token prefetch", False, False, "previous-token", "all"
    ),
    "B1": Baseline("drafted, with the autoregressive prefetcher", True, False, "previous-token", "all"),
    "B2": Baseline("adds route-ahead and the token deficit", True, False, "route-ahead", "token-deficit"),
    "OURS": Baseline("adds the expert-byte deficit", True, False, "route-ahead", "deficit-2d"),
    "OURS-oracle": Baseline(
        "OURS with exact routes in every layer (a bound)",
        True,
        False,
        "route-ahead",
        "deficit-2d",
        oracle=True,
    ),
    "B3": Baseline("drafted, every expert resident (a bound)", True, True, "none", "all"),
    "B3-AR": Baseline("autoregressive, every expert resident (a bound)", False, True, "none", "all"),
    "B1+deficit": Baseline("B1 with the token deficit", True, False, "previous-token", "token-deficit"),
    "B1+union": Baseline("B1 prefetching the previous round's union", True, False, "previous-union", "all"),
}
"""In the order of tables; the last two tell causes apart."""

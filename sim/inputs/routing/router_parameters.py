"""Parameters of the generative router: one set a layer, and how other depths are interpolated between them.

Not here: the process they describe (`generative.py`, whose docstring defines the symbols) and their file
(`router_fit_file.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hideaway.sim.errors import InputError


@dataclass(frozen=True, slots=True)
class LayerLocality:
    """Parameters of the scores of one layer; the symbols are those of `generative.py`.

    Parameters
    ----------
    base_quantiles
        Sorted base scores at evenly spaced quantiles, of at least 2 knots.
    within
        Share of the score's variance that changes within a sequence, 0 to 1.
    slow
        Share of that which drifts, for an expert at the threshold, 0 to 1.
    drift_tokens
        Memory of the drift, tokens.
    boost, boost_decay
        Share of the quick part that has memory, and its correlation over one token, 0 to 1.
    burstiness
        How much larger the drifting share of rare experts is; may be negative.
    """

    base_quantiles: tuple[float, ...]
    within: float
    slow: float
    drift_tokens: float
    boost: float
    boost_decay: float
    burstiness: float

    def __post_init__(self) -> None:
        """Check ranges."""
        for name in ("within", "slow", "boost", "boost_decay"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"router parameter {name} is {value}; give a number from 0 to 1")
        if (
            not 0.5 <= self.drift_tokens <= 1e6
            or not -5.0 <= self.burstiness <= 5.0
            or self.boost_decay >= 1.0
        ):
            raise InputError(
                f"router parameters drift_tokens {self.drift_tokens}, burstiness {self.burstiness} and boost_decay"
                f" {self.boost_decay} must lie in 0.5 to 1e6, -5 to 5 and 0 to below 1"
            )
        if len(self.base_quantiles) < 2 or not all(abs(value) <= 20.0 for value in self.base_quantiles):
            raise InputError("router parameter base_quantiles needs at least 2 knots, each from -20 to 20")


@dataclass(frozen=True, slots=True)
class RouterFit:
    """A router fitted to a trace: parameters by layer, sequence lengths to draw from, and where it comes from.

    Parameters
    ----------
    name
        What `fitted:` calls it.
    layers
        One entry a layer of the trace, first to last; other depths interpolate between them.
    sequence_lengths
        Lengths, in tokens, from which those of generated sequences are drawn.
    origin
        One sentence for the list of defaults in force.
    """

    name: str
    layers: tuple[LayerLocality, ...]
    sequence_lengths: tuple[int, ...]
    origin: str

    def __post_init__(self) -> None:
        """Check that there is something to draw from."""
        if len({len(layer.base_quantiles) for layer in self.layers}) > 1:
            raise InputError(
                f"layers of router fit {self.name} differ in their number of base_quantiles; use one number"
            )
        if not self.layers or not self.sequence_lengths or min(self.sequence_lengths) < 1:
            raise InputError(
                f"router fit {self.name} needs at least one layer and one sequence length of at least 1"
            )

    def at_depths(self, num_layers: int) -> tuple[LayerLocality, ...]:
        """Return the parameters of a model with `num_layers` layers, interpolated over relative depth."""
        table = np.array([_as_row(layer) for layer in self.layers])
        depths = np.linspace(0.0, 1.0, len(self.layers))
        wanted = np.linspace(0.0, 1.0, num_layers)
        columns = [np.interp(wanted, depths, column) for column in table.T]
        return tuple(_from_row(row) for row in np.array(columns).T.tolist())


def _as_row(layer: LayerLocality) -> list[float]:
    scalars = [float(getattr(layer, field.name)) for field in fields(layer) if field.name != "base_quantiles"]
    return scalars + list(layer.base_quantiles)


def _from_row(row: Sequence[float]) -> LayerLocality:
    names = [field.name for field in fields(LayerLocality) if field.name != "base_quantiles"]
    return LayerLocality(
        base_quantiles=tuple(row[len(names) :]), **dict(zip(names, row[: len(names)], strict=True))
    )

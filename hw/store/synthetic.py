"""Made-up experts of any model's shape: valid FP4, as large as trained weights, a pure function of the seed."""

from __future__ import annotations

import numpy as np

from hideaway.hw.fp4.expert_weights import synthetic_expert
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.reader import Bytes
from hideaway.hw.store.source import description_of, moe_layers, spec_in_fp4
from hideaway.sim.inputs.models.load import load_architecture
from hideaway.sim.number_checks import whole_number


class SyntheticExperts:
    """An `ExpertSource` of random experts.

    Parameters
    ----------
    shape : str
        A model's name or path, as `load_model` takes it.
    num_layers : int, optional
        Layers with routed experts; all of the model's by default.
    seed : int
        Each expert has a generator of its own, seeded with (seed, layer, expert).
    expert_format : {"mxfp4", "nvfp4"}, optional
        By default the model's own FP4 format, MXFP4 if it has none.

    Raises
    ------
    InputError
        The model is not known, has fewer layers, or its experts are not laid out in a known way.
    """

    def __init__(
        self, shape: str, *, num_layers: int | None = None, seed: int, expert_format: str | None = None
    ) -> None:
        self._seed = whole_number("seed", seed, maximum=2**64 - 1)
        architecture = load_architecture(shape)
        spec = spec_in_fp4(architecture, expert_format)
        self._layout = ExpertLayout.of(spec)
        self.description = description_of(
            spec,
            self._layout,
            moe_layers(architecture, num_layers),
            f"random FP4 weights of the shape of {spec.name}, seed {seed}",
        )

    def expert(self, layer: int, expert: int) -> Bytes:
        """Return the bytes of one expert, shape (expert_bytes,)."""
        self.description.position(layer, expert)
        return synthetic_expert(self._layout, np.random.default_rng([self._seed, layer, expert]))

"""Rotary position embedding: angles of positions, plain or stretched to longer contexts (linear, YaRN, Llama 3).

Only the inverse frequencies differ between the kinds. Torch is not needed to check parameters, so it is imported by
`layers.py`, which rotates with what is computed here. Used by `config.py`, which comes next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.bounded import one_of
from hideaway.sim.number_checks import shown

Floats = npt.NDArray[np.float32]

ROPE_TYPES = ("default", "linear", "yarn", "llama3")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeParameters:
    """Parameters of a rotary embedding, named as in `config.json` of Hugging Face checkpoints.

    Raises
    ------
    InputError
        The type is not one of `ROPE_TYPES`, or a number is missing, not finite or not positive.
    """

    rope_theta: float = 10_000.0
    rope_type: str = "default"
    factor: float = 1.0
    original_max_position_embeddings: int = 0
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    truncate: bool = True

    def __post_init__(self) -> None:
        one_of("rope_type", self.rope_type, ROPE_TYPES)
        for name in ("rope_theta", "factor", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor"):
            _positive(name, getattr(self, name))
        if self.attention_factor is not None:
            _positive("attention_factor", self.attention_factor)
        if self.rope_type in ("yarn", "llama3"):
            _positive("original_max_position_embeddings", self.original_max_position_embeddings)
        if self.high_freq_factor <= self.low_freq_factor:
            raise InputError(
                f"high_freq_factor is {self.high_freq_factor} but must be above low_freq_factor "
                f"({self.low_freq_factor}); correct the rope parameters"
            )

    @property
    def cosine_factor(self) -> float:
        """Return what cosines and sines are multiplied by (ratio): YaRN's temperature, otherwise 1.

        0.1 ln(factor) + 1: Peng et al., "YaRN", arXiv 2309.00071, section 3.4 (there the root of 1/t).
        """
        if self.attention_factor is not None:
            return self.attention_factor
        return 0.1 * math.log(self.factor) + 1.0 if self.rope_type == "yarn" and self.factor > 1 else 1.0


def inverse_frequencies(parameters: RopeParameters, head_dim: int) -> Floats:
    """Return the angle per position of every pair of channels, (head_dim / 2,), in radians.

    theta^(-2i/d): Su et al., "RoFormer", arXiv 2104.09864, section 3.2.2. In float32 as the checkpoints were trained.
    """
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    plain = (np.float32(1) / np.float32(parameters.rope_theta) ** exponents).astype(np.float32)
    if parameters.rope_type == "default":
        return plain
    stretched = (plain / np.float32(parameters.factor)).astype(np.float32)
    if parameters.rope_type == "linear":
        return stretched
    keep = (
        _yarn_kept(parameters, head_dim)
        if parameters.rope_type == "yarn"
        else _llama3_kept(parameters, plain)
    )
    mixed: Floats = (stretched * (1 - keep) + plain * keep).astype(np.float32)
    return mixed


def _yarn_kept(parameters: RopeParameters, head_dim: int) -> Floats:
    """Return the share of the plain frequency that each channel pair keeps, 1 for fast ones (YaRN, section 3.2).

    The ramp runs over the channel index between those that turn `beta_fast` and `beta_slow` times in the original
    context: a pair i turns L / (2 pi theta^(2i/d)) times, hence i = d ln(L / (2 pi turns)) / (2 ln theta).
    """

    def channel(turns: float) -> float:
        length = parameters.original_max_position_embeddings
        return head_dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(parameters.rope_theta))

    low, high = channel(parameters.beta_fast), channel(parameters.beta_slow)
    if parameters.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    # Equal ends would divide by zero; a thousandth is what public implementations widen the ramp by.
    width = high - low if high != low else 0.001
    ramp = (np.arange(head_dim // 2, dtype=np.float32) - np.float32(low)) / np.float32(width)
    kept: Floats = (1 - np.clip(ramp, 0, 1)).astype(np.float32)
    return kept


def _llama3_kept(parameters: RopeParameters, plain: Floats) -> Floats:
    """Return the share of the plain frequency that each channel pair keeps, by its turns in the original context.

    None below `low_freq_factor` turns, all above `high_freq_factor`, linear between: the scaling of Llama 3.1
    (`apply_scaling` in meta-llama/llama-models, models/llama3/model.py).
    """
    turns = parameters.original_max_position_embeddings * plain / np.float32(2 * math.pi)
    span = parameters.high_freq_factor - parameters.low_freq_factor
    kept: Floats = np.clip((turns - parameters.low_freq_factor) / span, 0, 1).astype(np.float32)
    return kept


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{name} is {shown(value)} but must be a positive finite number; correct {name}")

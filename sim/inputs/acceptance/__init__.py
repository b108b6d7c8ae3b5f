"""How many tokens a round commits: constant, per-position rates, a persistent mixture, or a recording.

Convention everywhere: a length counts the target's own token (vLLM's mean acceptance length), so it is from 1 to the
block size, and a block of B rows holds one anchor and B - 1 drafts. Start with `load.py`; the models are in
`constant.py`, `positions.py`, `mixture.py` and `replay.py`.
"""

from hideaway.sim.inputs.acceptance.constant import ConstantAcceptance
from hideaway.sim.inputs.acceptance.load import load_acceptance, published_vector_names
from hideaway.sim.inputs.acceptance.mixture import MixtureAcceptance
from hideaway.sim.inputs.acceptance.model import AcceptanceModel, DrawLength
from hideaway.sim.inputs.acceptance.positions import PositionAcceptance, conditional_from_cumulative
from hideaway.sim.inputs.acceptance.replay import ReplayAcceptance

__all__ = [
    "AcceptanceModel",
    "ConstantAcceptance",
    "DrawLength",
    "MixtureAcceptance",
    "PositionAcceptance",
    "ReplayAcceptance",
    "conditional_from_cumulative",
    "load_acceptance",
    "published_vector_names",
]

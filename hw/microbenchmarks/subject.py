"""What is measured: a model's shape cut to a few layers, the device its experts come from, the link's options.

No torch and nothing open: enough to list points and to say how long they will take. `rig.py` holds the real objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hideaway.hw.engine.truncation import cut_architecture
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.source import spec_in_fp4
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.models import Architecture, ModelSpec, load_architecture
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.number_checks import finite_number
from hideaway.sim.units import MIB

FLOAT_BYTES = 4
"""Of a dense weight or a cached key: the engine holds them as float32, whatever the model stores."""
_DEFAULT_CACHE_BYTES = 32 * MIB


@dataclass(frozen=True, slots=True)
class Subject:
    """The model and the machine's parts that points are made of.

    Attributes
    ----------
    shape : str
        What the user named.
    architecture : Architecture
        Of the kept layers; its vocabulary is scaled with them.
    share : float
        Kept layers / all layers.
    drafter_parameters : float
        Scaled likewise.
    device : str
        "disk", "paced-memory" or "cuda".
    cache_bytes : int
        Last-level cache.
    """

    shape: str
    architecture: Architecture
    spec: ModelSpec
    share: float
    drafter_parameters: float
    device: str
    cache_bytes: int

    @property
    def layout(self) -> ExpertLayout:
        """Layout of an expert's bytes."""
        return ExpertLayout.of(self.spec)

    @property
    def name(self) -> str:
        """Name of the model's shape, without where it was read from."""
        return self.spec.name.split(" (first")[0].split("/")[-1]

    @property
    def num_layers(self) -> int:
        """Kept layers with routed experts."""
        return self.spec.num_layers


def make_subject(
    shape: str,
    num_layers: int | None,
    device: str,
    *,
    expert_format: str | None = None,
    drafter_parameters: float | None = None,
    cache_bytes: int | None = None,
) -> Subject:
    """Return the subject of a measurement.

    Parameters
    ----------
    drafter_parameters : float, optional
        Of the whole model's drafter; a scenario's default otherwise.

    Raises
    ------
    InputError
        The model is not known or has fewer layers.
    """
    whole = load_architecture(shape)
    cut = cut_architecture(whole, num_layers)
    share = len(cut.layer_kinds) / len(whole.layer_kinds)
    parameters = Scenario().drafter_parameters if drafter_parameters is None else drafter_parameters
    finite_number("drafter_parameters", parameters, minimum=1)
    return Subject(
        shape,
        cut,
        spec_in_fp4(cut, expert_format),
        share,
        max(1.0, parameters * share),
        device,
        last_level_cache_bytes() if cache_bytes is None else cache_bytes,
    )


def check_store(store: ExpertStore, subject: Subject) -> None:
    """Refuse a store of other experts than the subject's.

    Raises
    ------
    InputError
        Saying what differs.
    """
    held, spec = store.description, subject.spec
    for name in ("num_experts", "hidden_size", "expert_intermediate_size", "expert_format", "expert_bytes"):
        if getattr(held, name) != getattr(spec, name):
            raise InputError(
                f"store {store.path} has {name} {getattr(held, name)} but {spec.name} has {getattr(spec, name)}; "
                "pack one of this shape"
            )
    if held.num_layers < spec.num_layers:
        raise InputError(
            f"store {store.path} has {held.num_layers} layers but {spec.num_layers} are measured; lower --layers"
        )


def last_level_cache_bytes() -> int:
    """Return the size of the largest cache of processor 0 as Linux states it, 32 MiB where nothing is stated."""
    units = {"K": 1024, "M": MIB}
    found = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = path.read_text(encoding="ascii").strip()
            found.append(int(text[:-1]) * units[text[-1]])
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return max(found) or _DEFAULT_CACHE_BYTES

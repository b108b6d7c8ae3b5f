"""The engine's own objects, opened once and shared by all points: weights, experts, device, links, work.

Nothing is made before a point asks for it. One thread uses a rig: the one
that plays the engine.
"""

from __future__ import annotations

from functools import cached_property
from itertools import cycle

import numpy as np
import numpy.typing as npt
import torch

from hideaway.hw.devices.base import Transfer
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.engine.open_device import DeviceOptions, Expert, compute_device, open_expert
from hideaway.hw.engine.store_cache import WEIGHT_SEED
from hideaway.hw.engine.synthetic_layers import SyntheticLayer, SyntheticTrunk, Weights
from hideaway.hw.engine.torch_work import TorchWork
from hideaway.hw.microbenchmarks.file_system import file_system_of
from hideaway.hw.microbenchmarks.forwards import forward_of
from hideaway.hw.microbenchmarks.links import Links, OpenLink, move
from hideaway.hw.microbenchmarks.subject import Subject
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.source import moe_layers
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.world.copies import LinkOptions


class Rig:
    """Everything that points share.

    Parameters
    ----------
    store : ExpertStore or None
        The experts, where any point needs them.
    seed : int
        Of rows, of the experts that are moved and of the order of slots.
    trunk : SyntheticTrunk, optional
        Dense weights of a run that goes on beside, to hold them once.
    """

    def __init__(
        self,
        subject: Subject,
        options: DeviceOptions,
        store: ExpertStore | None,
        *,
        seed: int,
        trunk: SyntheticTrunk | None = None,
    ) -> None:
        self.subject = subject
        self.options = options
        self.torch_device = compute_device(options)
        self.rng = np.random.default_rng(seed)
        self._store = store
        self._trunk = trunk
        self._links = Links(options, store, cache_bytes=subject.cache_bytes)
        self._generator = torch.Generator().manual_seed(seed)
        torch.set_num_threads(options.threads)

    @cached_property
    def trunk(self) -> SyntheticTrunk:
        """Dense weights, head and drafter, as a run makes them."""
        if self._trunk is not None:
            return self._trunk
        weights = Weights(WEIGHT_SEED, self.torch_device)
        return SyntheticTrunk(self.subject.architecture, self.subject.drafter_parameters, weights)

    @cached_property
    def expert(self) -> Expert:
        """What computes experts, warmed up."""
        return open_expert(self.options, self.subject.layout)

    @cached_property
    def resident(self) -> OpenLink:
        """The device as a run opens it, every slot filled."""
        opened = self.link(LinkOptions(), use="slots to compute from")
        slots = range(opened.device.num_slots)
        keys = self.keys(opened, len(slots))
        move(opened.device, [Transfer(*key, slot) for key, slot in zip(keys, slots, strict=True)])
        self._slots = cycle(slots)
        return opened

    @property
    def device(self) -> WorkerDevice:
        """The device of the resident experts."""
        return self.resident.device

    @cached_property
    def layers(self) -> dict[str, list[tuple[int, SyntheticLayer]]]:
        """By kind of attention the layers with routed experts and their indices in the model."""
        architecture = self.subject.architecture
        found: dict[str, list[tuple[int, SyntheticLayer]]] = {}
        for index, layer in zip(moe_layers(architecture, None), self.trunk.moe_layers, strict=True):
            found.setdefault(architecture.layer_kinds[index], []).append((index, layer))
        return found

    def next_slots(self, count: int) -> list[int]:
        """Return slots of `device` that have not been read for longest. Changes state."""
        assert self.resident
        return [next(self._slots) for _ in range(count)]

    def keys(self, link: OpenLink, count: int) -> list[tuple[int, int]]:
        """Return (layer, expert) of different experts of a link in random order. Changes the generator."""
        chosen = self.rng.choice(link.num_layers * link.num_experts, size=count, replace=False).tolist()
        return [divmod(number, link.num_experts) for number in chosen]

    def link(self, options: LinkOptions, block_bytes: int | None = None, use: str = "transfers") -> OpenLink:
        """Return a device over the store; as `Links.link`."""
        return self._links.link(options, block_bytes, use)

    def rows(self, count: int) -> torch.Tensor:
        """Return (count, hidden) random rows where dense work is done. Changes the generator."""
        return self.normal((count, self.subject.architecture.hidden_size))

    def normal(self, size: tuple[int, ...]) -> torch.Tensor:
        """Return standard normal numbers where dense work is done. Changes the generator."""
        return torch.randn(size, generator=self._generator).to(self.torch_device)

    def work(self, expert_ids: npt.NDArray[np.int16]) -> TorchWork:
        """Return the engine's work, about to compute a forward whose rows choose these experts in every layer.

        Parameters
        ----------
        expert_ids : array
            (rows, top_k), -1 for a choice that is not made.
        """
        num_rows, top_k = expert_ids.shape
        trace = RoutingTrace(
            name="microbenchmark",
            expert_ids=np.repeat(expert_ids[:, None, :], self.subject.num_layers, axis=1),
            num_experts=self.subject.spec.num_experts,
            top_k=top_k,
            seq_lengths=np.array([num_rows]),
            origin="made for a microbenchmark",
        )
        work = TorchWork(
            self.trunk,
            trace,
            compute_expert=lambda expert, rows: self.expert.forward(expert, rows),
            slot_tensor=lambda slot: self.device.slot_tensor(slot),
            lookahead=0,
        )
        work.begin(forward_of(num_rows))
        return work

    def device_facts(self) -> dict[str, object]:
        """Return what the first device that was opened says of itself; nothing where none was."""
        return self._links.facts()

    def expert_kernel(self) -> str | None:
        """Return what computes experts; None where none was computed."""
        return self.expert.kernel_name if "expert" in self.__dict__ else None

    def store_file_system(self) -> str | None:
        """Return the type of the file system that holds the store; None where there is none."""
        return None if self._store is None else file_system_of(self._store.path)

    def settle(self) -> None:
        """Let an accelerator finish, as the engine does at the end of each piece of work."""
        if self.torch_device.type == "cuda":
            torch.cuda.current_stream(self.torch_device).synchronize()

    def close(self) -> None:
        """Close every device. Changes state."""
        self._links.close()

"""The data file of a store seen as blocks of another size: what a link takes for sizes that no expert has."""

from __future__ import annotations

from hideaway.hw.store.description import StoreDescription, StoredTensor
from hideaway.hw.store.reader import Bytes, ExpertStore
from hideaway.sim.errors import InputError


class BlockView(ExpertStore):
    """As many whole blocks as fit into the first layers of a store.

    Parameters
    ----------
    store : ExpertStore
        Whose file is read.
    block_bytes : int
        A multiple of a page.
    most_bytes : int, optional
        Use no more of the file than this.

    Raises
    ------
    InputError
        Not one block fits.
    """

    def __init__(self, store: ExpertStore, block_bytes: int, most_bytes: int | None = None) -> None:
        self._blocks: StoreDescription | None = None
        super().__init__(store.path)
        whole = store.description
        total = whole.total_bytes if most_bytes is None else min(whole.total_bytes, most_bytes)
        count = min(total // block_bytes, 1024)
        if count == 0:
            raise InputError(
                f"a block of {block_bytes} bytes does not fit into a store of {total}; measure more layers"
            )
        self._blocks = StoreDescription(
            model=whole.model,
            source=f"blocks of {block_bytes} bytes of another store",
            expert_format=whole.expert_format,
            swiglu=whole.swiglu,
            num_layers=1,
            num_experts=count,
            top_k=1,
            hidden_size=whole.hidden_size,
            expert_intermediate_size=whole.expert_intermediate_size,
            layer_indices=(0,),
            tensors=(
                StoredTensor(name="block", offset=0, bytes=block_bytes, dtype="uint8", shape=(block_bytes,)),
            ),
        )

    @property
    def description(self) -> StoreDescription:
        """The blocks, as one layer; while the file is checked, the experts."""
        return self._blocks or super().description

    @property
    def stride_bytes(self) -> int:
        """Bytes of one block."""
        return self.description.stride_bytes

    def offset_bytes(self, layer: int, expert: int) -> int:
        """Return where a block starts in the data file."""
        return self._index.data_offset_bytes + self.description.position(layer, expert) * self.stride_bytes

    def mismatch(self, layer: int, expert: int, stored: Bytes) -> str | None:
        """Return None: blocks have no checksums."""
        return None

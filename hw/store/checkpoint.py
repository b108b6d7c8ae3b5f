"""Tensors of a Hugging Face checkpoint, one slice at a time: a folder with safetensors shards and their index.

Needs the safetensors library and, through it, torch; both are imported when a checkpoint is opened. What the tensors
of an expert are called is in `hf_experts.py`.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.files import read_json
from hideaway.sim.inputs.bounded import json_object

if TYPE_CHECKING:
    import torch

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
FLOAT_DTYPES = ("BF16", "F16", "F32")


class Checkpoint:
    """Named tensors in a folder.

    Raises
    ------
    InputError
        The folder holds no safetensors files, a shard is missing or damaged, or safetensors is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._safetensors = _safetensors()
        self._lock = threading.Lock()
        self._open: dict[str, Any] = {}
        self.files = self._files()

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        with self._lock:
            return tuple(self._slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """Return the element type of a tensor as safetensors spells it, such as BF16."""
        with self._lock:
            return str(self._slice(name).get_dtype())

    def floats(self, name: str, index: int | None = None) -> npt.NDArray[np.float32]:
        """Return a float tensor, or its `index`-th member along the first axis, as float32.

        Raises
        ------
        InputError
            The tensor is not of 16- or 32-bit floats.
        """
        dtype = self.dtype(name)
        if dtype not in FLOAT_DTYPES:
            raise InputError(
                f"{name} in {self.folder} is stored as {dtype}, which is not read; give the model's release in BF16"
            )
        floats: npt.NDArray[np.float32] = self._read(name, index).float().numpy()
        return floats

    def bytes(self, name: str, index: int) -> npt.NDArray[np.uint8]:
        """Return the `index`-th member of a uint8 tensor.

        Raises
        ------
        InputError
            The tensor is not of uint8.
        """
        dtype = self.dtype(name)
        if dtype != "U8":
            raise InputError(
                f"{name} in {self.folder} is stored as {dtype} but packed FP4 is U8; download it again"
            )
        stored: npt.NDArray[np.uint8] = self._read(name, index).numpy()
        return stored

    def _read(self, name: str, index: int | None) -> torch.Tensor:
        with self._lock:
            found = self._slice(name)
            try:
                tensor: torch.Tensor = found[:] if index is None else found[index]
            except (self._safetensors.SafetensorError, IndexError) as error:
                raise InputError(
                    f"{name} in {self.folder} cannot be read ({error}); download it again"
                ) from error
        return tensor

    def _slice(self, name: str) -> Any:  # noqa: ANN401
        file = self.files.get(name)
        if file is None:
            raise InputError(f"{self.folder} has no tensor {name}; download the checkpoint again")
        try:
            return self._shard(file).get_slice(name)
        except self._safetensors.SafetensorError as error:
            raise InputError(
                f"{self.folder / file} has no tensor {name} ({error}); download it again"
            ) from error

    def _shard(self, file: str) -> Any:  # noqa: ANN401
        if file not in self._open:
            path = self.folder / file
            try:
                self._open[file] = self._safetensors.safe_open(path, framework="pt")
            except (OSError, self._safetensors.SafetensorError) as error:
                raise InputError(f"cannot read {path}: {error}; download it again") from error
        return self._open[file]

    def _files(self) -> dict[str, str]:
        """Return the file of every tensor."""
        if not self.folder.is_dir():
            raise InputError(
                f"{str(self.folder)!r} is not a folder; give the folder of a Hugging Face checkpoint"
            )
        if (self.folder / INDEX_NAME).is_file():
            return self._indexed_files()
        names = [SINGLE_NAME] if (self.folder / SINGLE_NAME).is_file() else []
        names = names or sorted(path.name for path in self.folder.glob("*.safetensors"))
        if not names:
            raise InputError(
                f"{self.folder} holds no safetensors files; give the folder of a Hugging Face checkpoint"
            )
        return {tensor: file for file in names for tensor in self._shard(file).keys()}

    def _indexed_files(self) -> dict[str, str]:
        path = self.folder / INDEX_NAME
        value = json_object("the index", read_json(path, "checkpoint index"))
        weight_map = json_object(f"weight_map in {path}", value.get("weight_map"))
        for name, file in weight_map.items():
            if (
                not isinstance(file, str)
                or os.path.basename(file) != file
                or not file.endswith(".safetensors")
            ):
                raise InputError(
                    f"{path} puts {name} into {json.dumps(file)[:80]}, which is not a safetensors file beside it; "
                    "download it again"
                )
        return dict(weight_map)


def _safetensors() -> Any:  # noqa: ANN401
    try:
        import safetensors
        import torch  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"reading a checkpoint needs safetensors and torch ({error}); install hideaway[hw]"
        ) from error
    return safetensors

"""Writing a store so that it is whole or absent.

Everything goes into a hidden folder beside the target, which is renamed when its files are on the disk. The data
file gets all its room first, so that a full disk is found before the work is done. An error,
Ctrl-C or a full disk removes the folder; a killed process leaves one, which the next writer of the same target
removes (the folder is locked as long as its writer lives).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from hideaway.hw.store.description import StoreDescription
from hideaway.hw.store.header import data_header
from hideaway.hw.store.index_file import DATA_NAME, INDEX_NAME, StoreIndex, index_value
from hideaway.hw.store.reader import Bytes
from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.units import GB

_FOLDER_MODE = 0o755


class StoreWriter:
    """A store in the making; use it in a `with` block, at whose undisturbed end the store appears.

    Parameters
    ----------
    path : str or path
        The folder to make; must not exist, or be empty.
    description : StoreDescription
        What will be written.

    Raises
    ------
    InputError
        The target exists, cannot be written, or the disk has no room.
    """

    def __init__(self, path: str | os.PathLike[str], description: StoreDescription) -> None:
        self.path = Path(os.path.abspath(path))
        self.description = description
        self._checksums: list[int | None] = [None] * (description.num_layers * description.num_experts)
        self._partial: Path | None = None
        self._lock = self._data = -1
        self._check_target()
        try:
            self._open()
        except OSError as error:
            self._discard()
            raise self._error(error) from error
        except BaseException:
            self._discard()
            raise

    def write(self, layer: int, expert: int, blob: Bytes) -> None:
        """Write one expert, shape (expert_bytes,), in any order, each once. Changes state.

        Raises
        ------
        InputError
            The blob has another size, the expert is there already, or the disk is full.
        """
        description = self.description
        position = description.position(layer, expert)
        if blob.shape != (description.expert_bytes,) or blob.dtype != np.uint8:
            raise InputError(
                f"layer {layer} expert {expert} has {blob.nbytes} bytes of {blob.dtype} in shape {blob.shape} but "
                f"the layout says {description.expert_bytes} bytes; give what the layout says"
            )
        if self._checksums[position] is not None:
            raise InputError(f"layer {layer} expert {expert} was written twice; write each expert once")
        blob = np.ascontiguousarray(blob)
        try:
            _write_all(self._data, blob, len(self._header) + position * description.stride_bytes)
        except OSError as error:
            raise self._error(error) from error
        padding = bytes(description.stride_bytes - description.expert_bytes)  # the file was made of zeros
        self._checksums[position] = zlib.crc32(padding, zlib.crc32(blob.data))

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
        except OSError as failure:
            raise self._error(failure) from failure
        finally:
            self._discard()

    def _check_target(self) -> None:
        if os.path.lexists(self.path) and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise InputError(f"{self.path} exists; remove it or give a folder that does not exist")

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.path.name}.partial-"
        _remove_abandoned(self.path.parent, prefix)
        self._partial = Path(tempfile.mkdtemp(prefix=prefix, dir=self.path.parent))
        self._lock = os.open(self._partial, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._data = os.open(self._partial / DATA_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._header = data_header(self.description)
        os.posix_fallocate(self._data, 0, len(self._header) + self.description.total_bytes)
        _write_all(self._data, np.frombuffer(self._header, np.uint8), 0)

    def _commit(self) -> None:
        assert self._partial is not None
        missing = self._checksums.count(None)
        if missing:
            raise InputError(
                f"{missing} of {len(self._checksums)} experts were not written; write every expert"
            )
        checksums = tuple(value for value in self._checksums if value is not None)
        os.fsync(self._data)
        os.posix_fadvise(self._data, 0, 0, os.POSIX_FADV_DONTNEED)
        index = StoreIndex(self.description, len(self._header), checksums)
        write_json_atomically(self._partial / INDEX_NAME, index_value(index))
        os.chmod(self._partial, _FOLDER_MODE)
        os.fsync(self._lock)
        os.rename(self._partial, self.path)
        self._partial = None
        parent = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)

    def _discard(self) -> None:
        """Remove what was not moved into place and let go of the files. Changes state."""
        if self._partial is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial = None
        for descriptor in (self._data, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._data = self._lock = -1

    def _error(self, error: OSError) -> InputError:
        try:
            free = f" ({shutil.disk_usage(self.path.parent).free / GB:.2f} GB are free)"
        except OSError:
            free = ""
        return InputError(
            f"cannot write the store {self.path} of {self.description.total_bytes / GB:.2f} GB: "
            f"{error.strerror or error}{free}; choose a folder that can be written and has room"
        )


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove what writers of the same target left when they were killed: folders that nobody holds the lock of."""
    for folder in parent.glob(f"{prefix}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its writer is alive
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: Bytes, offset: int) -> None:
    done = 0
    while done < data.nbytes:
        done += os.pwrite(descriptor, data[done:].data, offset + done)

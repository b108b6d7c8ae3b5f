"""Writing and reading stores: layout on disk, damage, interruption, a full disk."""

from __future__ import annotations

import errno
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hideaway.hw.store import ExpertStore, StoreWriter
from hideaway.hw.store import writer as writer_module
from hideaway.sim.errors import InputError
from tests.hw.small_stores import blob, description, make_store

PAGE = 4096


def test_experts_come_back_as_written(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    for layer in range(2):
        for expert in range(4):
            np.testing.assert_array_equal(store.read(layer, expert, verify=True), blob(layer, expert))
    assert store.verify() == ()


def test_every_expert_starts_on_a_page_and_is_padded_to_whole_pages(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", expert_bytes=10_000)
    assert store.stride_bytes == 3 * PAGE
    offsets = [store.offset_bytes(layer, expert) for layer in range(2) for expert in range(4)]
    assert all(offset % PAGE == 0 for offset in offsets)
    assert np.diff(offsets).tolist() == [store.stride_bytes] * 7
    data = store.data_path.read_bytes()
    assert data[offsets[5] : offsets[5] + 10_000] == blob(1, 1).tobytes()
    assert data[offsets[5] + 10_000 : offsets[6]] == bytes(3 * PAGE - 10_000)


def test_the_data_file_can_be_read_by_the_safetensors_library(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    store = make_store(tmp_path / "store")
    tensors = safetensors.load_file(store.data_path)
    np.testing.assert_array_equal(tensors["layers.1.experts.2.first"], blob(1, 2)[:5000])
    np.testing.assert_array_equal(tensors["layers.1.experts.2.second"], blob(1, 2)[5000:])
    assert not any(tensors["layers.0.experts.0.padding_at_10000"])


def test_the_same_experts_make_the_same_files(tmp_path: Path) -> None:
    one, two = make_store(tmp_path / "one"), make_store(tmp_path / "two")
    for name in ("index.json", "experts.safetensors"):
        assert (one.path / name).read_bytes() == (two.path / name).read_bytes()


def test_experts_may_be_written_in_any_order(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", description()) as writer:
        for layer in (1, 0):
            for expert in (2, 0, 3, 1):
                writer.write(layer, expert, blob(layer, expert))
    assert (tmp_path / "store" / "index.json").read_bytes() == (
        make_store(tmp_path / "b").path / "index.json"
    ).read_bytes()


def test_a_flipped_bit_is_found_where_it_is_and_only_where_asked(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with open(store.data_path, "r+b") as stream:
        stream.seek(store.offset_bytes(1, 2) + 77)
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 4]))
    store = ExpertStore(store.path)
    assert store.verify() == ((1, 2),)
    store.read(1, 2)
    store.read(1, 1, verify=True)
    with pytest.raises(InputError, match=r"layer 1 expert 2 in .* is damaged \(corrupt data, checksum"):
        store.read(1, 2, verify=True)


def test_an_expert_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with pytest.raises(InputError, match="layer is 2 but must be a whole number from 0 to 1"):
        store.read(2, 0)
    with pytest.raises(InputError, match="expert is -1"):
        store.offset_bytes(0, -1)


# --- nothing half-written is left behind


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_exception_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), StoreWriter(tmp_path / "store", description()) as writer:  # noqa: PT012
        writer.write(0, 0, blob(0, 0))
        raise KeyboardInterrupt
    assert leftovers(tmp_path) == []


def write(
    path: Path, experts: list[tuple[int, int]], blobs: dict[tuple[int, int], np.ndarray] | None = None
) -> None:
    with StoreWriter(path, description()) as writer:
        for layer, expert in experts:
            writer.write(layer, expert, (blobs or {}).get((layer, expert), blob(layer, expert)))


def test_a_missing_expert_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="7 of 8 experts were not written"):
        write(tmp_path / "store", [(0, 0)])
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite", "fsync", "rename"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer_module.os, call, full)
    with pytest.raises(
        InputError, match=r"cannot write the store .*No space left on device \(.* GB are free\)"
    ):
        make_store(tmp_path / "store")
    monkeypatch.undo()
    assert leftovers(tmp_path) == []


def test_a_store_larger_than_the_disk_is_refused_before_the_work(tmp_path: Path) -> None:
    huge = description(num_layers=4000, num_experts=1000, expert_bytes=2**33)
    with pytest.raises(InputError, match=r"cannot write the store|a safetensors file allows"):
        StoreWriter(tmp_path / "store", huge)
    huge = description(num_layers=1, num_experts=2, expert_bytes=2**39)
    with pytest.raises(InputError, match=r"No space left on device|File too large"):
        StoreWriter(tmp_path / "store", huge)
    assert leftovers(tmp_path) == []


def test_a_killed_writer_leaves_no_store_and_the_next_writer_clears_up(tmp_path: Path) -> None:
    script = (
        "import sys, time; from tests.hw.small_stores import *; from pathlib import Path\n"
        f"writer = StoreWriter(Path({str(tmp_path / 'store')!r}), description())\n"
        "writer.write(0, 0, blob(0, 0)); print('ready', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    assert not (tmp_path / "store").exists()
    make_store(tmp_path / "other")  # another target: the living writer's folder stays
    (partial,) = [name for name in leftovers(tmp_path) if name.startswith(".store.partial-")]
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert (tmp_path / partial).exists()
    make_store(tmp_path / "store")
    assert leftovers(tmp_path) == ["other", "store"]


def test_a_folder_of_a_living_writer_is_not_removed(tmp_path: Path) -> None:
    first = StoreWriter(tmp_path / "store", description())
    make_store(tmp_path / "store")
    for layer in range(2):
        for expert in range(4):
            first.write(layer, expert, blob(layer, expert))
    with pytest.raises(InputError, match="cannot write the store"):
        first.__exit__(None, None, None)
    assert ExpertStore(tmp_path / "store").verify() == ()
    assert leftovers(tmp_path) == ["store"]


def test_what_exists_is_not_overwritten(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    with pytest.raises(InputError, match="exists; remove it or give a folder that does not exist"):
        StoreWriter(tmp_path / "store", description())
    (tmp_path / "empty").mkdir()
    make_store(tmp_path / "empty")


def test_a_wrong_blob_or_a_second_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="layer 0 expert 1 has 9 bytes"):
        write(tmp_path / "store", [(0, 1)], {(0, 1): np.zeros(9, np.uint8)})
    with pytest.raises(InputError, match="layer 0 expert 0 was written twice"):
        write(tmp_path / "store", [(0, 0), (0, 0)])


# --- malformed stores


def test_a_folder_without_an_index_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"is not an expert store \(no index.json\); make one with `hideaway pack`"
    ):
        ExpertStore(tmp_path)


def test_a_data_file_of_the_wrong_size_or_start_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    data = store.data_path.read_bytes()
    store.data_path.write_bytes(data[:-1])
    with pytest.raises(InputError, match=r"has \d+ bytes but the index says \d+; pack the store again"):
        ExpertStore(store.path)
    store.data_path.write_bytes(struct.pack("<Q", 5) + data[8:])
    with pytest.raises(InputError, match="does not start where the index says"):
        ExpertStore(store.path)
    store.data_path.unlink()
    with pytest.raises(InputError, match=r"cannot read .* the store lacks its data"):
        ExpertStore(store.path)


def edits() -> list[tuple[str, object, str]]:
    return [
        ("format", "other", "does not say that it is a hideaway-experts file"),
        ("version", 2, "has version 2"),
        ("num_layers", 3, "layer_indices has 2 entries for 3 layers"),
        ("num_layers", True, "num_layers is True"),
        ("num_experts", 0, "num_experts is 0"),
        ("num_experts", 10**30, "num_experts is 10"),
        ("top_k", 9, "top_k is 9"),
        ("expert_format", "fp3", "expert_format is 'fp3' but must be one of mxfp4, nvfp4"),
        ("layer_indices", [1, 1], "one rising index a layer"),
        ("layer_indices", "01", "layer_indices is '01' but must be a list"),
        ("tensors", [], "tensors is empty"),
        ("tensors", [{"name": "x"}], "a tensor lacks the key 'offset'"),
        ("tensors", 5, "tensors is 5 but must be a list"),
        ("data_offset_bytes", 5000, "data_offset_bytes is 5000 but must be a multiple of 4096"),
        ("data_offset_bytes", float("nan"), "data_offset_bytes is nan"),
        ("expert_bytes", 9999, "expert_bytes is 9999"),
        ("expert_stride_bytes", 4096, "expert_stride_bytes is 4096"),
        ("checksum", "md5", "checksum is 'md5' but must be one of crc32"),
        ("checksums", ["0" * 8], "there are 1 checksums for 8 experts"),
        ("checksums", ["0000000G"], "checksums has '0000000G' but needs 8 hexadecimal digits"),
        ("checksums", None, "checksums is None but must be a list"),
        (
            "data_file",
            "../../etc/passwd",
            "data_file is '../../etc/passwd' but must be one of experts.safetensors",
        ),
        ("unknown", 1, "unknown key 'unknown'"),
    ]


@pytest.mark.parametrize(("key", "value", "sentence"), edits())
def test_a_malformed_index_is_one_sentence_that_names_the_key(
    tmp_path: Path, key: str, value: object, sentence: str
) -> None:
    store = make_store(tmp_path / "store")
    index = json.loads((store.path / "index.json").read_text())
    index[key] = value
    (store.path / "index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=sentence):
        ExpertStore(store.path)


def test_every_key_of_the_index_is_needed(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    index = json.loads((store.path / "index.json").read_text())
    for key in index:
        (store.path / "index.json").write_text(
            json.dumps({name: index[name] for name in index if name != key})
        )
        with pytest.raises(InputError, match=key):
            ExpertStore(store.path)


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "\xff", "1" * 5000])
def test_an_index_that_is_not_an_object_is_refused(tmp_path: Path, text: str) -> None:
    store = make_store(tmp_path / "store")
    (store.path / "index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="index"):
        ExpertStore(store.path)


def test_tensors_must_not_overlap_and_must_have_the_bytes_they_say(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    index = json.loads((store.path / "index.json").read_text())
    for change, sentence in [
        ({"offset": 4999}, "tensor second starts at byte 4999, before the one ahead of it ends at 5000"),
        ({"bytes": 4}, "tensor second says 4 bytes but uint8 of shape"),
        ({"dtype": "object"}, "second.dtype is 'object'"),
        ({"name": "first"}, "the same name"),
        ({"shape": [-5000]}, "second.shape is -5000"),
    ]:
        changed = {**index, "tensors": [index["tensors"][0], {**index["tensors"][1], **change}]}
        (store.path / "index.json").write_text(json.dumps(changed))
        with pytest.raises(InputError, match=sentence):
            ExpertStore(store.path)


def test_importing_the_store_and_the_devices_imports_no_torch() -> None:
    probe = (
        "import sys, hideaway.hw.store, hideaway.hw.devices, hideaway.hw.devices.disk, hideaway.hw.devices.cuda, "
        "hideaway.hw.devices.paced_memory, hideaway.hw.store.pack; print('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"

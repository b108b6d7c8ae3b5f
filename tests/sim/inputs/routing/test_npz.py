"""Routing files: round trip, decode only, and files that are malformed, hostile or mutilated."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.routing import RoutingTrace
from hideaway.sim.inputs.routing import npz as npz_module
from hideaway.sim.inputs.routing.npz import read_routing_file, write_routing_file

IDS = np.array([[[0, 1], [2, 3]], [[1, 0], [3, -1]], [[2, 0], [0, 1]], [[3, 2], [1, 2]]], dtype=np.int8)


def archive(**arrays):
    values = {"expert_ids": IDS, "num_experts": np.int64(4), "top_k": np.int64(2)} | arrays
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: value for name, value in values.items() if value is not None})
    return buffer.getvalue()


def read(tmp_path, data):
    path = tmp_path / "trace.npz"
    path.write_bytes(data)
    return read_routing_file(path)


@pytest.mark.parametrize("num_experts", [4, 200])
def test_a_trace_written_is_read_back(tmp_path, num_experts):
    trace = RoutingTrace("t", IDS, num_experts, 2, np.array([1, 3]), "made up")
    path = tmp_path / "new" / "trace.npz"
    write_routing_file(path, trace)
    back = read_routing_file(path)
    assert np.array_equal(back.expert_ids, trace.expert_ids)
    assert back.seq_lengths.tolist() == [1, 3]
    assert (back.num_experts, back.top_k) == (num_experts, 2)
    assert str(path) in back.origin


def test_without_lengths_the_file_is_one_sequence(tmp_path):
    assert read(tmp_path, archive()).seq_lengths.tolist() == [4]


def test_only_decode_tokens_are_kept_where_phases_are_told(tmp_path):
    trace = read(tmp_path, archive(seq_lengths=np.array([1, 3]), phase=np.array([0, 0, 1, 1])))
    assert trace.expert_ids.tolist() == IDS[2:].tolist()
    assert trace.seq_lengths.tolist() == [2]
    assert "2 decode tokens" in trace.origin
    assert read(tmp_path, archive(phase=np.zeros(4, int))).num_tokens == 4


def test_arrays_in_column_order_and_of_other_types_are_read(tmp_path):
    trace = read(tmp_path, archive(expert_ids=np.asfortranarray(IDS.astype(">i4"))))
    assert np.array_equal(trace.expert_ids, IDS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a readable .npz"),
        (b"not a zip", "not a readable .npz"),
        (archive(expert_ids=None), "has no array expert_ids"),
        (archive(top_k=None), "has no array top_k"),
        (archive(num_experts=np.array([4, 4])), "one whole number"),
        (archive(num_experts=np.float64(4)), "type float64"),
        (archive(expert_ids=IDS.astype(float)), "type float64"),
        (archive(expert_ids=np.array([["a"]], dtype=object)), "type object"),
        (archive(expert_ids=np.int64(3)), r"shape \(\)"),
        (archive(expert_ids=IDS[0]), r"shape \(2, 2\)"),
        (archive(num_experts=np.int64(3)), "expert ids from -1 to 3"),
        (archive(expert_ids=np.zeros_like(IDS)), "names an expert twice"),
        (archive(seq_lengths=np.array([3, 3])), "sum to 6"),
        (archive(seq_lengths=np.array([[4]])), "list of whole numbers"),
        (archive(phase=np.array([0, 1])), "give one a token"),
        (archive(seq_lengths=np.array([5]), phase=np.array([0, 0, 1, 1])), "sum to 5"),
        (
            archive(seq_lengths=np.array([2**62, 2**62, 2**62, 2**62, 4]), phase=np.array([0, 0, 1, 1])),
            "below 1|sum",
        ),
    ],
)
def test_malformed_files_are_refused(tmp_path, data, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)


def test_an_array_that_would_unpack_to_too_much_is_refused_before_unpacking(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_module, "MAX_ARRAY_BYTES", 1000)
    with pytest.raises(InputError, match="would need 2000 bytes; at most 1000"):
        read(tmp_path, archive(expert_ids=np.zeros((1000, 1, 2), dtype=np.int8)))


def test_a_header_that_claims_more_than_is_stored_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|i1", "fortran_order": False, "shape": (5000, 2, 2)}
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("expert_ids.npy", header.getvalue() + b"\0" * 8)
    with pytest.raises(InputError, match="is cut short"):
        read(tmp_path, buffer.getvalue())


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read routing trace .*No such file"):
        read_routing_file(tmp_path / "absent.npz")
    with pytest.raises(InputError, match="cannot read routing trace"):
        read_routing_file(tmp_path)


def outcome(load):
    """Return what loading gives, or the sentence it is refused with."""
    try:
        return load()
    except InputError as error:
        return str(error)


@given(
    cuts=st.lists(
        st.tuples(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3
    ),
    stored=st.booleans(),
)
def test_mutilated_files_load_or_are_refused(tmp_path_factory, cuts, stored):
    data = archive(seq_lengths=np.array([1, 3]), phase=np.array([0, 1, 1, 1]))
    if stored:  # uncompressed and unchecked by compression, so that headers and values change
        buffer = io.BytesIO()
        np.savez(buffer, expert_ids=IDS, num_experts=np.int64(4), top_k=np.int64(2))
        data = buffer.getvalue()
    for place, length, inserted in cuts:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + length :]
    path = tmp_path_factory.mktemp("fuzz") / "trace.npz"
    path.write_bytes(data)
    result = outcome(lambda: read_routing_file(path))
    assert "\n" not in result if isinstance(result, str) else result.num_tokens >= 1

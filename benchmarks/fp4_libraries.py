"""Maintained libraries that compute an MXFP4 expert on the CPU, for comparison; each only if it can be imported.

`pip install ggml-python openvino` makes both available. ggml reads the weights in place in its own block order, rows
rounded to 8 bits; OpenVINO bakes them into a compiled model, so it suits experts that stay in memory only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from hideaway.hw.fp4.e2m1 import pack_codes, unpack_codes
from hideaway.hw.fp4.expert_weights import part_views
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.fp4.swiglu import GPT_OSS_ALPHA, GPT_OSS_LIMIT

Way = Callable[[int, torch.Tensor], torch.Tensor]
OPENVINO_EXPERTS = 3


def ggml_way(
    layout: ExpertLayout, experts: Sequence[torch.Tensor], num_rows: int, threads: int
) -> tuple[str, Way] | None:
    """Return ggml's way for a number of rows, or None where it is absent or has no such format."""
    try:
        import ggml
    except ImportError:
        return None
    if layout.expert_format != "mxfp4":
        return None
    stored = [_ggml_expert(layout, expert) for expert in experts]
    graph = _GgmlGraph(ggml, layout, num_rows, threads)
    return "ggml", lambda number, rows: graph.forward(*stored[number % len(stored)], rows)


def _ggml_expert(layout: ExpertLayout, expert: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes in ggml's blocks (scale, then weights j and j + 16 in a byte) and the biases as float32."""
    parts = part_views(layout, expert.numpy())
    rows = _gate_then_up(layout)
    matrices = []
    for name, order in (("gate_up", rows), ("down", slice(None))):
        codes = unpack_codes(parts[f"{name}_blocks"][order])
        pairs = pack_codes(np.stack([codes[..., :16], codes[..., 16:]], axis=-1).reshape(codes.shape))
        scales = parts[f"{name}_scales"][order]
        matrices.append(np.concatenate([scales[..., None], pairs], axis=-1).reshape(-1))
    return np.concatenate(matrices), _biases(layout, parts)


class _GgmlGraph:
    def __init__(self, ggml: Any, layout: ExpertLayout, num_rows: int, threads: int) -> None:
        self._ggml = ggml
        hidden, inner = layout.hidden_size, layout.intermediate_size
        self._matrix_bytes = inner * hidden // 32 * 17
        context = ggml.ggml_init(ggml.ggml_init_params(mem_size=256 << 20, mem_buffer=None, no_alloc=False))
        real = ggml.GGML_TYPE_F32
        self._rows = ggml.ggml_new_tensor_2d(context, real, hidden, num_rows)
        self._biases = [ggml.ggml_new_tensor_1d(context, real, size) for size in (inner, inner, hidden)]
        ggml.ggml_set_no_alloc(context, True)
        sizes = ((hidden, inner), (hidden, inner), (inner, hidden))
        self._matrices = [ggml.ggml_new_tensor_2d(context, ggml.GGML_TYPE_MXFP4, *size) for size in sizes]
        ggml.ggml_set_no_alloc(context, False)

        def product(index: int, x: Any) -> Any:
            y = ggml.ggml_mul_mat(context, self._matrices[index], x)
            return ggml.ggml_add(context, y, self._biases[index]) if layout.has_bias else y

        gate, up = product(0, self._rows), product(1, self._rows)
        if layout.swiglu == "gpt-oss":
            act = ggml.ggml_swiglu_oai(context, gate, up, GPT_OSS_ALPHA, GPT_OSS_LIMIT)
        else:
            act = ggml.ggml_swiglu_split(context, gate, up)
        self._out = product(2, act)
        self._shape = (num_rows, hidden)
        self._graph = ggml.ggml_new_graph(context)
        ggml.ggml_build_forward_expand(self._graph, self._out)
        self._plan = ggml.ggml_graph_plan(self._graph, threads, None)
        self._work = np.empty(self._plan.work_size + 64, dtype=np.uint8)
        self._plan.work_data = self._work.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))

    def forward(self, matrices: np.ndarray, biases: np.ndarray, rows: torch.Tensor) -> torch.Tensor:
        base = matrices.ctypes.data
        for index, tensor in enumerate(self._matrices):
            tensor.contents.data = ctypes.c_void_p(base + index * self._matrix_bytes)
        offset = biases.ctypes.data
        for tensor in self._biases if biases.size else ():
            tensor.contents.data = ctypes.c_void_p(offset)
            offset += 4 * tensor.contents.ne[0]
        ctypes.memmove(self._rows.contents.data, rows.data_ptr(), rows.nbytes)
        self._ggml.ggml_graph_compute(self._graph, ctypes.byref(self._plan))
        out = torch.empty(self._shape)
        ctypes.memmove(out.data_ptr(), self._out.contents.data, out.nbytes)
        return out


def openvino_way(
    layout: ExpertLayout, experts: Sequence[torch.Tensor], num_rows: int, threads: int
) -> tuple[str, Way] | None:
    """Return OpenVINO's way for a number of rows, or None where it is absent or has no such format."""
    try:
        import openvino
    except ImportError:
        return None
    if layout.expert_format != "mxfp4":
        return None
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    core = openvino.Core()
    requests = [
        core.compile_model(_openvino_model(layout, expert, num_rows), "CPU", settings).create_infer_request()
        for expert in experts[:OPENVINO_EXPERTS]
    ]

    def forward(number: int, rows: torch.Tensor) -> torch.Tensor:
        request = requests[number % len(requests)]
        request.infer([rows.numpy()], share_inputs=True)
        return torch.from_numpy(request.get_output_tensor().data)

    return "OpenVINO f32", forward


def _openvino_model(layout: ExpertLayout, expert: torch.Tensor, num_rows: int) -> Any:
    from openvino import Model, Tensor, Type
    from openvino import opset13 as op

    parts = part_views(layout, expert.numpy())
    order = _gate_then_up(layout)
    hidden, inner = layout.hidden_size, layout.intermediate_size

    def matrix(name: str, rows: Any, out: int, columns: int) -> Any:
        codes = Tensor(Type.f4e2m1, [out, columns // 32, 32])
        codes.data.view(np.uint8).reshape(-1)[:] = parts[f"{name}_blocks"][rows].reshape(-1)
        scales = Tensor(Type.f8e8m0, [out, columns // 32, 1])
        scales.data.view(np.uint8).reshape(-1)[:] = parts[f"{name}_scales"][rows].reshape(-1)
        real = (op.convert(op.constant(part), Type.f32) for part in (codes, scales))
        return op.reshape(op.multiply(*real), np.array([out, columns]), False)

    biases = _biases(layout, parts)
    x = op.parameter([num_rows, hidden], Type.f32)
    both = op.matmul(x, matrix("gate_up", order, 2 * inner, hidden), False, True)
    if layout.has_bias:
        both = op.add(both, biases[: 2 * inner])
    gate, up = op.split(both, np.int64(1), 2).outputs()
    if layout.swiglu == "gpt-oss":
        gate, up = op.minimum(gate, np.float32(GPT_OSS_LIMIT)), op.clamp(up, -GPT_OSS_LIMIT, GPT_OSS_LIMIT)
        shut = op.multiply(gate, op.sigmoid(op.multiply(gate, np.float32(GPT_OSS_ALPHA))))
        act = op.multiply(shut, op.add(up, np.float32(1)))
    else:
        act = op.multiply(op.multiply(gate, op.sigmoid(gate)), up)
    y = op.matmul(act, matrix("down", slice(None), hidden, inner), False, True)
    return Model([op.add(y, biases[2 * inner :]) if layout.has_bias else y], [x])


def _gate_then_up(layout: ExpertLayout) -> Any:
    rows = np.arange(2 * layout.intermediate_size)
    return np.concatenate([rows[0::2], rows[1::2]]) if layout.interleaved else slice(None)


def _biases(layout: ExpertLayout, parts: Any) -> np.ndarray:
    if not layout.has_bias:
        return np.empty(0, dtype=np.float32)
    bits = np.concatenate([parts["gate_up_bias"][_gate_then_up(layout)], parts["down_bias"]])
    return (bits.astype(np.uint32) << 16).view(np.float32)

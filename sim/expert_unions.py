"""Sets of experts from what a router returns: unions over rows, coverage of a prediction, and its waste.

Any array-like is taken: lists, NumPy arrays, and arrays of other libraries, also on a device or under
autograd. Ids are plain ints in ascending order. `hideaway.sim.route_ahead` accumulates these over the steps
of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import shown, whole_number

BoolMatrix = npt.NDArray[np.bool_]


def union_experts_from_mask(mask: Any) -> list[int]:  # noqa: ANN401
    """Return the experts that any row of a routing mask (num_tokens, num_experts) selects; non-zero selects.

    Raises
    ------
    InputError
        The mask is not two-dimensional or holds something other than booleans and numbers.
    """
    return [int(expert) for expert in np.flatnonzero(boolean_matrix("router_mask", mask).any(axis=0))]


def union_experts_from_logits(logits: Any, top_k: int) -> list[int]:  # noqa: ANN401
    """Return the union of every row's `top_k` experts from router logits (num_tokens, num_experts).

    Logits are compared as float32; of equal ones the lower expert id is taken.

    Raises
    ------
    InputError
        The logits are not two-dimensional numbers or hold NaN, or top_k is not in [1, num_experts].
    """
    matrix = _matrix("router_logits", logits)
    if matrix.dtype.kind not in "biuf" or np.isnan(matrix).any():
        raise InputError("router_logits holds NaN or something that is not a number; give numbers")
    num_experts = matrix.shape[1]
    width = whole_number("top_k", top_k, minimum=1)
    if width > num_experts:
        raise InputError(
            f"top_k is {width} but there are {num_experts} experts; give a top_k in [1, {num_experts}]"
        )
    with np.errstate(over="ignore"):  # beyond float32 a logit is infinite, as it is in the router
        order = np.argsort(-matrix.astype(np.float32), axis=1, kind="stable")
    return [int(expert) for expert in np.unique(order[:, :width])]


def prefetch_coverage(predicted: Any, actual: Any) -> float:  # noqa: ANN401
    """Return |predicted ∩ actual| / |actual| of two collections of expert ids; 1.0 when actual is empty."""
    needed = expert_ids("actual", actual)
    return len(expert_ids("predicted", predicted) & needed) / len(needed) if needed else 1.0


def rejected_expert_ids(full_union: Any, kept_union: Any) -> list[int]:  # noqa: ANN401
    """Return, sorted, the experts of `full_union` not in `kept_union`: fetched, and used by no kept row."""
    return sorted(expert_ids("full_union", full_union) - expert_ids("kept_union", kept_union))


def expert_ids(name: str, ids: Any) -> set[int]:  # noqa: ANN401
    """Return expert ids of any shape as a set; InputError for one that is not a whole number >= 0."""
    if isinstance(ids, (str, bytes)) or not (isinstance(ids, Iterable) or hasattr(ids, "__array__")):
        raise InputError(f"{name} is {shown(ids)} but must be a list of expert ids; give whole numbers")
    flat = _to_numpy(name, ids).ravel().tolist() if hasattr(ids, "__array__") else list(ids)
    return {whole_number(f"an expert id in {name}", _without_zero_fraction(item)) for item in flat}


def boolean_matrix(name: str, mask: Any) -> BoolMatrix:  # noqa: ANN401
    """Return a copy of a two-dimensional mask as booleans; what is non-zero is True."""
    matrix = _matrix(name, mask)
    if matrix.dtype.kind not in "biuf" or (matrix.dtype.kind == "f" and np.isnan(matrix).any()):
        raise InputError(f"{name} holds NaN or something that is not a number; give booleans or 0 and 1")
    return matrix.astype(np.bool_, copy=True)


def _matrix(name: str, value: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    array = _to_numpy(name, value)
    if array.ndim != 2:
        raise InputError(
            f"{name} has shape {array.shape} but must be 2-D (num_tokens, num_experts); reshape it"
        )
    return array


def _to_numpy(name: str, value: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    if hasattr(value, "detach"):  # a tensor: off the graph and off the device first
        value = value.detach().cpu()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        if hasattr(value, "tolist") and hasattr(value, "shape"):  # a tensor of a type that NumPy lacks
            return np.array(value.tolist()).reshape(tuple(value.shape))
        raise InputError(f"{name} is not an array: {error}; give rows of equal length") from error


def _without_zero_fraction(item: object) -> object:
    return int(item) if isinstance(item, float) and item.is_integer() else item

"""Measured predictors: recall and precision of one row's guess by layer distance, in a file with its provenance.

`hideaway route-recall --preset FILE` writes such files, a scenario's `predictor` takes their paths. The published
curves are `PRESETS` in `hideaway.sim.inputs.prediction`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

from hideaway.sim.errors import InputError
from hideaway.sim.files import write_json_atomically
from hideaway.sim.inputs.acceptance.model import check_probability
from hideaway.sim.inputs.bounded import nonempty_text
from hideaway.sim.inputs.plain_numbers import read_json_value
from hideaway.sim.inputs.prediction import PRESETS
from hideaway.sim.inputs.schemas import check_schema
from hideaway.sim.number_checks import shown

PREDICTOR_FORMAT = "hideaway-predictor"
PREDICTOR_VERSION = 1
_MAX_DISTANCES = 4096
_LEAST_PRECISION = 1e-4


class PredictorCurves(Protocol):
    """What a preset is, published or measured."""

    @property
    def source(self) -> str:
        """Where the figures come from."""

    def recall_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return recall for distances 1 to num_layers."""

    def precision_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return precision for distances 1 to num_layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPredictor:
    """A measured curve; checked when built.

    Parameters
    ----------
    name : str
        What guessed.
    recall_curve, precision_curve : tuple of float
        Entry d - 1 is for d layers ahead; larger distances take the last entry.
    source : str
        What it was measured on.
    """

    name: str
    recall_curve: tuple[float, ...]
    precision_curve: tuple[float, ...]
    source: str

    def __post_init__(self) -> None:
        counts = len(self.recall_curve), len(self.precision_curve)
        if counts[0] != counts[1] or not 1 <= counts[0] <= _MAX_DISTANCES:
            raise InputError(
                f"a predictor has {counts[0]} recalls and {counts[1]} precisions; give one of each for 1 to "
                f"{_MAX_DISTANCES} distances"
            )
        for distance, (recall, precision) in enumerate(
            zip(self.recall_curve, self.precision_curve, strict=True), start=1
        ):
            check_probability(recall, f"the recall at distance {distance}")
            check_probability(precision, f"the precision at distance {distance}")
            if precision < _LEAST_PRECISION:
                raise InputError(
                    f"the precision at distance {distance} is {precision:g}; give at least {_LEAST_PRECISION:g}"
                )

    def recall_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return recall for distances 1 to num_layers."""
        return _stretched(self.recall_curve, num_layers)

    def precision_by_distance(self, num_layers: int) -> tuple[float, ...]:
        """Return precision for distances 1 to num_layers."""
        return _stretched(self.precision_curve, num_layers)


def write_predictor(path: str | os.PathLike[str], predictor: MeasuredPredictor) -> None:
    """Write a predictor so that `predictor_named` reads it.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    members = {
        "format": PREDICTOR_FORMAT,
        "version": PREDICTOR_VERSION,
        "name": predictor.name,
        "recall_by_distance": list(predictor.recall_curve),
        "precision_by_distance": list(predictor.precision_curve),
        "source": predictor.source,
    }
    write_json_atomically(path, members)


def check_predictor_name(name: str) -> None:
    """Refuse what is neither a published curve nor looks like the path of a file; opens nothing.

    Raises
    ------
    InputError
        Naming what there is.
    """
    if name not in PRESETS and not name.endswith(".json"):
        raise InputError(
            f"predictor is {shown(name)}; it must be one of {', '.join(PRESETS)}, or a .json file that "
            "`hideaway route-recall --preset` wrote"
        )


def predictor_named(name: str) -> PredictorCurves:
    """Return a published preset, or the measured one in a file.

    Raises
    ------
    InputError
        There is none of that name, or the file is malformed.
    """
    check_predictor_name(name)
    return PRESETS[name] if name in PRESETS else _read_predictor(name)


def _read_predictor(path: str) -> MeasuredPredictor:
    what = f"predictor file {path!r}"
    value: Any = read_json_value(path, "predictor file")
    check_schema(value, "predictor", what)
    try:
        return MeasuredPredictor(
            name=nonempty_text("name", value["name"]),
            recall_curve=tuple(map(float, value["recall_by_distance"])),
            precision_curve=tuple(map(float, value["precision_by_distance"])),
            source=nonempty_text("source", value["source"]),
        )
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def _stretched(curve: tuple[float, ...], num_layers: int) -> tuple[float, ...]:
    return tuple(curve[min(ahead, len(curve) - 1)] for ahead in range(num_layers))

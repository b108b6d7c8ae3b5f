"""The hardware profile of a calibration: measured values, and a base profile's where nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from hideaway.calibrate.estimates import Estimate
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.inputs.profiles import OperationNoise, Parameter, Profile

_FACTS = ("device", "driver", "clocks_mhz", "processor", "threads", "link", "model", "layers", "expert_format",
          "dense_dtype", "expert_kernel", "started", "merged_files", "version", "seed")  # fmt: skip


def measured_profile(
    file: MeasurementFile,
    base: Profile,
    estimates: Mapping[str, Estimate],
    kept: Mapping[str, str],
    noise: Mapping[str, OperationNoise],
    name: str,
) -> Profile:
    """Return the profile.

    Parameters
    ----------
    kept : mapping
        Parameters that were not measured, with the reason; they keep value, error and origin of the base.
    """
    parameters: dict[str, Parameter] = {}
    shape = shape_of(file)
    for parameter, estimate in estimates.items():
        parameters[parameter] = Parameter(
            estimate.value, estimate.unit, estimate.standard_error, "measured", _cut(estimate.source(shape))
        )
    for parameter, reason in kept.items():
        known = base.parameters[parameter]
        source = known.source
        mark = f"not measured here ({reason}), kept from profile {base.name}: "
        parameters[parameter] = replace(known, source=_cut(mark + source))
    calibration: dict[str, Any] = {
        "base_profile": base.name,
        "kept_from_base": dict(kept),
        "environment": {
            fact: file.environment[fact] for fact in _FACTS if file.environment.get(fact) is not None
        },
        "parameters": {parameter: _details(estimate) for parameter, estimate in estimates.items()},
    }
    return Profile(name, str(file.environment["device"]), parameters, noise, calibration)


def shape_of(file: MeasurementFile) -> str:
    """Return the shape and format that were measured, as far as the file says."""
    facts = [file.environment.get("model"), file.environment.get("expert_format")]
    return ", ".join(str(fact) for fact in facts if fact) or "shape not stated"


def _details(estimate: Estimate) -> dict[str, Any]:
    details = asdict(estimate)
    interval = None if estimate.low is None else [estimate.low, estimate.high]
    for key in ("name", "value", "standard_error", "low", "high"):
        del details[key]
    details["validity"] = {
        curve: {axis: list(values) for axis, values in axes.items()}
        for curve, axes in estimate.validity.items()
    }
    details["notes"] = list(estimate.notes)
    return {"interval_95": interval, **details}


def _cut(text: str) -> str:
    return text if len(text) <= 4000 else text[:3997] + "..."

"""A calibration as one JSON object: everything that the page shows, with plain numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hideaway.calibrate.calibration import Calibration
    from hideaway.calibrate.drift import Drift


def calibration_value(made: Calibration) -> dict[str, Any]:
    """Return the object; the profile stands in it as its file would."""
    return {
        "format": "hideaway-calibration",
        "version": 1,
        "profile": made.profile.to_dict(),
        "kept_from_base": dict(made.kept),
        "curves": _curves(made),
        "forms": [asdict(choice) for choice in made.choices],
        "checks": [
            {
                "curve": check.curve,
                "axes": dict(check.axes),
                "measured_seconds": check.measured_seconds,
                "foretold_seconds": check.foretold_seconds,
                "error": check.error,
            }
            for check in made.checks
        ],
        "drift": _drift(made.drift),
        "flags": list(made.flags),
    }


def _curves(made: Calibration) -> list[dict[str, Any]]:
    return [
        {
            "curve": datum.curve,
            "axes": dict(datum.axes),
            "samples": len(datum.samples),
            "observed": datum.observed,
            "fitted": float(fitted),
            "relative_residual": float(fitted) / datum.observed - 1.0,
        }
        for fit in made.fits
        for datum, fitted in zip(fit.family.data, fit.predicted, strict=True)
    ]


def _drift(drift: Drift | None) -> dict[str, Any] | None:
    if drift is None:
        return None
    return {
        "samples": drift.num_samples,
        "change": drift.change,
        "interval_95": [drift.low, drift.high],
        "drifted": drift.drifted,
        "slow_spells": [asdict(spell) for spell in drift.spells],
        "outliers": drift.outliers,
    }

"""Forms that compete for a curve: the cost model's own and what the cost model might have been instead.

A form turns a point's features into a work. Forms with a knot (`two pieces`) are tried at every value that the points
have between their least and greatest. Next: `model_choice.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hideaway.calibrate.work import INVERSE_RATE, SHARE, Roofline, Unknown, Work

Features = Mapping[str, float]
WorkOf = Callable[[Features, float], Work]
"""From features and the knot."""
_FIXED, _EACH, _PAIR = Unknown("fixed"), Unknown("each"), Unknown("pair")
_READ, _COMPUTE = Unknown("read", INVERSE_RATE), Unknown("compute", INVERSE_RATE)
_LOW, _HIGH = Unknown("low"), Unknown("high")
_SERIAL = Unknown("serial", SHARE, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Form:
    """One candidate.

    Parameters
    ----------
    knot : str or None
        Feature whose values are tried as a knot.
    serial : bool
        Whether reading and computing hide each other only in part, by the unknown "serial".
    """

    name: str
    unknowns: tuple[Unknown, ...]
    work: WorkOf
    knot: str | None = None
    serial: bool = False


def _pieces(feature: str, also: Callable[[Features], dict[str, float]], times: str | None = None) -> WorkOf:
    """Return fixed costs and two slopes in a feature, below and above the knot, for each of `times`."""

    def work(features: Features, knot: float) -> Work:
        value, each = features[feature], 1.0 if times is None else features[times]
        return Work(also(features) | {"low": each * min(value, knot), "high": each * max(0.0, value - knot)})

    return work


def _once(features: Features) -> dict[str, float]:
    return {"fixed": 1.0}


def _affine(feature: str) -> WorkOf:
    return lambda features, knot: Work({"fixed": 1.0, "each": features[feature]})


def _constant(features: Features, knot: float) -> Work:
    return Work({"fixed": 1.0})


def _roof(features: Features, knot: float) -> Work:
    roof = Roofline(1.0, features["bytes"], "read", features["flops"], "compute")
    return Work({"fixed": features.get("parts", 1.0)}, (roof,))


def _summed(features: Features, knot: float) -> Work:
    return Work(
        {"fixed": features.get("parts", 1.0), "read": features["bytes"], "compute": features["flops"]}
    )


def _context_roof(features: Features, knot: float) -> Work:
    size, flops = features["context_bytes"], features["context_flops"]
    roof = Roofline(1.0, features["bytes"] - size, "read", features["flops"] - flops, "compute")
    return Work({"fixed": 1.0, "cache": size, "attention": flops}, (roof,))


def _experts(features: Features, knot: float) -> Work:
    return Work({"fixed": 1.0, "each": features["experts"], "pair": features["experts"] * features["rows"]})


def _expert_roof(features: Features, knot: float) -> Work:
    count = features["experts"]
    roof = Roofline(count, features["bytes"] / count, "read", features["flops"] / count, "compute")
    return Work({"fixed": 1.0, "each": count}, (roof,))


_ROOF_UNKNOWNS = (_READ, _COMPUTE, _FIXED)
_CONTEXT_UNKNOWNS = (Unknown("cache", INVERSE_RATE), Unknown("attention", INVERSE_RATE))
_EXPERT_PIECES = _pieces("rows", lambda features: {"fixed": 1.0, "each": features["experts"]}, "experts")
_ROOFLINES = (
    Form("roofline", _ROOF_UNKNOWNS, _roof),
    Form("affine", _ROOF_UNKNOWNS, _summed),
    Form("partly hidden roofline", (*_ROOF_UNKNOWNS, _SERIAL), _roof, serial=True),
    Form("two pieces", (_LOW, _HIGH, _FIXED), _pieces("rows", _once), "rows"),
)
FORMS: Mapping[str, Sequence[Form]] = {
    "level": (Form("constant", (_FIXED,), _constant),),
    "sized": (
        Form("affine", (_EACH, _FIXED), _affine("bytes")),
        Form("constant", (_FIXED,), _constant),
        Form("two pieces", (_LOW, _HIGH, _FIXED), _pieces("bytes", _once), "bytes"),
    ),
    "counted": (
        Form("proportional", (_EACH,), lambda features, knot: Work({"each": features["transfers"]})),
        Form("affine", (_EACH, _FIXED), _affine("transfers")),
    ),
    "batch": (
        Form("affine", (_EACH, _FIXED), _affine("transfers")),
        Form("constant", (_FIXED,), _constant),
    ),
    "rows": (
        Form("affine", (_EACH, _FIXED), _affine("rows")),
        Form("constant", (_FIXED,), _constant),
    ),
    "roofline": _ROOFLINES,
    "attention": (
        *_ROOFLINES,
        Form("context apart", (*_ROOF_UNKNOWNS, *_CONTEXT_UNKNOWNS), _context_roof),
        Form(
            "context apart, partly hidden",
            (*_ROOF_UNKNOWNS, *_CONTEXT_UNKNOWNS, _SERIAL),
            _context_roof,
            serial=True,
        ),
    ),
    "experts": (
        Form("affine", (_EACH, _PAIR, _FIXED), _experts),
        Form("roofline", (_READ, _COMPUTE, _FIXED, _EACH), _expert_roof),
        Form("two pieces", (_LOW, _HIGH, _EACH, _FIXED), _EXPERT_PIECES, "rows"),
    ),
}
"""By kind of curve; the first of each is the cost model's."""

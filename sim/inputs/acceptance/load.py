"""Acceptance by name: `constant:A`, `rate:ALPHA`, `vector:…`, `mixture:…` or `replay:PATH`.

Not here: the models themselves. Files are read by `acceptance_file.py`.
"""

from __future__ import annotations

from hideaway.sim.errors import InputError
from hideaway.sim.inputs.acceptance.acceptance_file import (
    published_vectors,
    read_recording,
    read_vector,
)
from hideaway.sim.inputs.acceptance.constant import ConstantAcceptance
from hideaway.sim.inputs.acceptance.mixture import (
    DEFAULT_EASY_RATE,
    DEFAULT_EASY_WEIGHT,
    DEFAULT_HARD_RATE,
    DEFAULT_PERSISTENCE,
    MixtureAcceptance,
)
from hideaway.sim.inputs.acceptance.model import AcceptanceModel
from hideaway.sim.inputs.acceptance.positions import PositionAcceptance
from hideaway.sim.inputs.acceptance.replay import ReplayAcceptance
from hideaway.sim.inputs.plain_numbers import number_from_text

FORMS = "constant:A, rate:ALPHA, vector:C1,C2,… (or a path or name), mixture:EASY,HARD,WEIGHT,PERSISTENCE, replay:PATH"


def load_acceptance(spec: str) -> AcceptanceModel:
    """Return the acceptance model that `spec` names.

    Parameters
    ----------
    spec
        `constant:A`: mean tokens committed a round, the target's own included.
        `rate:ALPHA`: every draft accepted with that probability while all before it were.
        `vector:C1,C2,…`: conditional rates by position; also `vector:PATH` (CSV or JSON) and the name of a published
        one (`published_vector_names`).
        `mixture:EASY,HARD,WEIGHT,PERSISTENCE` or `mixture:default`: see `MixtureAcceptance`.
        `replay:PATH`: recorded lengths, a CSV with a column acceptance_length or a JSON list.

    Raises
    ------
    InputError
        The form is unknown, a number is out of range or a file is not what it should be.
    """
    kind, colon, rest = spec.partition(":")
    rest = rest.strip()
    if colon and rest:
        if kind == "constant":
            return ConstantAcceptance(number_from_text(rest, "the acceptance length"))
        if kind == "rate":
            return _rate(rest)
        if kind == "vector":
            return _vector(rest)
        if kind == "mixture":
            return _mixture(rest)
        if kind == "replay":
            return ReplayAcceptance(read_recording(rest), f"the acceptance lengths recorded in {rest}")
    raise InputError(f"acceptance {spec!r} is not known; give {FORMS}")


def published_vector_names() -> tuple[str, ...]:
    """Return the names that `vector:` knows."""
    return tuple(published_vectors())


def _rate(text: str) -> PositionAcceptance:
    rate = number_from_text(text, "the acceptance rate")
    return PositionAcceptance(
        (rate,), f"every draft is accepted with probability {rate:g} (stated, not measured)"
    )


def _vector(text: str) -> PositionAcceptance:
    published = published_vectors()
    if text in published:
        vector = published[text]
        held = f"; positions after {len(vector.conditional_rates)} take the last rate"
        return PositionAcceptance(vector.conditional_rates, vector.origin + held)
    if "," in text or text.replace(".", "", 1).isdecimal():
        rates = tuple(
            number_from_text(part, f"the acceptance rate of position {position}")
            for position, part in enumerate(text.split(","), start=1)
        )
        return PositionAcceptance(
            rates, f"{len(rates)} stated conditional acceptance rates; later positions take the last"
        )
    rates = read_vector(text)
    return PositionAcceptance(
        rates, f"{len(rates)} conditional acceptance rates from {text}; later positions take the last"
    )


def _mixture(text: str) -> MixtureAcceptance:
    if text == "default":
        return MixtureAcceptance(
            DEFAULT_EASY_RATE,
            DEFAULT_HARD_RATE,
            DEFAULT_EASY_WEIGHT,
            DEFAULT_PERSISTENCE,
            f"{DEFAULT_EASY_WEIGHT:.0%} easy rounds at {DEFAULT_EASY_RATE:g} and the rest at {DEFAULT_HARD_RATE:g}"
            " (fits the 16 positions of GLM-5.2 with DSpark, vllm-project/vllm pull request 52992); persistence"
            f" {DEFAULT_PERSISTENCE:g} is assumed",
        )
    parts = text.split(",")
    if len(parts) != 4:
        raise InputError(
            f"mixture {text!r} has {len(parts)} numbers; give EASY,HARD,WEIGHT,PERSISTENCE from 0 to 1, or default"
        )
    names = ("easy rate", "hard rate", "easy weight", "persistence")
    easy, hard, weight, persistence = (
        number_from_text(part, f"the {name}") for part, name in zip(parts, names, strict=True)
    )
    return MixtureAcceptance(
        easy,
        hard,
        weight,
        persistence,
        f"{weight:.0%} easy rounds at {easy:g} and the rest at {hard:g}, persistence {persistence:g} (stated)",
    )

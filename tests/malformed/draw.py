"""Any number of distinct malformed inputs, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tests.malformed.case import Case
from tests.malformed.spoilt_files import spoilt_file
from tests.malformed.spoilt_flags import spoilt_flags
from tests.malformed.spoilt_json import documents, spoilt_document
from tests.malformed.spoilt_routing import spoilt_routing
from tests.malformed.spoilt_scenarios import spoilt_scenario
from tests.malformed.spoilt_tables import spoilt_table, tables

SEED = 1408
DOCUMENTS = (*["profile"] * 3, *["model"] * 4, *["config"] * 2, *["rows"] * 3, "bm2", "bm3", "bm4", "bm5",
             *["mooncake"] * 2,
             "sharegpt", "recording", "vector", "conditional", "cumulative", "router fit")  # fmt: skip


def _document(rng: np.random.Generator) -> Case:
    return spoilt_document(documents(rng)[DOCUMENTS[rng.integers(len(DOCUMENTS))]], rng)


def _table(rng: np.random.Generator) -> Case:
    found = list(tables().values())
    return spoilt_table(found[rng.integers(len(found))], rng)


FAMILIES: tuple[Callable[[np.random.Generator], Case], ...] = (
    _document, spoilt_flags, _document, spoilt_scenario, _document, spoilt_flags, spoilt_file, _table,
    _document, spoilt_routing,
    spoilt_flags, spoilt_file,
)  # fmt: skip
"""Dealt out in turn, so that any run of a few dozen cases holds some of each."""


@lru_cache(maxsize=4)
def malformed_cases(number: int, seed: int = SEED) -> tuple[Case, ...]:
    """Return `number` cases, no two alike."""
    cases: dict[tuple[object, ...], Case] = {}
    attempt = 0
    while len(cases) < number:
        rng = np.random.default_rng([seed, attempt])
        case = FAMILIES[attempt % len(FAMILIES)](rng)
        cases.setdefault((case.argv, case.files), case)
        attempt += 1
    return tuple(cases.values())

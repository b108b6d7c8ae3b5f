"""Some of the malformed inputs of the campaign, faults that were found with them, and the inputs before they are spoilt."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path

import pytest

from hideaway.main import main
from hideaway.sim.errors import InputError
from hideaway.sim.timeline import Timeline
from tests.malformed import sound
from tests.malformed.case import (
    Case,
    Folder,
    SparseFile,
    complaint_as_process,
    complaint_in_process,
    everything_in,
    lay_out,
)
from tests.malformed.draw import malformed_cases
from tests.malformed.spoilt_files import consumers
from tests.malformed.spoilt_flags import HIDE_NOMINAL, HIDE_TERMS, MATRIX, SIMULATE, sound_command_lines
from tests.malformed.spoilt_json import WRONG, documents, with_value
from tests.malformed.spoilt_routing import COMMANDS as ROUTING_COMMANDS
from tests.malformed.spoilt_tables import tables

import numpy as np

OTHER_SEED = 6
TERMS = ("hide", "--resident-fraction", "0.5")


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_malformed_inputs_are_refused_with_one_sentence(first, tmp_path):
    complaints = []
    for index in range(first, first + 20):
        folder = tmp_path / str(index)
        folder.mkdir()
        complaints.append(complaint_in_process(malformed_cases(60, OTHER_SEED)[index], folder))
    assert [complaint for complaint in complaints if complaint] == []


def test_a_process_refuses_with_one_sentence_too(tmp_path):
    case = Case("flag", ("simulate", "--rate", "1e-300"), (), ("rate",))
    assert complaint_as_process(case, tmp_path) is None

"""2,000 malformed inputs: always exit code 2 with one sentence that names what is wrong, never a traceback.

What they are made of: valid profiles, models, Hugging Face configs, result rows, benchmark reports, arrival traces
(CSV of four formats, Mooncake, ShareGPT), acceptance recordings and vectors, routing archives, router fits, scenarios
and command lines, with one thing spoilt. Timelines and all others are also handed in where another format is due.

Why every one is certainly malformed: nothing is changed at random and hoped to be wrong. A place gets a value that its
type or its range excludes; a key that is required goes, one that a strict format does not know comes, or one stands
twice; a byte that no UTF-8 text has, a cut inside a JSON object, a broken checksum; a flag, a name or a combination
that does not exist. Each of `tests/malformed/spoilt_*.py` says so for its inputs, and the inputs before they are
spoilt are run as well (`tests/hideaway/test_malformed_inputs.py`). So there is no case in which exit code 0 would do.

All but 20 run through `main(argv)` in this process, where a warning counts as a failure too; the others are processes.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hideaway.subcommands import SUBCOMMANDS
from tests.malformed.case import Case, complaint_as_process, complaint_in_process
from tests.malformed.draw import malformed_cases

pytestmark = pytest.mark.campaign

NUM_CASES = 2000
BLOCK = 100
"""Of each block of cases the first that can be a process is one, the other 99 run in this process."""


def process_of(block: tuple[Case, ...]) -> Case:
    """Return the case to run as a process: no word of a process can hold a null character."""
    return next(case for case in block if case.runs_as_process)


def test_the_cases_are_distinct_and_spread_over_everything_that_is_read():
    cases = malformed_cases(NUM_CASES)
    assert len({(case.argv, case.files) for case in cases}) == NUM_CASES
    families = Counter(case.family for case in cases)
    assert {name: count for name, count in families.items() if count < 10} == {}
    assert set(families) == {
        "profile", "model", "config", "rows", "bm2", "bm3", "bm4", "bm5", "mooncake", "sharegpt", "recording", "vector",
        "conditional", "cumulative", "router fit", "hideaway trace", "lengths trace", "azure trace", "burstgpt trace",
        "recording table", "vector table", "range table", "copy table", "routing", "scenario", "flag", "file",
    }  # fmt: skip
    commands = Counter(case.argv[0] for case in cases)
    assert all(commands[name] >= 50 for name in SUBCOMMANDS)


@pytest.mark.parametrize("first", range(0, NUM_CASES, BLOCK))
def test_in_process_every_one_is_refused_with_one_sentence(first, tmp_path):
    block = malformed_cases(NUM_CASES)[first : first + BLOCK]
    others = [case for case in block if case is not process_of(block)]
    assert len(others) == BLOCK - 1
    complaints = []
    for number, case in enumerate(others):
        folder = tmp_path / str(number)
        folder.mkdir()
        complaints.append(complaint_in_process(case, folder))
    assert [complaint for complaint in complaints if complaint] == []


@pytest.mark.parametrize("first", range(0, NUM_CASES, BLOCK))
def test_as_a_process_every_one_is_refused_with_one_sentence(first, tmp_path):
    case = process_of(malformed_cases(NUM_CASES)[first : first + BLOCK])
    assert complaint_as_process(case, tmp_path) is None

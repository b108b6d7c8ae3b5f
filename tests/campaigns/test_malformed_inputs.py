"""2,000 malformed inputs: always exit code 2 with one sentence that names what is wrong, never a traceback.

What they are made of: valid profiles, models, Hugging Face configs, result rows, benchmark reports, arrival traces
(CSV of four formats, Mooncake, ShareGPT), acceptance recordings and vectors, routing archives, router fits, scenarios
and command lines, with one thing spoilt. Timelines and all others are also handed in where another format is due.

Why every one is certainly malformed: nothing is changed at random and hoped to be wrong. A place gets a value that its
type or its range excludes; a key that is required goes, one that a strict format does not know comes, or one stands
twice; a byte that no UTF-8 text has, a cut inside a JSON object, a broken checksum; a flag, a name or a combination
that does not exist. Each of `tests/malformed/spoilt_*.py` says so for its inputs, and the inputs before they are
spoilt are run as well, to exit code 0. So there is no case in which exit code 0 would do.

All but 20 run through `main(argv)` in this process, where a warning counts as a failure too; the others are processes.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest

from hideaway.main import main
from hideaway.sim.inputs.scenario.fields import Scenario
from tests.malformed import sound
from tests.malformed.case import Case, Content, complaint_as_process, complaint_in_process, lay_out
from tests.malformed.draw import malformed_cases
from tests.malformed.spoilt_files import consumers
from tests.malformed.spoilt_flags import sound_command_lines
from tests.malformed.spoilt_json import documents
from tests.malformed.spoilt_routing import COMMANDS as ROUTING_COMMANDS
from tests.malformed.spoilt_scenarios import FIELDS, FLAGS, TEXTS
from tests.malformed.spoilt_tables import tables

pytestmark = pytest.mark.campaign

NUM_CASES = 2000
COMMANDS = ("simulate", "matrix", "headroom", "hide", "gates", "models", "profile")
BLOCK = 100
"""Of each block of cases one is run as a process, the other 99 in this process."""
STRIDE = 7


def block_of(first: int) -> tuple[tuple[Case, ...], Case]:
    """Return the block of cases from `first` on, and the one of them to run as a process.

    Another place in each block, so that all families get their turn; no word of a process can hold a null character.
    """
    block = malformed_cases(NUM_CASES)[first : first + BLOCK]
    place = STRIDE * (first // BLOCK) % BLOCK
    return block, next(case for case in (*block[place:], *block) if case.runs_as_process)


def test_the_cases_are_distinct_and_spread_over_everything_that_is_read():
    cases = malformed_cases(NUM_CASES)
    assert len({(case.argv, case.files) for case in cases}) == NUM_CASES
    families = Counter(case.family for case in cases)
    assert {name: count for name, count in families.items() if count < 10} == {}
    assert set(families) == {
        "profile", "model", "config", "rows", "bm2", "bm3", "bm4", "bm5", "mooncake", "sharegpt", "recording",
        "vector", "conditional", "cumulative", "router fit", "hideaway trace", "lengths trace", "azure trace",
        "burstgpt trace",
        "recording table", "vector table", "range table", "copy table", "routing", "scenario", "flag", "file",
    }  # fmt: skip
    commands = Counter(case.argv[0] for case in cases)
    assert {name: commands[name] for name in COMMANDS if commands[name] < 50} == {}


def test_every_field_of_a_scenario_is_spoilt():
    assert {*FIELDS, *TEXTS, *FLAGS, "parameters"} == {spec.name for spec in fields(Scenario)}


@pytest.mark.parametrize("first", range(0, NUM_CASES, BLOCK))
def test_in_process_every_one_is_refused_with_one_sentence(first, tmp_path):
    block, process = block_of(first)
    others = [case for case in block if case is not process]
    assert len(others) == BLOCK - 1
    complaints = []
    for number, case in enumerate(others):
        folder = tmp_path / str(number)
        folder.mkdir()
        complaints.append(complaint_in_process(case, folder))
    assert [complaint for complaint in complaints if complaint] == []


@pytest.mark.parametrize("first", range(0, NUM_CASES, BLOCK))
def test_as_a_process_every_one_is_refused_with_one_sentence(first, tmp_path):
    _, case = block_of(first)
    assert complaint_as_process(case, tmp_path) is None


def sound_inputs() -> Iterator[Case]:
    """Yield each input as it is before it is spoilt, a matrix cut to one cell."""
    rng = np.random.default_rng(0)
    for document in documents(rng).values():
        for argv in document.commands:
            yield Case(document.name, argv, ((document.file, document.content(document.value)),))
    for table in tables().values():
        for argv in table.commands:
            yield Case(table.name, argv, ((table.file, table.text.encode()),))
    for consumer in consumers():
        if "no file" not in consumer.takes and consumer.argv[0] != "headroom":
            model: tuple[tuple[str, Content], ...] = ()
            argv = consumer.argv
            if consumer.name == "simulate --routing":
                model, argv = (
                    (("shapes.json", sound.text_of(sound.TINY_MODEL)),),
                    (*argv, "--model", "shapes.json"),
                )
            yield Case(consumer.name, argv, ((consumer.file, consumer.data), *model))
    routing = (
        ("rows.npz", sound.archive(sound.routing_arrays())),
        ("shapes.json", sound.text_of(sound.TINY_MODEL)),
    )
    for argv in ROUTING_COMMANDS:
        yield Case("routing", argv, routing)
    for argv in sound_command_lines():
        yield Case("flag", argv)


ONE_CELL = ("--block-size", "2", "--concurrency", "1", "--baselines", "B0")


@pytest.mark.parametrize("part", range(8))
def test_the_inputs_before_they_are_spoilt_are_taken(part, tmp_path):
    refused = []
    for number, case in enumerate(tuple(sound_inputs())[part::8]):
        folder = tmp_path / str(number)
        folder.mkdir()
        lay_out(case, folder)
        argv = [word for word in case.argv if word not in ("--out", "--plot", "new", "new.png")]
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            if main([*argv, *(ONE_CELL if argv[0] == "matrix" else ())]) != 0:
                refused.append((case.kind, argv))
    assert refused == []

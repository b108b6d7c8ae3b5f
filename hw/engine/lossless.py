"""The lossless check: greedy speculative output against plain decode, token for token.

Three runs of the same prompts. *Reference*: plain decode, every expert resident, one sequence at a time, in the
invariant way. *Checked*: the scenario as it is, offloaded, drafted and batched, in the invariant way: must be equal.
*Fast*: the scenario as it runs otherwise. Its kernels round differently, so it may part from the reference where two
tokens are all but level: the reference scores the fast output on its own prefix, and a choice that is not the
reference's is a numeric tie if the reference puts it less than the measured error below its best. That error is
measured on the prompts, which are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from hideaway.hw.acceptance.ties import TieCounts, judge, measure_gap_error
from hideaway.hw.engine.open_device import DeviceOptions, open_expert
from hideaway.hw.engine.run import Observers
from hideaway.hw.engine.run_model import ModelRun, ModelSetup, run_model
from hideaway.hw.fp4.layouts import ExpertLayout
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.target.resident import ResidentModel
from hideaway.sim.errors import InputError

_ERROR_ROWS = 512
"""Prompt rows on which the error between the two ways is measured, shared out over the prompts."""
_SCORED_ROWS = 64
"""Rows that the invariant way is given at once; its results do not depend on it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two outputs part first."""

    seq_id: int
    index: int
    expected: int | None
    found: int | None


@dataclass(frozen=True, slots=True)
class Lossless:
    """The verdict.

    Parameters
    ----------
    tokens : int
        Output tokens compared.
    equal : bool
        Whether every request's tokens are those of plain decode.
    first_difference : Difference or None
        Of the first request that differs.
    gap_error : float
        How much rounding moved the difference of two logits on the prompts, in logits.
    fast : TieCounts
        The fast path's choices, each against the reference after the same tokens.
    """

    tokens: int
    equal: bool
    first_difference: Difference | None
    gap_error: float = 0.0
    fast: TieCounts = field(default_factory=TieCounts)

    @property
    def passed(self) -> bool:
        """Whether nothing differs but by rounding."""
        return self.equal and self.fast.differences == 0

    def as_dict(self) -> dict[str, object]:
        """Return the verdict for a result file."""
        first = self.first_difference
        return {
            "passed": self.passed,
            "tokens": self.tokens,
            "equal": self.equal,
            "first_difference": None
            if first is None
            else {
                "request": first.seq_id,
                "index": first.index,
                "expected": first.expected,
                "found": first.found,
            },
            "fast_path": {
                "tokens": self.fast.rows,
                "equal": self.fast.equal,
                "numeric_ties": self.fast.ties,
                "widest_tie": self.fast.widest_tie,
                "true_differences": self.fast.differences,
                "widest_difference": self.fast.widest_difference,
                "gap_error": self.gap_error,
            },
        }


def check_lossless(
    setup: ModelSetup,
    store: ExpertStore,
    options: DeviceOptions,
    fast: ModelRun,
    observers: Observers | None = None,
) -> Lossless:
    """Return whether the scenario of `setup` loses nothing; `fast` is its run as it runs otherwise.

    Parameters
    ----------
    observers : Observers, optional
        Told of progress: each request three times, when it ends in either run made here and when it has been judged.

    Raises
    ------
    InputError
        The run samples, or a request failed.
    """
    if setup.rule.temperature != 0:
        raise InputError(
            "the lossless check compares greedy outputs, but a temperature was given; leave it out"
        )
    checked = run_model(setup, store, options, observers, invariant=True)
    plain = setup.with_scenario(baseline="B3-AR", concurrency=1, rate=None, open_loop=False)
    reference = run_model(plain, store, options, observers, invariant=True)
    for run in (fast, checked, reference):
        if run.real.failures:
            raise InputError(f"nothing can be compared, since a request failed: {run.real.failures[0]}")
    tokens = sum(map(len, reference.outputs.values()))
    first = first_difference(reference.outputs, checked.outputs)
    told = (observers or Observers()).on_progress
    error, counts = _judge_fast(setup, store, options, fast.outputs, told)
    return Lossless(tokens, first is None, first, error, counts)


def first_difference(
    expected: Mapping[int, Sequence[int]], found: Mapping[int, Sequence[int]]
) -> Difference | None:
    """Return where the outputs of the first request that differs part, None where all are equal."""
    for seq_id in sorted({*expected, *found}):
        mine, theirs = list(expected.get(seq_id, ())), list(found.get(seq_id, ()))
        for index in range(max(len(mine), len(theirs))):
            pair = [tokens[index] if index < len(tokens) else None for tokens in (mine, theirs)]
            if pair[0] != pair[1]:
                return Difference(seq_id, index, *pair)
    return None


@torch.inference_mode()
def _judge_fast(
    setup: ModelSetup,
    store: ExpertStore,
    options: DeviceOptions,
    outputs: Mapping[int, Sequence[int]],
    on_progress: Callable[[int], None],
) -> tuple[float, TieCounts]:
    """Return the measured error between the two ways, and the fast path's choices judged with it."""
    each = max(2, _ERROR_ROWS // len(outputs))
    samples = {seq_id: setup.prompts[seq_id][:each] for seq_id in outputs}
    rough = _logits(setup, store, options, samples, invariant=False)
    texts = {seq_id: (*setup.prompts[seq_id], *output) for seq_id, output in outputs.items()}
    exact = _logits(setup, store, options, texts, invariant=True, on_progress=on_progress)
    error = max(
        measure_gap_error(exact[seq_id][: len(sample)], rough[seq_id]) for seq_id, sample in samples.items()
    )
    counts = TieCounts()
    for seq_id, output in outputs.items():
        first = len(setup.prompts[seq_id]) - 1
        rows = exact[seq_id][first : first + len(output)]
        counts += judge(rows, torch.tensor(list(output), device=rows.device), error)
    return error, counts


def _logits(
    setup: ModelSetup,
    store: ExpertStore,
    options: DeviceOptions,
    texts: Mapping[int, Sequence[int]],
    *,
    invariant: bool,
    on_progress: Callable[[int], None] = lambda ended: None,
) -> dict[int, torch.Tensor]:
    """Return the logits of every row of each text; the fast way in chunks of the size of a block."""
    expert = open_expert(options, ExpertLayout.of(setup.truncated.inputs.model), invariant=invariant)
    model = ResidentModel(setup.target, store, expert.forward)
    chunk = _SCORED_ROWS if invariant else setup.truncated.scenario.block_size
    setup.target.invariant = invariant
    try:
        found = {}
        for seq_id, text in texts.items():
            found[seq_id] = torch.cat(list(model.logits(text, chunk)))
            on_progress(1)
        return found
    finally:
        setup.target.invariant = False

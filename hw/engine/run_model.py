"""Run a real model: `run_model(setup, store, options) -> ModelRun`. Real tokens, real routing, real acceptance.

A `ModelSetup` is a loaded target with its drafter and prompts; it serves many runs, so that a baseline can be compared
with another, or with itself in the invariant way (`lossless.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import transformers

from hideaway.hw.acceptance.sampling import SamplingRule
from hideaway.hw.devices.worker_device import WorkerDevice
from hideaway.hw.draft.drafter import DFlashDrafter
from hideaway.hw.engine.block_drafter import BlockDrafter, DFlashBlocks
from hideaway.hw.engine.generated import Generated
from hideaway.hw.engine.model_work import ModelWork
from hideaway.hw.engine.open_device import DeviceOptions, Expert, slots_at_once
from hideaway.hw.engine.recording import Recorder
from hideaway.hw.engine.run import MakeContent, Observers, RealRun, check_runnable, run_parts
from hideaway.hw.engine.token_book import TokenBook
from hideaway.hw.engine.truncation import Truncated
from hideaway.hw.engine.work import Work
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.target.model import Target
from hideaway.hw.target.predict import make_predictor
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.arrivals import RequestSpec
from hideaway.sim.inputs.scenario.baselines import BASELINES
from hideaway.sim.scheduler import Scheduler
from hideaway.sim.world.serving import Serving


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """A model ready to run.

    Parameters
    ----------
    truncated : Truncated
        The whole model; its `inputs.requests` have the prompts' lengths.
    prompts : tuple of tuple of int
        Tokens of each request's prompt.
    make_drafter : callable or None
        Makes a drafter for one run; None where there is none.
    predictor : str
        One of `hideaway.hw.target.predict.PREDICTORS`.
    max_tokens : int or None
        Tokens that the model's positions reach.
    """

    truncated: Truncated
    target: Target
    prompts: tuple[tuple[int, ...], ...]
    make_drafter: Callable[[], BlockDrafter] | None = None
    rule: SamplingRule = field(default_factory=lambda: SamplingRule(temperature=0.0))
    predictor: str = "stale-gate"
    max_tokens: int | None = None

    def with_scenario(self, **changes: object) -> ModelSetup:
        """Return the same model under a scenario with some fields changed."""
        scenario = replace(self.truncated.scenario, **changes)  # type: ignore[arg-type]
        return replace(self, truncated=replace(self.truncated, scenario=scenario))


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One finished run of a real model.

    Parameters
    ----------
    outputs : dict of seq_id to list of int
        Tokens of each request that finished.
    recorder : Recorder
        What was routed and accepted.
    """

    real: RealRun
    outputs: dict[int, list[int]]
    recorder: Recorder


def run_model(
    setup: ModelSetup,
    store: ExpertStore,
    options: DeviceOptions,
    observers: Observers | None = None,
    *,
    invariant: bool = False,
) -> ModelRun:
    """Run one scenario of a real model to its end.

    Parameters
    ----------
    invariant : bool
        Every row's result is the same bits whatever is computed with it; slow.

    Raises
    ------
    HideawayError
        Every request failed, or the run could not start.
    InputError
        The scenario, the store, the drafter or the device does not allow it.
    """
    check_setup(setup)
    if store.description.layer_indices != setup.target.moe_layers:
        raise InputError(
            f"store {store.path} holds layers {list(store.description.layer_indices)} but the model's experts are in "
            f"{list(setup.target.moe_layers)}; pack this model"
        )
    scenario = setup.truncated.scenario
    tokens = TokenBook(setup.prompts, scenario.seed)
    recorder = Recorder(setup.truncated.inputs.model.num_experts, [len(prompt) for prompt in setup.prompts])

    def parts(device: WorkerDevice, expert: Expert) -> tuple[Work, MakeContent | None]:
        work = _work(setup, tokens, device, expert)

        def content(serving: Serving, scheduler: Scheduler) -> Generated:
            return Generated(scheduler, work, tokens, setup.rule, recorder)

        return work, content

    setup.target.invariant = invariant
    try:
        real = run_parts(
            setup.truncated, store, options, parts, observers or Observers(), invariant=invariant
        )
    finally:
        setup.target.invariant = False
    real.environment["transformers"] = transformers.__version__
    real.environment["row_bucket"] = "one row, float32" if invariant else "as they come"
    return ModelRun(real, {seq_id: tokens.output(seq_id) for seq_id in sorted(real.meter.requests)}, recorder)


def _work(setup: ModelSetup, tokens: TokenBook, device: WorkerDevice, expert: Expert) -> ModelWork:
    speculative = BASELINES[setup.truncated.scenario.baseline].speculative
    drafter = setup.make_drafter() if speculative and setup.make_drafter is not None else None
    return ModelWork(
        setup.target,
        tokens,
        drafter=drafter,
        rule=setup.rule,
        predictor=make_predictor(setup.predictor, setup.target),
        compute_expert=expert.forward,
        slot_tensor=device.slot_tensor,
        compute_slots=slots_at_once(expert, device),
    )


def check_setup(setup: ModelSetup) -> None:
    """Refuse what no real run of this model can do, before its experts are packed.

    Raises
    ------
    InputError
        Saying what.
    """
    truncated = setup.truncated
    scenario = truncated.scenario
    baseline = BASELINES[scenario.baseline]
    if baseline.oracle or (scenario.router_exact_depth or 1) > 1:
        raise InputError(
            f"{scenario.baseline} with routes exact to depth {scenario.router_exact_depth or 'all'} needs what a real "
            "model only knows after computing the layers before; simulate it, or take OURS with depth 1"
        )
    if baseline.speculative and setup.make_drafter is None:
        raise InputError(
            f"{scenario.baseline} drafts but there is no drafter; give --drafter DIR, or take B0 or B3-AR"
        )
    check_runnable(truncated)
    requests = truncated.inputs.requests
    if [request.input_tokens for request in requests] != [len(prompt) for prompt in setup.prompts]:
        raise InputError(
            "the prompts have other lengths than the requests; cut or repeat each to its request's input_tokens"
        )
    _check_lengths(requests, scenario.block_size if baseline.speculative else 1, setup.max_tokens)


def _check_lengths(requests: Sequence[RequestSpec], block_size: int, max_tokens: int | None) -> None:
    for seq_id, request in enumerate(requests):
        most = request.input_tokens + request.output_tokens + block_size
        if max_tokens is not None and most > max_tokens:
            raise InputError(
                f"request {seq_id} needs {most} tokens with its block, but the model's positions reach {max_tokens}; "
                "shorten the prompts or outputs"
            )


def dflash_maker(drafter: DFlashDrafter, target: Target, block_size: int) -> Callable[[], BlockDrafter]:
    """Return a maker of fresh states of one loaded drafter.

    Raises
    ------
    InputError
        The drafter is not this target's, or drafts shorter blocks.
    """
    DFlashBlocks(drafter, target)
    if not 2 <= block_size <= drafter.config.block_size:
        raise InputError(
            f"block_size is {block_size} but the drafter drafts blocks of 2 to {drafter.config.block_size} rows; give "
            "--block-size in that range"
        )
    return lambda: DFlashBlocks(drafter, target)

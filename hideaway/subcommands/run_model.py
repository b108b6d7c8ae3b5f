"""The part of `hideaway run` that runs a real model: its flags, its settings, and what it adds to a result."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hideaway.console import note, progress
from hideaway.hw.pairs import PAIR_NAMES
from hideaway.options import output_folder
from hideaway.scenario_flags import scenario_from_flags
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.scenario.fields import Scenario
from hideaway.sim.number_checks import finite_number
from hideaway.sim.units import GB

if TYPE_CHECKING:
    from hideaway.hw.engine.lossless import Lossless
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.engine.open_model import ModelFiles
    from hideaway.hw.engine.run import Observers
    from hideaway.hw.engine.run_model import ModelRun, ModelSetup
    from hideaway.hw.store.reader import ExpertStore
    from hideaway.hw.target.prompts import Codec

REPLAYED_ONLY = (
    "acceptance",
    "rejected_routing",
    "predictor",
    "recall",
    "precision",
    "drafter_parameters",
    "verify_reuses_route",
)
"""Scenario fields that a real model decides by itself."""
PREDICTORS = ("stale-gate", "previous-rows", "none")
"""As `hideaway.hw.target.predict.PREDICTORS`, which needs torch."""
DEFAULT_REQUESTS = 8
ROUTING_FILE, ACCEPTANCE_FILE = "routing.npz", "acceptance.csv"


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a real model."""
    group = parser.add_argument_group(
        "real model", "real tokens, routing and acceptance, in place of --shape's replayed ones"
    )
    group.add_argument(
        "--model",
        metavar="DIR",
        help="Hugging Face checkpoint (gpt-oss, Qwen3-MoE, OLMoE, Mixtral), a pair's folder, or the name of a shipped "
        f"pair: {', '.join(PAIR_NAMES)}",
    )
    group.add_argument("--drafter", metavar="DIR", help="DFlash checkpoint (default: the pair's)")
    group.add_argument(
        "--prompts",
        metavar="FILE",
        help="JSON lines with text or token_ids, and optionally output_tokens (default: the pair's held-out text); cut "
        "or repeated to the lengths of --trace where that is given, else as they are, with 128 tokens after each",
    )
    group.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="of sampling; 0 is greedy (default 0)"
    )
    group.add_argument(
        "--route-predictor",
        choices=PREDICTORS,
        help="what guesses experts ahead: later routers on the state at hand, the last rows' experts, nothing "
        "(default stale-gate)",
    )
    group.add_argument(
        "--check-lossless",
        action="store_true",
        help="run again in a way whose results do not depend on what is computed together, compare with plain decode "
        "token for token, and judge the run itself; exit 1 for a difference that rounding does not explain",
    )
    group.add_argument(
        "--record",
        type=output_folder,
        metavar="DIR",
        help=f"write what was routed and accepted to DIR/{ROUTING_FILE} and DIR/{ACCEPTANCE_FILE}; `simulate --routing "
        "FILE --rejected-routing recorded` then replays the run itself, `--acceptance replay:FILE` the lengths alone",
    )


def refuse_without_model(arguments: argparse.Namespace) -> None:
    """Refuse flags of a real model where there is none.

    Raises
    ------
    InputError
        Naming the flag.
    """
    for name in ("drafter", "prompts", "route_predictor", "record"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} was given without --model; name the model")
    if arguments.temperature != 0 or arguments.check_lossless:
        flag = "--check-lossless" if arguments.check_lossless else "--temperature"
        raise InputError(
            f"{flag} was given without --model, but replayed runs generate no tokens; name a model"
        )


def model_scenario(arguments: argparse.Namespace) -> tuple[Scenario, bool]:
    """Return the scenario of the flags, and whether prompts keep their own lengths.

    Raises
    ------
    InputError
        A flag does not go with a real model.
    """
    for name in ("shape", "layers"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name} and --model were given together; a real model runs whole, drop one")
    for name in REPLAYED_ONLY:
        if getattr(arguments, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} describes replayed runs, but a real model has its own; leave it out")
    finite_number("temperature", arguments.temperature)
    if arguments.check_lossless and arguments.temperature != 0:
        raise InputError("--check-lossless compares greedy outputs, but --temperature was given; drop one")
    scenario = scenario_from_flags(arguments)
    own_lengths = arguments.trace is None and scenario.trace == Scenario.__dataclass_fields__["trace"].default
    return scenario, own_lengths


class ModelCommand:
    """One `hideaway run --model`: opens the model, runs it, checks it."""

    def __init__(self, arguments: argparse.Namespace, options: DeviceOptions) -> None:
        from hideaway.hw.engine.open_model import RunOptions, find_model, open_model
        from hideaway.hw.engine.run_model import check_setup

        self._arguments = arguments
        self._options = options
        self.files: ModelFiles = find_model(arguments.model, arguments.drafter)
        if arguments.requests is None and arguments.scenario is None:
            arguments.requests = DEFAULT_REQUESTS
        arguments.model = str(self.files.target)
        scenario, own_lengths = model_scenario(arguments)
        self.predictor: str = arguments.route_predictor or "stale-gate"
        run_options = RunOptions(
            prompts=arguments.prompts,
            own_lengths=own_lengths,
            temperature=arguments.temperature,
            predictor=self.predictor,
            device="cuda" if options.name == "cuda" else "cpu",
        )
        note(f"loading {self.files.target}")
        opened: tuple[ModelSetup, Codec] = open_model(self.files, scenario, run_options)
        self.setup, self.codec = opened
        check_setup(self.setup)
        self.own_lengths = own_lengths
        self.store = self._open_store()

    def run(self, observers: Observers) -> ModelRun:
        """Run the scenario."""
        from hideaway.hw.engine.run_model import run_model

        return run_model(self.setup, self.store, self._options, observers)

    def check(self, run: ModelRun, make_observers: Callable[[Callable[[], None]], Observers]) -> Lossless:
        """Return whether a finished run lost nothing; made with two more runs."""
        from hideaway.hw.engine.lossless import check_lossless

        requests = len(self.setup.prompts)
        with progress(3 * requests, "checking losslessness") as step:
            return check_lossless(self.setup, self.store, self._options, run, make_observers(step))

    def record(self, run: ModelRun) -> None:
        """Write what was routed and accepted, where it was asked for."""
        if self._arguments.record is None:
            return
        folder = Path(self._arguments.record)
        run.recorder.write_routing(folder / ROUTING_FILE)
        run.recorder.write_acceptance(folder / ACCEPTANCE_FILE)
        note(f"routing and acceptance: {folder}")

    def settings(self) -> dict[str, object]:
        """Return what is in force besides the scenario."""
        lengths = (
            "of the prompts" if self.own_lengths else "of the trace; prompts are cut or repeated to them"
        )
        return {
            "target": str(self.files.target),
            "drafter": None if self.files.drafter is None else str(self.files.drafter),
            "prompts": self._arguments.prompts or (None if self.files.text is None else str(self.files.text)),
            "lengths": lengths,
            "temperature": self._arguments.temperature,
            "route_predictor": self.predictor,
            "router_exact_depth": 0,
            "drafter_parameters": self.setup.truncated.scenario.drafter_parameters,
        }

    def outputs(self, run: ModelRun) -> list[dict[str, Any]]:
        """Return what each request got, as token ids and, where there is a tokenizer, as text."""
        return [
            {
                "request": seq_id,
                "prompt_tokens": len(self.setup.prompts[seq_id]),
                "token_ids": tokens,
                "text": self.codec.decode(tokens),
            }
            for seq_id, tokens in run.outputs.items()
        ]

    def _open_store(self) -> ExpertStore:
        from hideaway.hw.engine.open_model import open_store
        from hideaway.hw.store.reader import ExpertStore

        if self._arguments.store is not None:
            return ExpertStore(self._arguments.store)

        def announce(path: Path, num_bytes: int, there: bool) -> None:
            note(f"{'reusing' if there else 'packing'} {num_bytes / GB:.3f} GB of experts in {path}")

        model = self.setup.truncated.inputs.model
        with progress(model.num_layers * model.num_experts, "packing experts") as step:
            return open_store(self.files, self.setup.truncated.scenario.expert_format, announce, step)

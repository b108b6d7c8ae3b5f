"""Measure this machine: the real engine's own operations, one by one, for calibration.

Every sample goes into one JSON file with the machine, versions, bytes and the reason why sampling ended. --quick takes
under a minute, a full measurement under ten; the making of random experts (kept in the cache folder) is part of it.
Let nothing else run meanwhile: samples that something else disturbed are discarded, counted and kept in the file.
Ctrl-C writes what there is, marked "interrupted"; the file is always whole.

Example:
  hideaway measure --shape Qwen3-30B-A3B --layers 2 --device disk --quick -o M.json
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hideaway.console import note, print_json, progress
from hideaway.hw.devices.choose import DEVICE_KINDS
from hideaway.hw.engine.torch_ready import make_torch_ready
from hideaway.hw.store.description import EXPERT_FORMATS
from hideaway.options import add_json_option, add_out_option, add_seed_option
from hideaway.real_flags import device_options, shape_store
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.measurements import MeasurementFile
from hideaway.sim.number_checks import finite_number
from hideaway.subcommands.measure_text import announce, list_benchmarks, print_measurement
from hideaway.version import __version__

if TYPE_CHECKING:
    from hideaway.hw.engine.open_device import DeviceOptions
    from hideaway.hw.microbenchmarks.plan import Plan
    from hideaway.hw.microbenchmarks.subject import Subject
    from hideaway.hw.store.reader import ExpertStore

DEFAULT_SHAPE = "Qwen3-30B-A3B"
QUICK_LAYERS, FULL_LAYERS = 2, 4
_STEPS = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway measure`."""
    parser.add_argument("--quick", action="store_true", help="fewer points, under a minute")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks only (see --list)")
    parser.add_argument(
        "--list", action="store_true", help="list benchmarks, axes and points; measure nothing"
    )
    parser.add_argument(
        "--shape",
        default=DEFAULT_SHAPE,
        metavar="NAME",
        help="model whose shape is measured (default %(default)s)",
    )
    parser.add_argument(
        "--layers",
        type=int,
        metavar="N",
        help=f"keep the first N layers with experts (default {FULL_LAYERS}, with --quick {QUICK_LAYERS})",
    )
    parser.add_argument(
        "--expert-format", choices=EXPERT_FORMATS, help="stored format (default the model's own)"
    )
    parser.add_argument(
        "--device", choices=DEVICE_KINDS, default="disk", help="where experts come from (default %(default)s)"
    )
    parser.add_argument(
        "--store", metavar="DIR", help="experts packed by `hideaway pack` instead of the cache's"
    )
    parser.add_argument(
        "--link-rate", type=float, metavar="BYTES_PER_SECOND", help="paced-memory: set rate (required there)"
    )
    parser.add_argument(
        "--link-latency", type=float, metavar="SECONDS", help="paced-memory: set latency (default 0)"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads that compute (default all cores)")
    parser.add_argument(
        "--drafter-parameters",
        type=float,
        metavar="N",
        help="weights of the whole model's drafter (default 0.8e9)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="time for everything (default 50 with --quick, 560 without)",
    )
    add_seed_option(parser)
    add_json_option(parser)
    add_out_option(parser, "write every sample and the environment to this JSON file")


def run(arguments: argparse.Namespace) -> int:
    """Measure, write, print."""
    begun = time.perf_counter()
    subject, options, plan = _plan(arguments)
    if arguments.list:
        list_benchmarks(plan, as_json=arguments.json)
        return 0
    announce(arguments, subject, plan)
    file, interrupted = _measured(arguments, subject, options, plan, begun)
    if arguments.out and file.measurements:
        file.write(arguments.out)
        note(f"wrote {arguments.out}{', marked interrupted' if interrupted else ''}")
    if interrupted:
        raise KeyboardInterrupt
    if arguments.json:
        print_json(file.to_dict())
    else:
        print_measurement(file)
    return 0


def _plan(arguments: argparse.Namespace) -> tuple[Subject, DeviceOptions, Plan]:
    """Return what is measured; refuses what cannot be before anything large is made."""
    make_torch_ready()
    from hideaway.hw.microbenchmarks.catalogue import chosen_benchmarks
    from hideaway.hw.microbenchmarks.plan import make_plan
    from hideaway.hw.microbenchmarks.subject import make_subject

    if arguments.device == "paced-memory" and arguments.link_rate is None:
        raise InputError("the paced-memory device has no speed of its own; give --link-rate BYTES_PER_SECOND")
    if arguments.seconds is not None:
        finite_number("seconds", arguments.seconds, above_minimum=True)
    options = device_options(arguments)
    layers = arguments.layers if arguments.layers is not None else _default_layers(arguments)
    subject = make_subject(
        arguments.shape,
        layers,
        arguments.device,
        expert_format=arguments.expert_format,
        drafter_parameters=arguments.drafter_parameters,
    )
    benchmarks = chosen_benchmarks(subject, arguments.only)
    return subject, options, make_plan(benchmarks, quick=arguments.quick, seconds=arguments.seconds)


def _measured(
    arguments: argparse.Namespace, subject: Subject, options: DeviceOptions, plan: Plan, begun: float
) -> tuple[MeasurementFile, bool]:
    """Return the measurement, and whether it was interrupted."""
    from hideaway.hw.microbenchmarks.measure import Measuring
    from hideaway.hw.microbenchmarks.plan import left_seconds
    from hideaway.hw.microbenchmarks.rig import Rig

    store = (
        _store(arguments, subject) if any(point.benchmark.needs_experts for point in plan.points) else None
    )
    rig = Rig(subject, options, store, seed=arguments.seed)
    try:
        with progress(len(plan.points), "preparing points") as prepared:
            measuring = Measuring(
                plan,
                rig,
                seed=arguments.seed,
                version=__version__,
                facts={"arguments": _settings(arguments, subject, plan)},
                on_prepared=prepared,
            )
        with measuring:
            try:
                with _bar("measuring") as shown:
                    measuring.run(left_seconds(plan, time.perf_counter() - begun), on_progress=shown)
            except KeyboardInterrupt:
                return measuring.file(), True
            return measuring.file(), False
    finally:
        rig.close()


def _settings(arguments: argparse.Namespace, subject: Subject, plan: Plan) -> dict[str, object]:
    """Return the flags that say what was measured; paths are left out."""
    names = ("quick", "only", "device", "link_rate", "link_latency", "threads", "expert_format")
    return {
        **{name: getattr(arguments, name) for name in names},
        "layers": subject.num_layers,
        "seconds": plan.seconds,
    }


def _store(arguments: argparse.Namespace, subject: Subject) -> ExpertStore:
    from hideaway.hw.microbenchmarks.subject import check_store
    from hideaway.hw.store.reader import ExpertStore

    if arguments.store is not None:
        store = ExpertStore(arguments.store)
        check_store(store, subject)
        return store
    return shape_store(arguments.shape, subject.num_layers, arguments.expert_format)


@contextmanager
def _bar(label: str) -> Iterator[Callable[[float], None]]:
    """Show a bar for a share of time; yields a function that is told the share."""
    with progress(_STEPS, label) as step:
        shown = 0

        def tell(share: float) -> None:
            nonlocal shown
            while shown < int(share * _STEPS):
                step()
                shown += 1

        yield tell


def _default_layers(arguments: argparse.Namespace) -> int:
    return QUICK_LAYERS if arguments.quick else FULL_LAYERS

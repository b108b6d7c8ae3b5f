"""Pack the routed experts of a model into a store that devices read, or check one.

--model takes the folder of a Hugging Face checkpoint (gpt-oss in MXFP4 as it is; Qwen3-MoE, OLMoE, Mixtral and others
in BF16, quantised here). --shape makes random FP4 weights of any model's shape, for timing. The store appears when it
is complete; a full disk or Ctrl-C leaves nothing behind. --verify compares every expert with its checksum.

Examples
--------
  hideaway pack --shape gpt-oss-20b --layers 2 --seed 7 -o experts-gpt-oss
  hideaway pack --model ./Qwen3-30B-A3B -o experts-qwen --expert-format nvfp4
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hideaway.console import note, print_json, print_table, progress
from hideaway.hw.store.description import EXPERT_FORMATS
from hideaway.hw.store.hf_experts import CheckpointExperts
from hideaway.hw.store.pack import pack_experts
from hideaway.hw.store.reader import ExpertStore
from hideaway.hw.store.source import ExpertSource
from hideaway.hw.store.synthetic import SyntheticExperts
from hideaway.options import add_json_option, add_out_option, add_seed_option
from hideaway.sim.errors import InputError
from hideaway.sim.units import GB

EXIT_DAMAGED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `hideaway pack`."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", metavar="DIR", help="folder of a Hugging Face checkpoint")
    what.add_argument(
        "--shape", metavar="NAME", help="random weights of the shape of this model (name or path)"
    )
    what.add_argument("--verify", metavar="STORE", help="compare every expert of a store with its checksum")
    parser.add_argument(
        "--layers", type=int, metavar="N", help="only the first N layers with routed experts (default all)"
    )
    parser.add_argument(
        "--expert-format",
        choices=EXPERT_FORMATS,
        help="what weights are quantised to (default: the model's own FP4 format, else mxfp4)",
    )
    add_seed_option(parser)
    add_out_option(parser, "folder of the store; must not exist")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Pack or verify, and print what the store holds."""
    if arguments.verify is not None:
        return _verify(arguments)
    if arguments.out is None:
        raise InputError("packing needs a folder to write; give -o DIR")
    source = _source(arguments)
    description = source.description
    total = description.num_layers * description.num_experts
    with _terminated_as_interrupted(), progress(total, "packing experts") as step:
        store = pack_experts(source, arguments.out, progress=step)
    _show(store, arguments)
    if not arguments.json:
        note(f"wrote {arguments.out}")
    return 0


def _source(arguments: argparse.Namespace) -> ExpertSource:
    if arguments.model is not None:
        return CheckpointExperts(
            arguments.model, num_layers=arguments.layers, expert_format=arguments.expert_format
        )
    return SyntheticExperts(
        arguments.shape,
        num_layers=arguments.layers,
        seed=arguments.seed,
        expert_format=arguments.expert_format,
    )


def _verify(arguments: argparse.Namespace) -> int:
    store = ExpertStore(arguments.verify)
    description = store.description
    with progress(description.num_layers * description.num_experts, "verifying experts") as step:
        damaged = store.verify(step)
    _show(store, arguments, damaged)
    return EXIT_DAMAGED if damaged else 0


def _show(
    store: ExpertStore, arguments: argparse.Namespace, damaged: tuple[tuple[int, int], ...] | None = None
) -> None:
    description = store.description
    if arguments.json:
        print_json(
            {
                "store": str(store.path),
                "model": description.model,
                "source": description.source,
                "expert_format": description.expert_format,
                "num_layers": description.num_layers,
                "num_experts": description.num_experts,
                "expert_bytes": description.expert_bytes,
                "expert_stride_bytes": description.stride_bytes,
                "data_file_bytes": Path(store.data_path).stat().st_size,
                "damaged": None if damaged is None else [list(key) for key in damaged],
            }
        )
        return
    rows: list[tuple[str, str]] = [
        ("experts", f"{description.num_layers} layers of {description.num_experts}"),
        ("one expert", f"{description.expert_bytes:,} bytes in {description.expert_format}, "
                       f"{description.stride_bytes:,} on the disk"),
        ("all experts", f"{description.total_bytes / GB:.3f} GB"),
        ("source", description.source),
    ]  # fmt: skip
    if damaged is not None:
        listed = ", ".join(f"layer {layer} expert {expert}" for layer, expert in damaged[:10])
        more = f" and {len(damaged) - 10} more" if len(damaged) > 10 else ""
        rows.append(("damaged", f"{listed}{more}" if damaged else "none"))
    print_table(("", description.model), rows)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C while the block runs, so that nothing half-written stays."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not on the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)

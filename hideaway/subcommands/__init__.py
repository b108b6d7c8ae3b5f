"""One module a subcommand; this table is what `hideaway --help` prints."""

from __future__ import annotations

from typing import NamedTuple


class Subcommand(NamedTuple):
    """Where a subcommand lives and what it is for."""

    module: str
    summary: str


SUBCOMMANDS: dict[str, Subcommand] = {
    "hide": Subcommand(
        "hideaway.subcommands.hide", "do transfers hide? both sides, verdicts, inverses, what hiding is worth"
    ),
    "simulate": Subcommand("hideaway.subcommands.simulate", "simulate one scenario and print its metrics"),
    "run": Subcommand(
        "hideaway.subcommands.run", "run one scenario for real: FP4 experts, real transfers, same metrics"
    ),
    "measure": Subcommand(
        "hideaway.subcommands.measure", "microbenchmarks of the engine's own operations, for calibration"
    ),
    "calibrate": Subcommand(
        "hideaway.subcommands.calibrate", "fit a hardware profile to this machine's measurements, with errors"
    ),
    "route-recall": Subcommand(
        "hideaway.subcommands.route_recall", "how well experts can be guessed ahead, on a real model"
    ),
    "matrix": Subcommand(
        "hideaway.subcommands.matrix", "baselines B0 to B3 over block sizes and concurrencies"
    ),
    "headroom": Subcommand(
        "hideaway.subcommands.headroom", "what holds a scenario back, what memory is worth, users served"
    ),
    "gates": Subcommand("hideaway.subcommands.gates", "judge result rows and the gates BM1 to BM5"),
    "pack": Subcommand("hideaway.subcommands.pack", "pack a model's experts into a store, or check a store"),
    "models": Subcommand("hideaway.subcommands.models", "list models; show one and what fits on a card"),
    "profile": Subcommand("hideaway.subcommands.profile", "list hardware profiles; show one in full"),
}

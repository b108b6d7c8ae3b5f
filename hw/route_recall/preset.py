"""A measured curve as a predictor of the simulator: the file that a scenario's `predictor` takes."""

from __future__ import annotations

from hideaway.hw.route_recall.guesses import EXACT
from hideaway.hw.route_recall.measure import RouteRecall
from hideaway.hw.route_recall.scores import Curve
from hideaway.sim.errors import InputError
from hideaway.sim.inputs.predictor_file import MeasuredPredictor


def predictor_of(found: RouteRecall, name: str, subject: str) -> MeasuredPredictor:
    """Return the predictor `name` as the simulator takes it: recall and precision of one row, by layer distance.

    The simulator works out the quality of unions from that of rows (`hideaway.sim.world.prediction`).

    Parameters
    ----------
    subject : str
        Model, drafts, text and seed, for the file's source.

    Raises
    ------
    InputError
        There is no such curve, or it has a distance without a right guess.
    """
    curve = _curve(found, name)
    recalls, precisions = [], []
    for distance, score in zip(curve.distances, curve.rows, strict=True):
        if score.recall is None or score.precision is None or score.precision.value == 0:
            raise InputError(
                f"{name} guessed nothing right {distance} layers ahead, which no predictor of a simulation can do; "
                "choose another with --preset-predictor, or more --rounds"
            )
        recalls.append(round(score.recall.value, 6))
        precisions.append(round(score.precision.value, 6))
    made = "before verify" if curve.before_verify else "at a layer"
    source = (
        f"{name}, guessed {made}, measured by hideaway route-recall over {found.rounds} rounds of {found.sequences} "
        f"texts: {subject}"
    )
    return MeasuredPredictor(
        name=name,
        recall_curve=tuple(recalls),
        precision_curve=tuple(precisions),
        source=source,
    )


def _curve(found: RouteRecall, name: str) -> Curve:
    known = {curve.predictor: curve for curve in found.curves if curve.predictor != EXACT}
    if name not in known:
        raise InputError(
            f"--preset-predictor is {name!r} but {', '.join(known)} were measured; choose one of them"
        )
    return known[name]

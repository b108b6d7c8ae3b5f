"""From terms to answer: every form that the terms allow, what each costs per token, and the inverses.

The result is plain data, the JSON object of `hideaway hide`. Tables of it are made in
`hideaway.report.hide_tables`, chances in `hideaway.subcommands.hide_chance`.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from hideaway.sim.contract import evaluate_hide_inequality
from hideaway.sim.hide import (
    break_even_acceptance_length,
    round_seconds,
    seconds_per_committed_token,
    smallest_bandwidth_bytes_per_second,
    smallest_resident_fraction,
    spread_over_layers,
    worth,
)
from hideaway.subcommands.hide_layers import build_layers, union_form
from hideaway.subcommands.hide_terms import HideTerms, NominalTerms, TransferTerms, VerifyTerms

Answer = dict[str, Any]


def answer(terms: HideTerms) -> Answer:
    """Return the terms, each form's sides and verdict, seconds per token and inverses, as plain data."""
    forms: dict[str, Answer] = {
        "nominal": _nominal(terms.nominal),
        "achievable": _achievable(terms),
    }
    window = forms["nominal"]["hide_window_seconds"]
    if terms.transfers is not None:
        forms |= _union_forms(terms.nominal, terms.transfers)
        if terms.verify is not None:
            forms |= _exact_forms(window, terms.nominal, terms.transfers, terms.verify)
    verify = verify_seconds(terms)
    for form in forms.values():
        form.update(_speed(terms, form, verify))
    return {
        "terms": _plain_terms(terms, verify),
        "forms": forms,
        "inverses": _inverses(terms, forms),
    }


def verify_seconds(terms: HideTerms) -> float | None:
    """Return verify's compute with nothing waited for: as given, or from its parts."""
    if terms.verify_seconds is not None or terms.verify is None or terms.transfers is None:
        return terms.verify_seconds
    verify = terms.verify
    launches = verify.group_seconds if terms.transfers.experts_per_layer > 0 else 0.0
    experts = launches + terms.transfers.experts_per_layer * verify.expert_seconds
    return terms.transfers.num_layers * (verify.before_experts_seconds + experts) + verify.other_seconds


def b0_seconds_per_token(terms: HideTerms) -> float:
    """Return the time of a forward at exact depth 1 without prefetch; the terms are those of one row.

    An estimate of B0 on the slow side: its prefetcher guesses the previous token's experts, here nothing does.
    """
    if terms.transfers is None or terms.verify is None:
        raise ValueError("b0_seconds_per_token needs transfers and verify; make the terms from a scenario")
    form = _exact_forms(0.0, terms.nominal, terms.transfers, terms.verify)["depth_one"]
    return float(form["verify_seconds"] + form["exposed_seconds"])


def _nominal(nominal: NominalTerms) -> Answer:
    form = evaluate_hide_inequality(**nominal.as_arguments())
    return _sides(form.fetch_seconds, form.hide_window_seconds)


def _achievable(terms: HideTerms) -> Answer:
    """Return the nominal form of a sequence whose fetch cannot start before its own draft has ended."""
    arguments = terms.nominal.as_arguments() | {"draft_seconds": 0.0}
    form = evaluate_hide_inequality(**arguments)
    return _sides(form.fetch_seconds, form.hide_window_seconds)


def _union_forms(nominal: NominalTerms, transfers: TransferTerms) -> dict[str, Answer]:
    form = union_form(nominal, transfers, transfers.num_layers * transfers.missing_per_layer)
    fetch, window = float(form.fetch_seconds), float(form.hide_window_seconds)
    sides = _sides(fetch, window) | {
        "num_transfers": float(form.num_transfers),
        "fetch_bytes": float(form.fetch_bytes),
        "overlap_seconds": float(form.overlap_seconds),
        "idle_link_seconds": float(form.idle_link_seconds),
    }
    forms = {"measured_union": sides}
    if transfers.idle_link_seconds > 0:
        forms["measured_union_idle_link_used"] = _sides(fetch, window + transfers.idle_link_seconds)
    return forms


def _exact_forms(
    window: float, nominal: NominalTerms, transfers: TransferTerms, verify: VerifyTerms
) -> dict[str, Answer]:
    """Return the forms that know the order in time, for layers as alike as whole experts allow."""
    missing = spread_over_layers(transfers.num_layers * transfers.missing_per_layer, transfers.num_layers)
    needed = np.full(transfers.num_layers, transfers.experts_per_layer)
    layers = build_layers(nominal, transfers, verify, needed=needed, missing=missing)
    count = int(missing.sum())
    ahead = {
        "num_transfers": count,
        "fetch_seconds": layers.last_arrival_seconds,
        "hide_window_seconds": window,
    }
    on_demand = {
        "num_transfers": count,
        "fetch_seconds": layers.on_demand_seconds,
        "hide_window_seconds": None,
    }
    extra = layers.compute_seconds + verify.other_seconds
    return {
        "staggered": ahead
        | {"smallest_window_seconds": layers.staggered_window(), "verify_seconds": extra}
        | _exposed(layers.staggered(window)),
        "staggered_barrier": ahead | _exposed(layers.barrier(window)),
        "depth_one": on_demand | {"verify_seconds": extra} | _exposed(layers.depth_one()),
    }


def _sides(fetch_seconds: float, window_seconds: float) -> Answer:
    slack = window_seconds - fetch_seconds
    return {
        "fetch_seconds": fetch_seconds,
        "hide_window_seconds": window_seconds,
        "slack_seconds": slack,
        "exposed_seconds": max(0.0, -slack),
        "hidden": slack >= 0.0,
    }


def _exposed(exposed_seconds: float) -> Answer:
    return {"slack_seconds": None, "exposed_seconds": exposed_seconds, "hidden": exposed_seconds == 0.0}


def _speed(terms: HideTerms, form: Answer, verify: float | None) -> Answer:
    """Return what a round of this form costs per committed token, and how that stands against B0."""
    speed: Answer = {
        "round_seconds": None,
        "seconds_per_committed_token": None,
        "break_even_acceptance_length": None,
        "worth": None,
    }
    if verify is None:
        return speed
    total = round_seconds(
        draft_seconds=terms.nominal.draft_seconds,
        router_seconds=terms.nominal.router_seconds,
        verify_seconds=form.get("verify_seconds", verify),
        exposed_seconds=form["exposed_seconds"],
    )
    speed["round_seconds"] = float(total)
    b0 = terms.b0_seconds_per_token
    if b0 is not None:
        speed["break_even_acceptance_length"] = float(break_even_acceptance_length(total, b0))
    if terms.acceptance_length is not None:
        token = float(seconds_per_committed_token(total, terms.acceptance_length))
        speed["seconds_per_committed_token"] = token
        if b0 is not None:
            speed["worth"] = worth(
                hidden=form["hidden"], seconds_per_token=token, b0_seconds_per_token=b0
            ).value
    return speed


def _inverses(terms: HideTerms, forms: dict[str, Answer]) -> Answer:
    arguments = terms.nominal.as_arguments()
    without_fraction = {name: value for name, value in arguments.items() if name != "resident_fraction"}
    without_rate = {
        name: value for name, value in arguments.items() if name != "measured_h2d_bytes_per_second"
    }
    bandwidth = float(smallest_bandwidth_bytes_per_second(**without_rate))
    return {
        "smallest_resident_fraction": float(smallest_resident_fraction(**without_fraction)),
        "smallest_bandwidth_bytes_per_second": bandwidth if math.isfinite(bandwidth) else None,
        "smallest_staggered_window_seconds": forms.get("staggered", {}).get("smallest_window_seconds"),
    }


def _plain_terms(terms: HideTerms, verify: float | None) -> Answer:
    parts = (terms.nominal, terms.transfers, terms.verify, terms.block)
    plain: Answer = {}
    for part in parts:
        plain |= {} if part is None else asdict(part)
    plain["verify_seconds"] = verify
    plain["acceptance_length"] = terms.acceptance_length
    plain["b0_seconds_per_token"] = terms.b0_seconds_per_token
    return plain

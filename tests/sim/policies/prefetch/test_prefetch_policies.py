"""What each prefetch rule wants, and what it declares that it must be told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hideaway.sim.commands import Band
from hideaway.sim.policies.prefetch.base import NoPrefetch, Want
from hideaway.sim.policies.prefetch.cross_round import CrossRound
from hideaway.sim.policies.prefetch.previous_token import PreviousToken
from hideaway.sim.policies.prefetch.previous_union import PreviousUnion
from hideaway.sim.policies.prefetch.route_ahead import RouteAhead
from tests.strategies import masks

LAYERS = 5
layer_masks = st.lists(masks(8), min_size=LAYERS, max_size=LAYERS)
NEEDS = ("lookahead", "routes", "last_rows", "kept_rows", "prefetches")


@pytest.mark.parametrize(
    ("policy", "needs"),
    [
        (NoPrefetch(), (0, False, False, False, False)),
        (PreviousToken(LAYERS), (0, False, True, False, True)),
        (PreviousUnion(LAYERS), (0, False, False, False, True)),
        (RouteAhead(LAYERS, lookahead=2), (2, True, False, False, True)),
        (RouteAhead(LAYERS, exact_depth=LAYERS, lookahead=2), (0, True, False, False, True)),
        (CrossRound(NoPrefetch()), (0, False, False, True, True)),
        (CrossRound(PreviousToken(LAYERS)), (0, False, True, True, True)),
        (CrossRound(RouteAhead(LAYERS, lookahead=3)), (3, True, False, True, True)),
    ],
)
def test_each_rule_declares_what_it_must_be_told(policy, needs):
    assert tuple(getattr(policy, name) for name in NEEDS) == needs


@given(layer_masks, layer_masks, st.integers(0, LAYERS - 1))
def test_no_prefetch_wants_nothing(last, kept, layer):
    policy = NoPrefetch()
    assert [*policy.on_route(last), *policy.on_layer(layer, 3, ()), *policy.on_forward(last, kept)] == []


def wants(layers, experts, band):
    return [Want(layer, experts[layer], band) for layer in layers]


@given(layer_masks, layer_masks, st.integers(1, 6))
def test_previous_token_wants_in_the_next_layers_what_the_last_rows_read_there(last, newer, depth):
    policy = PreviousToken(LAYERS, depth)
    assert policy.on_layer(0, 1, ()) == wants(range(1, min(depth + 1, LAYERS)), [0] * LAYERS, Band.BACKGROUND)
    for rows in (last, newer):
        first = wants(range(min(depth, LAYERS)), rows, Band.BACKGROUND)
        assert policy.on_forward(tuple(rows), ()) == first
        for layer in range(LAYERS):
            ahead = range(layer + 1, min(layer + depth + 1, LAYERS))
            assert policy.on_layer(layer, 0b1, ()) == wants(ahead, rows, Band.BACKGROUND)


@given(layer_masks, layer_masks, st.integers(1, 6))
def test_previous_union_wants_in_the_next_layers_what_the_whole_previous_forward_read(old, new, depth):
    policy = PreviousUnion(LAYERS, depth, Band.ROUTE_AHEAD)
    for layer in range(LAYERS):
        policy.on_layer(layer, old[layer], ())
    assert policy.on_forward((), ()) == wants(range(min(depth, LAYERS)), old, Band.ROUTE_AHEAD)
    for layer in range(LAYERS):
        ahead = range(layer + 1, min(layer + depth + 1, LAYERS))
        assert policy.on_layer(layer, new[layer], ()) == wants(ahead, old, Band.ROUTE_AHEAD)
    assert policy.on_forward((), ()) == wants(range(min(depth, LAYERS)), new, Band.ROUTE_AHEAD)


@given(layer_masks, st.integers(1, LAYERS), st.integers(0, 3))
def test_route_ahead_wants_the_exactly_known_layers_and_the_next_few(predicted, depth, lookahead):
    policy = RouteAhead(LAYERS, exact_depth=depth, lookahead=lookahead, band=Band.BACKGROUND)
    named = range(min(depth + lookahead, LAYERS))
    assert policy.on_route(predicted) == wants(named, predicted, Band.BACKGROUND)
    assert list(policy.on_forward((), tuple(predicted))) == []


def test_route_ahead_renews_the_prediction_of_the_next_layers_nearest_first():
    policy = RouteAhead(LAYERS, lookahead=2)
    assert policy.on_layer(1, 0b1, (0b10, 0b11)) == [
        Want(2, 0b10, Band.ROUTE_AHEAD),
        Want(3, 0b11, Band.ROUTE_AHEAD),
    ]
    assert policy.on_layer(LAYERS - 1, 0b1, ()) == []


def test_route_ahead_never_replaces_what_is_exactly_known_by_a_prediction():
    policy = RouteAhead(LAYERS, exact_depth=3, lookahead=2)
    assert policy.on_layer(0, 0b1, (0b10, 0b11)) == []
    assert policy.on_layer(1, 0b1, (0b10, 0b11)) == [Want(3, 0b11, Band.ROUTE_AHEAD)]


@given(layer_masks, st.one_of(st.none(), st.integers(0, 7)))
def test_cross_round_wants_what_the_kept_rows_read_before_the_other_rules_wants(kept, layers):
    policy = CrossRound(PreviousToken(LAYERS), layers)
    last = [0b1] * LAYERS
    own = range(LAYERS if layers is None else min(layers, LAYERS))
    assert policy.on_forward(last, tuple(kept)) == [
        *wants(own, kept, Band.BACKGROUND),
        Want(0, 0b1, Band.BACKGROUND),
    ]


@given(layer_masks)
def test_cross_round_leaves_the_round_to_the_other_rule(predicted):
    alone = RouteAhead(LAYERS, lookahead=2)
    policy = CrossRound(RouteAhead(LAYERS, lookahead=2))
    assert policy.on_route(predicted) == alone.on_route(predicted)
    assert policy.on_layer(1, 0b1, predicted[:2]) == alone.on_layer(1, 0b1, predicted[:2])

"""Hit rates of gpt-oss-20b's recorded routing, against curves computed elsewhere from the same recording.

The published curves take every second sequence, cut each into blocks of consecutive tokens (the odd end is a shorter
block) and look up a block's distinct experts once, one cache a layer, warm across sequences. `static` is the best
fixed set of those events, loaded beforehand. Aged LFU and static are reproduced to the last printed digit, LRU to
0.002 where the slots are few or many against the block: among experts of one event the published rule drops the one
longest resident, ours the lowest id. The published Belady takes arriving experts one by one in order of id, ours the
best of them together, so it hits more, and less than the published bound that may also drop what the event read.
"""

from functools import cache

import numpy as np
import pytest

from hideaway.sim.inputs.routing import UnionTable
from hideaway.sim.inputs.routing.load import load_shipped_trace
from hideaway.sim.policies.eviction.aged_lfu import AgedLfu
from hideaway.sim.policies.eviction.belady import Belady
from hideaway.sim.policies.eviction.lru import Lru
from hideaway.sim.policies.eviction.static_hot_set import StaticHotSet, hot_set
from tests.cache_runs import run_events

LAYERS, EXPERTS = 24, 32

# (block tokens, slots per layer): hit rates published for aged LFU, static, LRU, Belady and the retaining bound
PUBLISHED = {
    (1, 16): (0.9147, 0.8193, 0.8986, 0.9551, 0.956),
    (8, 8): (0.489, 0.4717, 0.4884, 0.532, 0.6027),
    (8, 16): (0.825, 0.7721, 0.812, 0.8793, 0.8994),
    (8, 24): (0.9619, 0.9392, 0.961, 0.9802, 0.9818),
    (16, 8): (0.4292, 0.4312, 0.4291, 0.447, 0.4874),
    (16, 16): (0.7806, 0.7407, 0.7757, 0.8155, 0.8514),
    (16, 24): (0.9491, 0.9269, 0.9471, 0.9678, 0.9725),
}
LRU_WITHOUT_TIES = [(1, 16), (8, 8), (8, 24), (16, 8), (16, 24)]
HALF_A_DIGIT = 5.1e-5


@cache
def events_of(block_tokens):
    """Return the masks of every layer, block by block, over every second sequence."""
    trace = load_shipped_trace("gpt-oss-20b")
    table = UnionTable(trace)
    borders = list(zip(trace.sequence_starts.tolist(), trace.seq_lengths.tolist(), strict=True))[::2]
    return [
        table.unions(np.array([start]), np.array([min(block_tokens, first + length - start)]))
        for first, length in borders
        for start in range(first, first + length, block_tokens)
    ]


def hit_rate(eviction, block_tokens, slots, resident=None):
    counts = run_events(
        eviction, events_of(block_tokens), slots=slots, num_experts=EXPERTS, resident=resident
    )
    return counts.hits / counts.needed


@pytest.mark.parametrize(("block_tokens", "slots"), PUBLISHED)
def test_aged_lfu_hits_as_published(block_tokens, slots):
    found = hit_rate(AgedLfu(LAYERS, EXPERTS), block_tokens, slots)
    assert found == pytest.approx(PUBLISHED[block_tokens, slots][0], abs=HALF_A_DIGIT)


@pytest.mark.parametrize(("block_tokens", "slots"), PUBLISHED)
def test_the_static_hot_set_hits_as_published(block_tokens, slots):
    masks = np.array(events_of(block_tokens), dtype=np.int64)
    uses = (masks[:, :, np.newaxis] >> np.arange(EXPERTS) & 1).sum(axis=0)
    found = hit_rate(StaticHotSet(), block_tokens, slots, hot_set(uses, [slots] * LAYERS))
    assert found == pytest.approx(PUBLISHED[block_tokens, slots][1], abs=HALF_A_DIGIT)


@pytest.mark.parametrize(("block_tokens", "slots"), LRU_WITHOUT_TIES)
def test_lru_hits_as_published_where_ties_matter_little(block_tokens, slots):
    found = hit_rate(Lru(LAYERS, EXPERTS), block_tokens, slots)
    assert found == pytest.approx(PUBLISHED[block_tokens, slots][2], abs=0.002)


def lru_that_drops_the_longest_resident(events, layer, slots):
    """Return (hits, lookups) of the published rule for one layer, literally."""
    last_use = {}  # in order of becoming resident
    hits = lookups = 0
    for time, event in enumerate(events):
        needed = [expert for expert in range(EXPERTS) if event[layer] >> expert & 1]
        lookups += len(needed)
        for expert in needed:
            if expert in last_use:
                hits += 1
                last_use[expert] = time
        for expert in needed:
            if expert not in last_use:
                droppable = [other for other in last_use if other not in needed]
                if len(last_use) == slots and not droppable:
                    continue
                if len(last_use) == slots:
                    del last_use[min(droppable, key=last_use.__getitem__)]
                last_use[expert] = time
    return hits, lookups


@pytest.mark.parametrize(("block_tokens", "slots"), [(8, 16), (16, 16)])
def test_with_the_published_choice_among_ties_lru_hits_as_published(block_tokens, slots):
    layers = [
        lru_that_drops_the_longest_resident(events_of(block_tokens), layer, slots) for layer in range(LAYERS)
    ]
    hits, lookups = np.sum(layers, axis=0)
    assert hits / lookups == pytest.approx(PUBLISHED[block_tokens, slots][2], abs=HALF_A_DIGIT)


@pytest.mark.parametrize(("block_tokens", "slots"), [key for key in PUBLISHED if key[0] > 1])
def test_belady_hits_no_less_than_published_and_no_more_than_the_retaining_bound(block_tokens, slots):
    events = events_of(block_tokens)
    future = [[event[layer] for event in events] for layer in range(LAYERS)]
    found = hit_rate(Belady(LAYERS, EXPERTS, future), block_tokens, slots)
    _, _, lru, belady, retaining = PUBLISHED[block_tokens, slots]
    assert lru < belady - HALF_A_DIGIT <= found <= retaining + HALF_A_DIGIT

"""The published BM4 case: its own margin, and the assumption that flips its sign."""

import pytest

from hideaway.sim.errors import InputError
from hideaway.sim.hide.published import (
    deciding_assumptions,
    load_published_case,
    published_case_names,
    read_published_case,
)


def margins():
    return {
        (reading.only_expert_copies, reading.own_draft_in_window): reading
        for reading in read_published_case(load_published_case("bm4"))
    }


def test_published_reading_is_not_hidden_by_the_published_margin():
    published = margins()[False, True]
    assert not published.form.hidden
    assert published.margin_seconds == pytest.approx(-0.03021163257205589, rel=1e-12)
    assert published.form.fetch_seconds == pytest.approx(0.31589338363457703, rel=1e-15)
    assert published.form.hide_window_seconds == pytest.approx(0.28568175106252114, rel=1e-15)


def test_expert_copies_alone_hide_with_and_without_the_own_draft():
    case = load_published_case("bm4")
    assert case.num_expert_copies * case.expert_bytes == 7_730_104_320
    assert margins()[True, True].margin_seconds == pytest.approx(0.151371, abs=5e-7)
    assert margins()[True, False].margin_seconds == pytest.approx(0.024189, abs=5e-7)
    assert margins()[True, True].form.hidden
    assert margins()[True, False].form.hidden
    assert not margins()[False, False].form.hidden


def test_only_the_bytes_that_count_flip_the_verdict():
    assert deciding_assumptions(read_published_case(load_published_case("bm4"))) == ("only_expert_copies",)


def test_unknown_case_names_the_known_ones():
    assert published_case_names() == ("bm4",)
    with pytest.raises(InputError, match="no published case 'bm9'; the cases are bm4"):
        load_published_case("bm9")

"""Pictures are written whole and the same twice; the verdicts behind the marks agree with hand-made cells."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hideaway.report.gantt_rows import exposed_share_of_window, gantt_rows
from hideaway.report.legend_names import legend_names
from hideaway.report.matrix_cells import exposed_share, panels, row_number
from hideaway.report.plots import exposed_plot, money_plot, order_summary, order_verdicts, timeline_plot
from hideaway.report.style import BASELINE_ORDER, KIND_COLOURS, baseline_styles, text_colour
from hideaway.sim.errors import InputError
from hideaway.sim.timeline import Timeline

MODEL = "openai/gpt-oss-20b"
PNG, SVG = b"\x89PNG\r\n\x1a\n", b"<?xml"


def row(baseline, concurrency, tokens_per_second, *, block_size=8, repeat=0, **more):
    cell = {"model": MODEL, "baseline": baseline, "block_size": block_size, "concurrency": concurrency}
    values = {
        "output_tokens_per_second": tokens_per_second,
        "goodput_at_slo": tokens_per_second,
        "per_round_latency_seconds": 0.25,
        "exposed_seconds_per_round": 0.05,
    }
    return cell | {"repeat": repeat} | ({} if tokens_per_second is None else values) | more


def unavailable(baseline, concurrency, **more):
    return row(baseline, concurrency, None, status="UNAVAILABLE_CAPACITY", **more)


def cell(concurrency, b0, b1, ours, b3, **more):
    return [
        row(baseline, concurrency, speed, **more)
        for baseline, speed in (("B0", b0), ("B1", b1), ("OURS", ours), ("B3", b3))
    ]


MATRIX = [
    *(
        line
        for size in (8, 16)
        for load in (1, 2, 4)
        for line in cell(load, 30, 40, 50, 300, block_size=size)
    ),
    *(unavailable("B3-AR", load) for load in (1, 2, 4)),
    row("B1 + token deficit", 2, 44),
]


def one_visit():
    timeline = Timeline({"model": MODEL, "profile": "rtx-pro-6000", "baseline": "OURS"})
    timeline.add(0.0, 0.004, "compute", "draft", 1, (0, 1))
    timeline.add(0.004, 0.005, "compute", "experts", 1, (0, 1), 0, 0b0111)
    timeline.add(0.005, 0.007, "compute", "wait", 1, (0, 1), 0, 0b1000)
    timeline.add(0.002, 0.005, "link", "copy", 1, (), 0, 0b1000, 13_236_480, 0)
    timeline.add(0.004, 0.007, "link", "copy", 1, (), 0, 0b1000, 13_236_480, 0)
    timeline.add(0.002, 0.0021, "issue", "issue", 1, (), 0, 0b1000)
    for seq_id in (0, 1):
        timeline.add(0.004, 0.007, "sequence", "verify", 1, (seq_id,))
    timeline.add(0.004, 0.004, "counter", "slots_used", value=3.0)
    return timeline


def test_the_order_holds_where_every_link_is_strict():
    (verdict,) = order_verdicts(cell(4, 10, 20, 30, 40))
    assert (verdict.model, verdict.block_size, verdict.concurrency) == (MODEL, 8, 4)
    assert verdict.holds is True
    assert verdict.links == (True, True, True)
    assert verdict.ratios == (2.0, 1.5, 40 / 30)
    assert verdict.broken == verdict.unknown == ()


@pytest.mark.parametrize(
    ("speeds", "broken"),
    [
        ((20, 10, 30, 40), ("B0 < B1",)),
        ((10, 30, 20, 40), ("B1 < OURS",)),
        ((10, 20, 40, 30), ("OURS < B3",)),
        ((40, 30, 20, 10), ("B0 < B1", "B1 < OURS", "OURS < B3")),
        ((10, 20, 20, 40), ("B1 < OURS",)),
    ],
)
def test_a_broken_link_is_named_and_equal_is_not_below(speeds, broken):
    (verdict,) = order_verdicts(cell(4, *speeds))
    assert verdict.holds is False
    assert verdict.broken == broken


def test_a_baseline_that_does_not_fit_leaves_its_link_untold():
    rows = [line for line in cell(4, 10, 20, 30, 40) if line["baseline"] != "B3"]
    (missing,) = order_verdicts(rows)
    (does_not_fit,) = order_verdicts([*rows, unavailable("B3", 4)])
    assert missing == does_not_fit
    assert missing.holds is None
    assert missing.unknown == ("OURS < B3",)
    (broken,) = order_verdicts([unavailable("B3", 4), *cell(4, 20, 10, 30, None)])
    assert broken.holds is False


def test_verdicts_follow_model_block_size_and_concurrency_and_average_repeats():
    rows = [
        *cell(8, 10, 20, 30, 40, block_size=16),
        *cell(8, 10, 20, 30, 40),
        *cell(2, 10, 20, 30, 40, repeat=0),
        *cell(2, 10, 1, 30, 40, repeat=1),
        *cell(1, 10, 20, 30, 40, model="a/first"),
    ]
    verdicts = order_verdicts(rows)
    assert [(verdict.model, verdict.block_size, verdict.concurrency) for verdict in verdicts] == [
        ("a/first", 8, 1),
        (MODEL, 8, 2),
        (MODEL, 8, 8),
        (MODEL, 16, 8),
    ]
    assert verdicts[1].ratios[0] == 10.5 / 10
    assert order_summary(verdicts) == "B0 < B1 < OURS < B3 holds in 4 of 4 cells"


def test_verdicts_take_the_metric_asked_for():
    rows = cell(4, 10, 20, 30, 40)
    rows[3]["goodput_at_slo"] = 5
    assert order_verdicts(rows, "goodput_at_slo")[0].broken == ("OURS < B3",)
    assert order_verdicts(rows)[0].holds is True


def test_the_summary_counts_broken_links_and_untold_cells():
    rows = [*cell(1, 10, 20, 30, 40), *cell(2, 20, 10, 30, 40), *cell(4, 10, 20, 30, None)]
    assert order_summary(order_verdicts(rows)) == (
        "B0 < B1 < OURS < B3 holds in 1 of 3 cells; B0 < B1 breaks in 1; cannot be told in 1"
    )


def test_ratios_over_zero_are_untold_but_the_link_is_judged():
    (verdict,) = order_verdicts(cell(4, 0, 20, 30, 40))
    assert verdict.links[0] is True
    assert verdict.ratios[0] is None


@pytest.mark.parametrize("value", [None, True, "5", float("nan"), float("inf"), -1.0])
def test_what_is_no_metric_counts_as_no_value(value):
    assert row_number({"output_tokens_per_second": value}, "output_tokens_per_second") is None


def test_exposed_share_is_exposed_over_round_time_also_from_the_cost_terms():
    assert exposed_share(row("B0", 1, 10)) == 0.05 / 0.25
    terms = {"per_round_latency_seconds": 0.5, "cost_terms": {"exposed_seconds_per_round": 0.25}}
    assert exposed_share(terms) == 0.5
    assert exposed_share({**terms, "exposed_share": 0.25}) == 0.25
    assert exposed_share({"per_round_latency_seconds": 0.0, "exposed_seconds_per_round": 0.0}) is None


def test_the_legend_says_what_does_not_fit_and_where():
    rows = [row("B0", 1, 10), unavailable("B3", 1), unavailable("B3-AR", 1), row("B3-AR", 2, 9)]
    names = legend_names(panels(rows, lambda each: row_number(each, "output_tokens_per_second")))
    assert names == {
        "B0": "B0",
        "B3": "B3: experts do not fit\n(UNAVAILABLE_CAPACITY)",
        "B3-AR": "B3-AR: experts do not fit\n(UNAVAILABLE_CAPACITY)\nin 1 of 2 cells",
    }


def test_every_baseline_differs_in_colour_and_in_shape():
    styles = baseline_styles([*BASELINE_ORDER, "extra one", "extra two"])
    assert len({style.colour for style in styles.values()}) == len(BASELINE_ORDER) + 1
    assert len({(style.marker, style.dash) for style in styles.values()}) == len(styles)


def test_text_is_dark_on_light_and_light_on_dark():
    assert text_colour("#FFFFFF") == text_colour(KIND_COLOURS["prefill"]) == "black"
    assert text_colour("#000000") == text_colour(KIND_COLOURS["copy"]) == "white"


def draw_money(path):
    money_plot(MATRIX, path, profile="rtx-pro-6000")


def draw_exposed(path):
    exposed_plot(MATRIX, path, profile="rtx-pro-6000")


def draw_timeline(path):
    timeline_plot(one_visit(), path, start_seconds=0.001, end_seconds=0.007)


@pytest.mark.parametrize("draw", [draw_money, draw_exposed, draw_timeline])
@pytest.mark.parametrize(("ending", "magic"), [(".png", PNG), (".svg", SVG)])
def test_a_picture_is_written_and_has_the_same_bytes_twice(tmp_path, draw, ending, magic):
    draw(tmp_path / f"first{ending}")
    draw(tmp_path / f"second{ending}")
    first = (tmp_path / f"first{ending}").read_bytes()
    assert first.startswith(magic)
    assert first == (tmp_path / f"second{ending}").read_bytes()
    assert sorted(os.listdir(tmp_path)) == [f"first{ending}", f"second{ending}"]


def test_the_users_plotting_settings_do_not_change_the_bytes(tmp_path):
    import matplotlib

    draw_exposed(tmp_path / "plain.svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        draw_exposed(tmp_path / "set.svg")
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "set.svg").read_bytes()


def test_two_processes_with_different_hash_seeds_write_the_same_bytes(tmp_path):
    code = (
        "import sys; from hideaway.report.plots import money_plot;"
        "rows = [dict(model='m', baseline=b, block_size=8, concurrency=c, output_tokens_per_second=c * i)"
        " for i, b in enumerate(['B3', 'OURS', 'x', 'B1', 'B0', 'y'], 1) for c in (4, 1)];"
        "money_plot(rows, sys.argv[1])"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / f"{seed}.svg")],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()


def test_importing_the_plots_loads_no_plotting_package():
    code = "import sys, hideaway.report.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_drawing_leaves_the_backend_of_a_notebook_alone(tmp_path):
    code = (
        "import sys; from hideaway.report.plots import exposed_plot; exposed_plot([], sys.argv[1]);"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "none.png")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    assert (tmp_path / "none.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("draw", [draw_money, draw_exposed, draw_timeline])
def test_a_wrong_ending_and_an_unwritable_folder_are_one_sentence(tmp_path, draw):
    with pytest.raises(InputError, match=r"must end in .png or .svg"):
        draw(tmp_path / "picture.bmp")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        draw(tmp_path / "file" / "picture.svg")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": None}, "row 2 has model None; it must be a non-empty name"),
        ({"baseline": ""}, "row 2 has baseline ''"),
        ({"block_size": 0}, "row 2 has block_size 0; it must be a whole number from 1"),
        ({"concurrency": True}, "row 2 has concurrency True"),
        ({"concurrency": 1.5}, "row 2 has concurrency 1.5"),
    ],
)
def test_a_row_that_names_no_cell_is_refused(tmp_path, change, sentence):
    rows = [row("B0", 1, 10), row("B1", 1, 10) | change]
    for refuse in (order_verdicts, lambda each: money_plot(each, tmp_path / "a.png")):
        with pytest.raises(InputError, match=sentence):
            refuse(rows)
    assert list(tmp_path.iterdir()) == []


def test_gantt_rows_clip_to_the_window_and_keep_overlapping_copies_apart():
    rows = gantt_rows(one_visit(), 0.001, 0.006)
    assert [row.label for row in rows] == [
        "compute",
        "link, on-demand",
        "issue thread",
        "sequence 0",
        "sequence 1",
    ]
    compute, link = rows[0], rows[1]
    assert [(bar.start_seconds, bar.end_seconds, bar.kind) for bar in compute.bars] == [
        (0.001, 0.004, "draft"),
        (0.004, 0.005, "experts"),
        (0.005, 0.006, "wait"),
    ]
    assert link.num_lanes == 2
    assert [bar.lane for bar in link.bars] == [0, 1]
    assert exposed_share_of_window(rows, 0.001, 0.006) == pytest.approx(0.001 / 0.005, abs=1e-12)


def test_waiting_inside_an_experts_phase_lies_on_top_of_it_in_one_lane():
    timeline = Timeline()
    timeline.add(0.0, 0.5, "compute", "attention", 1, (), 0)
    timeline.add(0.5, 2.0, "compute", "experts", 1, (), 0, 0b11)
    timeline.add(0.75, 1.0, "compute", "wait", 1, (), 0)
    timeline.add(1.5, 2.0, "compute", "wait", 1, (), 0)
    (compute,) = gantt_rows(timeline, 0.0, 2.0)
    assert compute.num_lanes == 1
    assert [(bar.kind, bar.depth) for bar in compute.bars] == [
        ("attention", 0),
        ("experts", 0),
        ("wait", 1),
        ("wait", 1),
    ]
    assert exposed_share_of_window([compute], 0.0, 2.0) == 0.375


@pytest.mark.parametrize(
    "window", [(0.5, 0.5), (0.5, 0.1), (-1.0, 1.0), (0.0, float("inf")), (0.0, float("nan"))]
)
def test_an_empty_or_endless_window_is_refused(tmp_path, window):
    with pytest.raises(InputError, match="start_seconds must be at least 0 and below end_seconds"):
        timeline_plot(one_visit(), tmp_path / "a.png", start_seconds=window[0], end_seconds=window[1])


def test_a_window_without_records_and_one_with_many_sequences_are_drawn(tmp_path):
    timeline = one_visit()
    timeline_plot(timeline, tmp_path / "none.png", start_seconds=5.0, end_seconds=6.0)
    for seq_id in range(40):
        timeline.add(0.0, 1.0, "sequence", "$waiting$", 0, (seq_id,))
    timeline_plot(timeline, tmp_path / "many.svg", start_seconds=0.0, end_seconds=3.0)
    assert (tmp_path / "none.png").read_bytes().startswith(PNG)
    assert (tmp_path / "many.svg").read_bytes().startswith(SVG)


numbers = st.none() | st.booleans() | st.floats() | st.floats(0, 1e4) | st.integers(-1, 10**6)
random_rows = st.lists(
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["a/b", "$c_{", "m" * 60]),
            "baseline": st.sampled_from([*BASELINE_ORDER, "B1 + $x", "_hidden"]),
            "block_size": st.sampled_from([1, 8, 16]),
            "concurrency": st.integers(1, 40),
        },
        optional={
            "output_tokens_per_second": numbers,
            "per_round_latency_seconds": numbers,
            "exposed_seconds_per_round": numbers,
            "cost_terms": st.none() | st.dictionaries(st.just("exposed_seconds_per_round"), numbers),
            "status": st.sampled_from([None, "UNAVAILABLE_CAPACITY", "BLOCKED_UNTIL_2D_SCHEDULER"]),
            "profile": st.just("p"),
        },
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(rows=random_rows)
def test_random_rows_always_get_a_verdict_a_cell(rows):
    verdicts = order_verdicts(rows)
    cells = {(row["model"], row["block_size"], row["concurrency"]) for row in rows}
    assert [(each.model, each.block_size, each.concurrency) for each in verdicts] == sorted(cells)
    for verdict in verdicts:
        assert (verdict.holds is True) == (verdict.links == (True, True, True))
        assert not set(verdict.broken) & set(verdict.unknown)
    order_summary(verdicts)


@settings(max_examples=4, deadline=None)
@given(rows=random_rows)
def test_random_rows_are_always_drawn(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("plots")
    money_plot(rows, folder / "money.png")
    exposed_plot(rows, folder / "exposed.png")
    assert sorted(os.listdir(folder)) == ["exposed.png", "money.png"]

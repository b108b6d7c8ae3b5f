"""Every published value of the shipped profiles, computed again from the published rows beside them."""

import csv
import math
import re
import statistics

import numpy as np
import pytest

from hideaway.sim.inputs.models import load_model
from hideaway.sim.inputs.profiles import builtin_profile_names, load_profile
from hideaway.sim.inputs.profiles.load import PROFILE_FOLDER

with (PROFILE_FOLDER / "published_measurements.csv").open(newline="") as stream:
    ROWS = {row["id"]: row for row in csv.DictReader(stream)}

GB, US, MS, TERA, MIB = 1e9, 1e-6, 1e-3, 1e12, 2**20
PREFETCHES = 768
GPT_OSS_EXPERT_BYTES = 13_236_480
SSD_LATENCY_SECONDS = 100e-6
QWEN = load_model("Qwen3-30B-A3B")
NORMAL_P90 = 1.2815515655446004
MEDIAN_ERROR_FACTOR = math.sqrt(math.pi / 2)  # standard error of a median over that of a mean, normal samples


def row(key):
    return float(ROWS[key]["value"])


def mean_and_error(keys, scale):
    values = [row(key) * scale for key in keys]
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def line_through_copies(keys):
    """Return latency and bandwidth of time = latency + bytes / bandwidth over 1, 4, 16 MiB, relative errors."""
    sizes = np.array([1, 4, 16]) * MIB
    seconds = sizes / (np.array([row(key) for key in keys]) * GB)
    design = np.column_stack([np.ones(3), sizes]) / seconds[:, None]
    latency, slope = np.linalg.lstsq(design, np.ones(3), rcond=None)[0]
    residuals = design @ [latency, slope] - 1
    return latency, 1 / slope, np.abs(residuals).max()


def median_error(p50, p90, iterations=200):
    return MEDIAN_ERROR_FACTOR * (p90 - p50) / NORMAL_P90 / math.sqrt(iterations)


def expert_fit():
    """Return (fixed, per expert, per row) of the fused-MoE times, their errors and the extreme residuals."""
    tokens = 2 ** np.arange(12)
    seconds = np.array([row(f"M{190 + index}") for index in range(12)]) * US
    rows = QWEN.top_k * tokens
    experts = np.minimum(rows, QWEN.num_experts)
    design = np.column_stack([np.ones(12), experts, rows]) / seconds[:, None]
    solution = np.linalg.lstsq(design, np.ones(12), rcond=None)[0]
    residuals = design @ solution - 1
    variance = residuals @ residuals / (12 - 3)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return solution, errors, (residuals.min(), residuals.max())


(FIXED, PER_EXPERT, PER_ROW), (FIXED_ERROR, PER_EXPERT_ERROR, PER_ROW_ERROR), RESIDUALS = expert_fit()
EXPERT_FLOPS = QWEN.expert_flops_per_row / PER_ROW
PINNED_LATENCY, _, PINNED_RESIDUAL = line_through_copies(["M158", "M162", "M166"])
PAGEABLE_LATENCY, PAGEABLE_RATE, _ = line_through_copies(["M157", "M161", "M165"])
CALL = row("M026") * US / PREFETCHES
BATCH_TRANSFER = (row("M029") * US - CALL) / PREFETCHES
SSD_RATE = GPT_OSS_EXPERT_BYTES / (row("M020") * MS - SSD_LATENCY_SECONDS)
PRO_FLOPS = mean_and_error(["M242", "M243"], TERA)
PROJECTION_BYTES = 2048 * 768 * 4.5 / 8
WSL2_RATE = mean_and_error(["M125", "M131"], GB)


def expert_launch(read_rate):
    return PER_EXPERT - QWEN.expert_bytes / read_rate


EXPERT_PART = {
    "expert.group_launch_seconds": (FIXED, FIXED_ERROR),
    "compute.expert_flops_per_second": (EXPERT_FLOPS, EXPERT_FLOPS * PER_ROW_ERROR / PER_ROW),
}
NATIVE_HOST = {
    "link.latency_seconds": (PINNED_LATENCY, None),
    "link.pageable_bytes_per_second": (PAGEABLE_RATE, None),
    "link.pageable_issue_seconds": (PAGEABLE_LATENCY, None),
    "issue.batch_seconds": (CALL, None),
}
EXPECTED = {
    "rtx-pro-6000": EXPERT_PART
    | NATIVE_HOST
    | {
        "link.h2d_bytes_per_second": mean_and_error(["M001", "M002", "M003"], GB),
        "issue.seconds_per_call": (CALL, median_error(row("M026"), row("M027")) * US / PREFETCHES),
        "issue.batch_seconds_per_transfer": (
            BATCH_TRANSFER,
            median_error(row("M029"), row("M030")) * US / PREFETCHES,
        ),
        "memory.device_bytes": (96 * 2**30, None),
        "memory.read_bytes_per_second": (row("M155") * GB, None),
        "compute.flops_per_second": PRO_FLOPS,
        "expert.launch_seconds": (expert_launch(row("M155") * GB), PER_EXPERT_ERROR),
        "contention.compute_slowdown": (mean_and_error(["M001", "M002", "M003"], 1)[0] / row("M155"), None),
        "host.memory_bytes_per_second": (row("M076") * GB, None),
        "ssd.read_bytes_per_second": (SSD_RATE, None),
    },
    "rtx-5090": EXPERT_PART
    | NATIVE_HOST
    | {
        "link.h2d_bytes_per_second": mean_and_error([f"M{number}" for number in range(101, 109)], GB),
        "issue.seconds_per_call": (CALL, None),
        "issue.batch_seconds_per_transfer": (BATCH_TRANSFER, None),
        "memory.device_bytes": (32 * 2**30, None),
        "memory.read_bytes_per_second": (row("M154") * GB, None),
        "compute.flops_per_second": (PRO_FLOPS[0] / 2 * 170 / 188, None),
        "expert.launch_seconds": (expert_launch(row("M154") * GB), PER_EXPERT_ERROR),
        "contention.compute_slowdown": (
            statistics.mean(row(f"M{number}") for number in range(101, 109)) / row("M154"),
            None,
        ),
        "host.memory_bytes_per_second": (row("M139") * GB, None),
        "ssd.read_bytes_per_second": (SSD_RATE, None),
    },
    "rtx-5090-wsl2": EXPERT_PART
    | {
        "link.h2d_bytes_per_second": WSL2_RATE,
        "link.latency_seconds": (
            PROJECTION_BYTES / (row("M127") * GB) - PROJECTION_BYTES / WSL2_RATE[0],
            None,
        ),
        "link.pageable_bytes_per_second": (row("M128") * GB, None),
        "issue.seconds_per_call": (row("M129") * US, None),
        "issue.batch_seconds": (row("M129") * US, None),
        "issue.batch_seconds_per_transfer": (BATCH_TRANSFER * row("M129") * US / CALL, None),
        "host.round_trip_seconds": (row("M132") * US, None),
        "memory.device_bytes": (32 * 2**30, None),
        "memory.read_bytes_per_second": (row("M153") * GB, None),
        "compute.flops_per_second": (PRO_FLOPS[0] / 2 * 170 / 188, None),
        "expert.launch_seconds": (expert_launch(row("M153") * GB), PER_EXPERT_ERROR),
        "contention.compute_slowdown": (WSL2_RATE[0] / (row("M153") * GB), None),
        "host.memory_bytes_per_second": (row("M139") * GB, None),
        "ssd.read_bytes_per_second": (SSD_RATE, None),
    },
}
CASES = [(profile, name) for profile, values in EXPECTED.items() for name in values]
SHIPPED_DIGITS = 3e-3  # values are written with at least three significant digits


@pytest.mark.parametrize(("profile", "name"), CASES)
def test_a_shipped_value_follows_from_the_published_rows(profile, name):
    value, error = EXPECTED[profile][name]
    parameter = load_profile(profile).parameters[name]
    assert parameter.value == pytest.approx(value, rel=SHIPPED_DIGITS)
    if error is None:
        assert parameter.standard_error is None
    else:
        assert parameter.standard_error == pytest.approx(error, rel=SHIPPED_DIGITS * 2)


@pytest.mark.parametrize("profile", builtin_profile_names())
def test_every_published_parameter_is_computed_again(profile):
    published = {
        name for name, each in load_profile(profile).parameters.items() if each.origin == "published"
    }
    assert published <= set(EXPECTED[profile])


@pytest.mark.parametrize("profile", builtin_profile_names())
def test_every_address_in_a_published_source_is_that_of_a_row(profile):
    known = " ".join(each["source"] for each in ROWS.values())
    for name, parameter in load_profile(profile).parameters.items():
        addresses = re.findall(r"https://[^\s),;]+|[\w.-]+/[\w.-]+ [\w./-]+@[0-9a-f]{40}", parameter.source)
        if parameter.origin == "published" and name != "memory.device_bytes":
            assert addresses, name
        for address in addresses:
            assert address in known or name == "memory.device_bytes", (name, address)


def test_the_line_fits_the_pinned_copies_as_the_source_says():
    assert PINNED_RESIDUAL < 2e-5


def test_the_expert_fit_has_the_residuals_that_the_source_states():
    assert RESIDUALS == pytest.approx((-0.23, 0.28), abs=0.005)


def test_up_to_sixteen_tokens_the_kernel_reads_eight_distinct_experts_a_token():
    """Support for counting min(8 tokens, 128) experts: with it the first five times lie on one line."""
    experts = QWEN.top_k * 2 ** np.arange(5)
    seconds = np.array([row(f"M{190 + index}") for index in range(5)])
    design = np.column_stack([np.ones(5), experts])
    fitted = design @ np.linalg.lstsq(design, seconds, rcond=None)[0]
    assert np.abs(fitted / seconds - 1).max() < 0.025


def test_nothing_rests_on_claims_illustrations_or_specifications():
    assert {each["kind"] for each in ROWS.values()} <= {"measured", "derived"}


def test_rows_carry_their_source_and_no_local_path():
    for each in ROWS.values():
        assert each["source"].startswith("https://") or "@" in each["source"]
    text = "".join(path.read_text() for path in PROFILE_FOLDER.iterdir())
    assert not re.search(r"/(home|root|work|tmp|Users)/", text)
    assert not re.search(r"\bM\d{3}\b", "".join(path.read_text() for path in PROFILE_FOLDER.glob("*.json")))

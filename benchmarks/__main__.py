"""Run the benchmarks named on the command line, or all of them, and print their tables."""

from __future__ import annotations

import sys

from benchmarks import devices, fp4_experts, matrix_time, triton_experts, visits

BENCHMARKS = {
    "visits": visits.report,
    "matrix": matrix_time.report,
    "fp4-experts": fp4_experts.report,
    "devices": devices.report,
    "triton-experts": triton_experts.report,
}


def main(names: list[str]) -> int:
    """Return 0 when every named benchmark ran."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or list(BENCHMARKS):
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

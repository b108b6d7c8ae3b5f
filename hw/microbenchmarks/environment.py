"""Where a measurement was made: what two files must share to be pooled, and what a reader wants to know.

Nothing that names the machine or its user: no host name, no path.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hideaway.hw.microbenchmarks.disturbance import clock_mhz
from hideaway.hw.microbenchmarks.rig import Rig

_INSTRUCTIONS = (
    "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "asimd",
    "bf16", "sve",
)  # fmt: skip
_LINK_KINDS = {"disk": "disk", "paced-memory": "emulated link", "cuda": "cuda"}
"""What devices say they are, for files that opened none."""
_LINK_FACTS = (
    "kind",
    "direct",
    "fallback_reason",
    "set_bytes_per_second",
    "set_latency_seconds",
    "pinned",
    "retries",
)


def environment_of(rig: Rig, *, seed: int, version: str) -> dict[str, Any]:
    """Return the facts of the machine and of what was opened, as they are now.

    Parameters
    ----------
    version : str
        Of this program.
    """
    subject, options = rig.subject, rig.options
    link = {key: value for key, value in rig.device_facts().items() if key in _LINK_FACTS}
    accelerator = _accelerator() if options.name == "cuda" else {}
    file_system = rig.store_file_system()
    return {
        "device": accelerator.get("name", f"{_LINK_KINDS[options.name]} on {processor_name()}"),
        "driver": accelerator.get("driver", f"{platform.system()} {platform.release()}"),
        "clocks_mhz": accelerator.get("clocks_mhz", _host_clock()),
        "seed": seed,
        "version": version,
        "processor": processor_name(),
        "machine": platform.machine(),
        "instructions": _instructions(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "governor": _governor(),
        "memory_bytes": _memory_bytes(),
        "last_level_cache_bytes": subject.cache_bytes,
        "threads": options.threads,
        "openmp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "not set"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda if options.name == "cuda" else None,
        "expert_kernel": rig.expert_kernel(),
        "dense_dtype": "float32",
        "link": link or {"kind": _LINK_KINDS[options.name]},
        "file_system": file_system,
        "model": subject.name,
        "layers": subject.num_layers,
        "share_of_layers": subject.share,
        "expert_format": subject.spec.expert_format,
        "expert_bytes": subject.spec.expert_bytes,
    }


def load_average() -> list[float]:
    """Return the load averages of 1, 5 and 15 minutes, empty where the system has none."""
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else []


def utc_text(unix_seconds: float) -> str:
    """Return a time as ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_seconds))


def processor_name() -> str:
    """Return the processor's name as the system states it."""
    return _cpu_line("model name") or platform.processor() or platform.machine() or "unknown processor"


def _host_clock() -> dict[str, float]:
    """Return the highest clock the processor may take, or the present one where only that is stated."""
    stated = _number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    mhz = stated / 1000 if stated is not None else clock_mhz()
    return {} if mhz is None else {"processor": mhz}


def _governor() -> str | None:
    try:
        return (
            Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="ascii").strip()
        )
    except OSError:
        return None


def _instructions() -> list[str]:
    flags = (_cpu_line("flags") or _cpu_line("Features") or "").split()
    return [name for name in _INSTRUCTIONS if name in flags]


def _cpu_line(key: str) -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)
    except OSError:
        return None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _number(path: str) -> float | None:
    try:
        return float(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _accelerator() -> dict[str, Any]:
    """Return name, driver and highest clocks of the CUDA device; the last two as far as NVML is installed."""
    found: dict[str, Any] = {"name": torch.cuda.get_device_name(), "driver": None, "clocks_mhz": {}}
    try:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
            driver = pynvml.nvmlSystemGetDriverVersion()
            found["driver"] = driver.decode() if isinstance(driver, bytes) else str(driver)
            found["clocks_mhz"] = {
                "sm": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM),
                "memory": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            }
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        pass  # NVML is not installed or does not answer: driver and clocks stay unknown
    return found

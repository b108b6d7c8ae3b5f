"""hideaway tells whether expert transfers hide behind draft, router and verify.

The public names are loaded on first use (PEP 562), so that `import hideaway.sim` stays cheap and needs
neither plotting nor torch. A request's path starts in `hideaway.sim.scheduler`; the command line in
`hideaway.main`.
"""

from __future__ import annotations

import importlib
from typing import Any

from hideaway.version import __version__

_PUBLIC: dict[str, str] = {
    "evaluate_hide_inequality": "hideaway.sim.contract",
    "REQUIRED_METRICS": "hideaway.sim.contract",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Return a public name, importing the module that defines it on first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hideaway' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)

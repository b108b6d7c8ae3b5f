"""A scenario: everything that decides a run, as one frozen value, a small TOML file or command-line flags.

`fields.py` holds the value and its limits, `toml_file.py` the file, `baselines.py` what B0 to B3 stand for.
`hideaway.sim.world.simulate` runs one.
"""

from hideaway.sim.inputs.scenario.baselines import BASELINES, Baseline
from hideaway.sim.inputs.scenario.fields import Scenario, scenario_field_help
from hideaway.sim.inputs.scenario.toml_file import load_scenario, scenario_from_mapping

__all__ = [
    "BASELINES",
    "Baseline",
    "Scenario",
    "load_scenario",
    "scenario_field_help",
    "scenario_from_mapping",
]

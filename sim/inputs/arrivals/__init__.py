"""Which requests arrive, when, and how long they are: shipped extracts of public traces, and files of their formats.

Start with `load.py`; what a source holds is in `source.py`, the formats of files in `csv_formats.py` and
`json_formats.py`.
"""

from hideaway.sim.inputs.arrivals.load import arrival_source_names, load_arrival_source, load_arrivals
from hideaway.sim.inputs.arrivals.source import ArrivalSource, RequestSpec

__all__ = ["ArrivalSource", "RequestSpec", "arrival_source_names", "load_arrival_source", "load_arrivals"]

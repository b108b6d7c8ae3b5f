"""Inputs that are malformed by construction: valid files and flags with one thing spoilt, drawn from a seed.

`case.py` says what a case is and how one is run, `sound.py` holds the valid inputs, `spoilt_json.py`,
`spoilt_tables.py`, `spoilt_routing.py`, `spoilt_scenarios.py`, `spoilt_flags.py` and `spoilt_files.py` spoil them, and
`draw.py` deals out any number of distinct cases.
"""

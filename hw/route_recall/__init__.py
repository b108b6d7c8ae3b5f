"""How well experts can be guessed ahead on a real model: recall, precision, coverage, waste, rejected rows.

The model runs resident: what a router chooses does not depend on where experts lie. Read `rounds.py` first (what one
round leaves to be judged), then `served.py` (the model, watched), `drafting.py` (where drafts come from), `play.py`
(rounds over texts), `fitted.py` (what is learnt on other texts beforehand), `guesses.py` (every predictor's guess),
`scores.py`, `positions.py`, `rejected.py`, `replay.py` (what is counted), `measure.py` (all of it in order) and
`preset.py` (the result as a predictor of the simulator).
"""

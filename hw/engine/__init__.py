"""The real engine: executes the commands of the simulator's own scheduler on real experts with real transfers.

Read `run.py` first (one run from a scenario), then `engine.py` (the loop), `forward.py` and `visitor.py` (one layer
visit) and `transfers.py` (experts on their way). None of these knows what is computed or what the rows hold: that
stands behind `work.py` and `content.py`.

A synthetic model is `torch_work.py` over the traces of `replayed.py`. A real one is `model_work.py` over the tokens of
`generated.py`; `open_model.py` opens it, `run_model.py` runs it, `lossless.py` checks it.
"""

"""How the shipped pair was trained, from corpus to figures, on a CPU; needed only to train it or another again.

Read `corpus.py` (the text), `target.py` (the target), `export.py` (its files), `drafter.py` (the drafter) and
`evaluate.py` (the figures in the pair's README): each is a command, `python -m hideaway.hw.training.NAME --help`.
`loop.py` is the loop of both trainings.
"""

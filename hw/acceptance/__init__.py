"""Which drafted tokens are kept: pure rules over logits, with no state of the engine.

`greedy.py` keeps what the target's argmax confirms; `sampled.py` keeps drafts so that what is emitted follows the
target's distribution, as shaped by `sampling.py`; `ties.py` tells rounding from true differences between two paths.
"""

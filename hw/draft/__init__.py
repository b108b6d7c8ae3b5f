"""A DFlash block-diffusion drafter: proposes a whole block of tokens in one forward, from features of the target.

Read `drafter.py` first (what goes in, what comes out), then `config.py` (the published `config.json`), `layers.py` and
`attention.py` (one draft layer), `cache.py` (keys and values of committed tokens while serving) and `checkpoint.py`
(loading and saving). Which of the drafted tokens are kept is decided in `hideaway.hw.acceptance`.
"""

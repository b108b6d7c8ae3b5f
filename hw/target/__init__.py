"""A real target: a Hugging Face checkpoint run by transformers' own model code, its routed experts elsewhere.

Read `model.py` first (what a forward takes and gives), then `families.py` (which models), `load.py` (from a folder to
a model without experts), `attention.py` (attention over our own caches), `row_by_row.py` (results that do not depend on
how many rows are computed together), `predict.py` (experts guessed ahead), `prompts.py` (text in, tokens out) and
`resident.py` (the plain model, for checks). Who computes the experts, and when, is
`hideaway.hw.engine`'s business.
"""

"""Eviction: which resident experts of a layer make room. Each rule is one file; the verbs are in `base`."""

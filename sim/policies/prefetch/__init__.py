"""Prefetch: which experts to copy before a layer asks for them. Each rule is one file; the verbs are in `base`."""

"""Admission: which drafted sequences are verified in this iteration. Each rule is one file."""

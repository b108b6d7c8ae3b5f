"""The version of hideaway, and nothing else, so that packaging can read it without importing the rest."""

__version__ = "0.1.0"

"""Errors that speak to the user: each says what was given, what is allowed and what to do."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input from outside (a flag, a file, an argument); the command line prints it and exits with code 2."""


class HideawayError(RuntimeError):
    """A run that cannot go on for a reason that is not the caller's argument."""


class IllegalEventError(HideawayError):
    """An event that cannot happen in the scheduler's present state."""

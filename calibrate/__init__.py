"""From measurements to cost parameters with errors."""

"""Tests mirror the folders of the product; what several of them share is in `strategies` and `machine`."""

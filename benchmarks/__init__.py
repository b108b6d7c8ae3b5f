"""Speed and memory, as ratios taken in one run: `python -m benchmarks`. Figures are kept in README.md here."""

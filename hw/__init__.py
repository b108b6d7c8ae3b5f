"""Real FP4 experts, devices, microbenchmarks and the real engine; the only place that uses torch."""

"""Many runs in one go: the baseline matrix, headroom."""

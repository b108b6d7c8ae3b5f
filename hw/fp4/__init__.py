"""FP4 number formats and the SwiGLU experts stored in them."""

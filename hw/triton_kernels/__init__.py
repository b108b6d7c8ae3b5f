"""Expert kernels for CUDA in Triton, over a pool of slots; imports neither Triton nor torch until one is used.

`triton_experts.py` is what an engine calls. It picks tiles (`tiles.py`) and launches the kernels of
`expert_kernels.py` and, for FP4 x FP4, `quantise_rows.py`, with the constants of `variants.py`. `offline.py` compiles
any of them for a GPU that is not here.
"""

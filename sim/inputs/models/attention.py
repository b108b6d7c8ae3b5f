"""The attention of a layer by kind: its weights, the bytes of cache it keeps and the work of one query row.

| kind | cache of one sequence and layer |
|---|---|
| full | keys and values of every token: 2 · kv_heads · head_dim · 2 bytes a token |
| sliding | the same for the last `sliding_window_tokens` tokens |
| mla | latent and rotary key of a token: (kv_rank + rope_dim) · 2 bytes (DeepSeek-V2, section 2.1) |
| linear | a constant state: v_heads · k_dim · v_dim float32, and the convolution's last inputs in bf16 |

Linear attention is the gated delta rule (Yang et al., "Gated Delta Networks", arXiv 2412.06464) with the
projections and convolution of Qwen3-Next and Qwen3.5. Next: `architecture.py`, which puts layers together.
"""

from __future__ import annotations

from dataclasses import dataclass

from hideaway.sim.inputs.bounded import bounded_whole, flag, one_of
from hideaway.sim.inputs.models.weight_formats import BF16_BYTES, FLOAT32_BYTES, Matrix

LAYER_KINDS = ("full", "sliding", "mla", "linear")
MAX_HEADS = 2**14
MAX_WIDTH = 2**20
FLOPS_PER_PRODUCT = 2


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Attention with keys and values shared by groups of query heads (kinds full and sliding).

    Parameters
    ----------
    bias, sinks, output_gate
        Biases on q, k, v and o; a learnt sink for each head; a gate as wide as the queries.
    qk_norm
        "none", "head" (one norm of head_dim weights for q and one for k) or "row" (over all heads at once).
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    bias: bool = False
    sinks: bool = False
    output_gate: bool = False
    qk_norm: str = "none"

    def __post_init__(self) -> None:
        bounded_whole("grouped_attention.num_heads", self.num_heads, 1, MAX_HEADS)
        bounded_whole("grouped_attention.num_kv_heads", self.num_kv_heads, 1, self.num_heads)
        bounded_whole("grouped_attention.head_dim", self.head_dim, 1, MAX_HEADS)
        for name in ("bias", "sinks", "output_gate"):
            flag(f"grouped_attention.{name}", getattr(self, name))
        one_of("grouped_attention.qk_norm", self.qk_norm, ("none", "head", "row"))

    @property
    def query_width(self) -> int:
        """Width of the queries of all heads."""
        return self.num_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of the keys (or the values) of all heads."""
        return self.num_kv_heads * self.head_dim

    def input_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return q (with its gate, if any), k and v."""
        query = self.query_width * (2 if self.output_gate else 1)
        return ((query, hidden_size), (self.kv_width, hidden_size), (self.kv_width, hidden_size))

    def output_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return o."""
        return ((hidden_size, self.query_width),)

    def vector_parameters(self, hidden_size: int) -> int:
        """Return the number of biases, sinks and norm weights."""
        biases = self.query_width + 2 * self.kv_width + hidden_size if self.bias else 0
        norms = {"none": 0, "head": 2 * self.head_dim, "row": self.query_width + self.kv_width}[self.qk_norm]
        return biases + norms + (self.num_heads if self.sinks else 0)

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of keys and values of one token."""
        return 2 * self.kv_width * BF16_BYTES

    @property
    def flops_per_context_token(self) -> int:
        """Work of one query row for each token it attends to: scores and weighted sum."""
        return 2 * FLOPS_PER_PRODUCT * self.query_width


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (kind mla); `query_rank` is None where queries are not compressed."""

    num_heads: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    query_rank: int | None = None

    def __post_init__(self) -> None:
        bounded_whole("latent_attention.num_heads", self.num_heads, 1, MAX_HEADS)
        for name in ("kv_rank", "nope_dim", "rope_dim", "value_dim"):
            bounded_whole(f"latent_attention.{name}", getattr(self, name), 1, MAX_WIDTH)
        if self.query_rank is not None:
            bounded_whole("latent_attention.query_rank", self.query_rank, 1, MAX_WIDTH)

    def input_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return the query projection (one, or down and up), the latent's down and up projections."""
        queries = self.num_heads * (self.nope_dim + self.rope_dim)
        query: tuple[Matrix, ...] = ((queries, hidden_size),)
        if self.query_rank is not None:
            query = ((self.query_rank, hidden_size), (queries, self.query_rank))
        down = (self.kv_rank + self.rope_dim, hidden_size)
        up = (self.num_heads * (self.nope_dim + self.value_dim), self.kv_rank)
        return (*query, down, up)

    def output_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return o."""
        return ((hidden_size, self.num_heads * self.value_dim),)

    def vector_parameters(self, hidden_size: int) -> int:
        """Return the number of norm weights of the latents."""
        return self.kv_rank + (self.query_rank or 0)

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of the latent and the rotary key of one token."""
        return (self.kv_rank + self.rope_dim) * BF16_BYTES

    @property
    def flops_per_context_token(self) -> int:
        """Work of one query row for each token, the up projections absorbed into query and output."""
        return FLOPS_PER_PRODUCT * self.num_heads * (2 * self.kv_rank + self.rope_dim)


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated delta rule with a short convolution (kind linear)."""

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int

    def __post_init__(self) -> None:
        for name in ("num_key_heads", "num_value_heads", "key_dim", "value_dim"):
            bounded_whole(f"linear_attention.{name}", getattr(self, name), 1, MAX_HEADS)
        bounded_whole("linear_attention.conv_kernel", self.conv_kernel, 1, 1024)

    @property
    def _convolved_width(self) -> int:
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim

    def input_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return the projections of q, k and v together, of the gate z, and of the decays a and b."""
        gate = self.num_value_heads * self.value_dim
        decay = (self.num_value_heads, hidden_size)
        return ((self._convolved_width, hidden_size), (gate, hidden_size), decay, decay)

    def output_matrices(self, hidden_size: int) -> tuple[Matrix, ...]:
        """Return the output projection."""
        return ((hidden_size, self.num_value_heads * self.value_dim),)

    def vector_parameters(self, hidden_size: int) -> int:
        """Return the weights of the convolution, the decays' two vectors and the norm."""
        return self._convolved_width * self.conv_kernel + 2 * self.num_value_heads + self.value_dim

    @property
    def state_bytes(self) -> int:
        """Bytes of the recurrent state (float32) and of the convolution's window (bf16) of one sequence."""
        recurrent = self.num_value_heads * self.key_dim * self.value_dim * FLOAT32_BYTES
        return recurrent + (self.conv_kernel - 1) * self._convolved_width * BF16_BYTES

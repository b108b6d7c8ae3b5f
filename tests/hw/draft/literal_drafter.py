"""A drafter written out row by row in float64 numpy, from the description alone: slow, and without any batching."""

from __future__ import annotations

import numpy as np

from hideaway.hw.draft.config import DrafterConfig


def norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x) + eps) * weight


def turn(head: np.ndarray, position: int, theta: float) -> np.ndarray:
    half = len(head) // 2
    turned = np.empty_like(head)
    for i in range(half):
        angle = position * theta ** (-2 * i / len(head))
        turned[i] = head[i] * np.cos(angle) - head[i + half] * np.sin(angle)
        turned[i + half] = head[i + half] * np.cos(angle) + head[i] * np.sin(angle)
    return turned


def literal_hidden(
    config: DrafterConfig, tensors: dict[str, np.ndarray], features: np.ndarray, block: np.ndarray
) -> np.ndarray:
    """Return the hidden states of a block that follows the tokens with these features, (rows, hidden)."""
    w = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    eps, width, n = config.rms_norm_eps, config.head_dim, len(features)
    context = [
        norm(w["fc.weight"] @ row, w["hidden_norm.weight"], eps) for row in features.astype(np.float64)
    ]
    rows = [row for row in block.astype(np.float64)]

    def heads(layer: str, kind: str, x: np.ndarray, position: int | None) -> list[np.ndarray]:
        name = f"{layer}.self_attn.{kind}_proj"
        flat = w[f"{name}.weight"] @ x + w.get(f"{name}.bias", 0)
        split = list(flat.reshape(-1, width))
        if position is None:
            return split
        scale = w[f"{layer}.self_attn.{kind}_norm.weight"]
        return [turn(norm(head, scale, eps), position, config.rope.rope_theta) for head in split]

    for index in range(config.num_hidden_layers):
        layer, window = f"layers.{index}", config.window(index)
        inner = [norm(row, w[f"{layer}.input_layernorm.weight"], eps) for row in rows]
        seen = context + inner
        keys = [heads(layer, "k", x, position) for position, x in enumerate(seen)]
        values = [heads(layer, "v", x, None) for x in seen]
        after = []
        for i, row in enumerate(rows):
            position, gathered = n + i, []
            for h, query in enumerate(heads(layer, "q", inner[i], n + i)):
                group = h * config.num_key_value_heads // config.num_attention_heads
                visible = [
                    j
                    for j in range(len(seen))
                    if (window is None or abs(j - position) < window)
                    and not (config.causal(index) and j > position)
                ]
                shares = np.exp([query @ keys[j][group] / np.sqrt(width) for j in visible])
                shares /= shares.sum()
                gathered.append(sum(s * values[j][group] for s, j in zip(shares, visible, strict=True)))
            name = f"{layer}.self_attn.o_proj"
            x = row + w[f"{name}.weight"] @ np.concatenate(gathered) + w.get(f"{name}.bias", 0)
            y = norm(x, w[f"{layer}.post_attention_layernorm.weight"], eps)
            gate, up = w[f"{layer}.mlp.gate_proj.weight"] @ y, w[f"{layer}.mlp.up_proj.weight"] @ y
            after.append(x + w[f"{layer}.mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up))
        rows = after
    return np.stack([norm(row, w["norm.weight"], eps) for row in rows])

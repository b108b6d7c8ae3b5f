"""Text that the target writes itself: many continuations at once, greedy or sampled.

Drafters are trained and judged on it, because what they draft in service is the target's text and not the corpus's.
"""

from __future__ import annotations

import torch
from transformers import DynamicCache, Qwen3MoeForCausalLM

from hideaway.hw.training.corpus import BOS


@torch.no_grad()
def continuations(
    model: Qwen3MoeForCausalLM,
    prompts: torch.Tensor,
    *,
    num_tokens: int,
    temperatures: torch.Tensor,
    generator: torch.Generator,
) -> torch.Tensor:
    """Return the prompts and what follows them, (texts, prompt tokens + num_tokens).

    An end of text does not stop a text: the beginning of a new file follows it, as in the corpus.

    Parameters
    ----------
    model
        The target.
    prompts
        (texts, prompt tokens) token ids.
    num_tokens
        Tokens to append to each.
    temperatures
        One of each text, (texts,); 0 is greedy.
    generator
        Draws the samples.
    """
    cache = DynamicCache(config=model.config)
    text, last = prompts, prompts
    for _ in range(num_tokens):
        out = model.model(input_ids=last, cache=cache, use_cache=True)
        logits = model.lm_head(out.last_hidden_state[:, -1])
        last = sampled(logits, temperatures, generator)[:, None]
        text = torch.cat([text, last], dim=1)
    return text


def sampled(logits: torch.Tensor, temperatures: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return one token for each row of logits (rows, vocab), at the row's temperature; ids beyond BOS + 1 never."""
    allowed = logits[:, : BOS + 2]
    noise = torch.empty_like(allowed).exponential_(generator=generator).log()
    # argmax of logits / T + Gumbel noise is a sample of softmax(logits / T); T = 0 leaves the argmax of the logits.
    return (allowed - temperatures[:, None] * noise).argmax(dim=-1)

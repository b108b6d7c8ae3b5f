"""The model families that run as real targets, and what differs between them in transformers' code (version 5.24).

In all four a layer with routed experts is `layer.mlp`, whose router returns (logits, weights, expert ids) and whose
`experts(rows, ids, weights)` returns the weighted sum. That call is where ours takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hideaway.sim.errors import InputError
from hideaway.sim.number_checks import shown

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture.

    Parameters
    ----------
    name : str
        `model_type` of its config.
    classes : str
        What its classes in transformers are called before `Config` and `ForCausalLM`.
    router : str
        Attribute of the router in `layer.mlp`.
    renamed : tuple of (old, new)
        Parts of the names of stored tensors that transformers calls otherwise.
    """

    name: str
    classes: str
    router: str = "gate"
    renamed: tuple[tuple[str, str], ...] = ()

    def stored_name(self, name: str, stored: Mapping[str, object]) -> str:
        """Return what a checkpoint calls the parameter that transformers calls `name`."""
        if name in stored:
            return name
        for old, new in self.renamed:
            name = name.replace(new, old)
        return name


FAMILIES = {
    family.name: family
    for family in (
        Family("gpt_oss", "GptOss", router="router"),
        Family("qwen3_moe", "Qwen3Moe"),
        Family("olmoe", "Olmoe"),
        Family("mixtral", "Mixtral", renamed=((".block_sparse_moe.", ".mlp."),)),
    )
}

_ROPE_OF_LENGTH = ("dynamic", "longrope")
"""Their angles depend on the longest sequence of a forward, so that sequences packed together would disturb each
other."""


def family_of(config: Mapping[str, Any], where: str) -> Family:
    """Return the family of a checkpoint's config.

    Raises
    ------
    InputError
        It is not one of `FAMILIES`, or it uses something that cannot be served here.
    """
    kind = config.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise InputError(
            f"{where} is of the family {shown(kind)}; real targets are {', '.join(FAMILIES)} (linear attention keeps a "
            "state that cannot be rolled back), so take one of those, or run its --shape"
        )
    for key in ("rope_parameters", "rope_scaling"):
        scaling = config.get(key)
        rope = scaling.get("rope_type", scaling.get("type")) if isinstance(scaling, Mapping) else None
        if rope in _ROPE_OF_LENGTH:
            raise InputError(
                f"{where} has {rope} rotary embeddings, whose angles depend on the longest sequence of a forward; set "
                "another rope_type in its config, such as yarn"
            )
    return family


def empty_model(family: Family, config: Mapping[str, Any], attention: str, where: str) -> PreTrainedModel:
    """Return transformers' model of a config without memory for its weights, in evaluation mode.

    Parameters
    ----------
    attention : str
        Name under which the attention function is registered.

    Raises
    ------
    InputError
        transformers refuses the config.
    """
    import torch
    import transformers

    make_config = getattr(transformers, f"{family.classes}Config")
    make_model = getattr(transformers, f"{family.classes}ForCausalLM")
    try:
        made = make_config.from_dict(dict(config), attn_implementation=attention)
        with torch.device("meta"):
            model: PreTrainedModel = make_model(made)
        model.train(False)
    except Exception as error:  # what a config is not understood with comes from deep inside, of any class
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"transformers cannot build the model of {where} ({type(error).__name__}: {reason}); correct its config"
        ) from error
    model.requires_grad_(False)
    return model

"""Replace the modules that compute label texts by their outputs, which do not depend on images."""

import copy
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from surelabel.methods import Method
from surelabel.methods.multiple_instance.class_parameters import ClassParameters
from surelabel.methods.prompt_tuning.class_vectors import ClassVectors
from surelabel.methods.prompt_tuning.learned_context import LearnedContext
from surelabel.methods.recover_match.prompted_labels import PromptedLabels
from surelabel.records import Features

TEXT_MODULES = (ClassParameters, ClassVectors, LearnedContext, PromptedLabels)
Texts = Tensor | tuple[Tensor, ...]


class ConstantTexts(nn.Module):
    """Return the stored output of a module, whatever the arguments are.

    Args:
        outputs: Output of the module, one tensor or several tensors.
    """

    def __init__(self, outputs: Texts):
        super().__init__()
        self.is_tensor = isinstance(outputs, Tensor)
        tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        self.tensors = nn.ParameterList(
            nn.Parameter(tensor.detach().clone(), requires_grad=False) for tensor in tensors
        )

    def forward(self, *arguments: Tensor) -> Texts:
        """Return the stored output."""
        tensors = tuple(self.tensors)
        return tensors[0] if self.is_tensor else tensors

    def latest(self) -> Texts:
        """Return the stored output, like ``LearnedContext.latest``."""
        return self.forward()


def copy_method_with_shared_tensors(method: Method, shared: Sequence[object] = ()) -> Method:
    """Return a copy of a method whose parameters and buffers are those of the method.

    Args:
        method: Fitted method.
        shared: Further objects that are not copied.
    """
    tensors = [*method.parameters(), *method.buffers()]
    memo: dict[int, Any] = {id(each): each for each in [*tensors, *shared]}
    return copy.deepcopy(method, memo)


def store_label_texts(method: Method, features: Features) -> None:
    """Replace the modules of ``TEXT_MODULES`` in a method by their outputs.

    Args:
        method: Fitted method in evaluation mode, changed in place.
        features: Features of at least one image, for one forward pass without gradients.
    """
    outputs: dict[str, Texts] = {}
    hooks = [
        module.register_forward_hook(
            lambda _module, _arguments, output, name=name: outputs.update({name: output})
        )
        for name, module in method.named_modules()
        if isinstance(module, TEXT_MODULES)
    ]
    try:
        method(features)
    finally:
        for hook in hooks:
            hook.remove()
    for name, output in outputs.items():
        method.set_submodule(name, ConstantTexts(output))

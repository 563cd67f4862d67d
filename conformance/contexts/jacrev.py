"""Jacobians: batches of gradients under ``torch.vmap``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.backward import Backward
from conformance.contexts.model import How, Op
from conformance.contexts.trees import alike, tensors_of, with_tensors


class Jacrev(Backward):
    """The device gets a batch of gradients of the results, as in ``torch.func.jacrev``. CPU gets one at a time.

    If a batching rule is wrong on CPU too, the call is not judged: the context ``vmap`` tests a backend's own rules.
    """

    name = "jacrev"
    helpers = (tensors_of, with_tensors, alike)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the gradients of the floating arguments for three gradients of the results, with the batch in front.

        Raises NotImplementedError if no result needs a gradient, or if torch's own batching rules fail on CPU, or give
        something else there than one gradient after the other.
        """
        import warnings

        leaves: list[torch.Tensor] = []

        def leaf(t: torch.Tensor) -> torch.Tensor:
            if not (t.is_floating_point() or t.is_complex()):
                return t
            leaves.append(t.detach().requires_grad_())
            return leaves[-1]

        def batch_of(t: torch.Tensor) -> torch.Tensor:
            one = torch.linspace(-0.75, 1.5, t.numel()).reshape(t.shape)
            return torch.stack([one, one.square() - 0.5, 1 - one]).to(t.dtype).to(t.device)

        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rules that make one call after the other
            positional, named = with_tensors(args, leaf), {name: with_tensors(a, leaf) for name, a in kwargs.items()}
            found = tensors_of(op(*positional, **named))
            results = [t for t in found if t.grad_fn is not None]
            if not results or any(t is one for t in found for one in leaves):
                raise NotImplementedError("no result needs a gradient, or one is an argument itself")
            given = [batch_of(t) for t in results]

            def gradients(*seeds: torch.Tensor) -> list[torch.Tensor]:
                found = torch.autograd.grad(results, leaves, seeds, retain_graph=True, allow_unused=True)
                return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, found)]

            def batched() -> list[torch.Tensor]:
                found = torch.vmap(gradients)(*given)
                return [t.clone(memory_format=torch.contiguous_format) for t in found]

            if device.type != "cpu" or device.index is not None:
                return batched()
            singly = [gradients(*[t[i] for t in given]) for i in range(3)]
            expected = [torch.stack(same).contiguous() for same in zip(*singly)]
            try:
                ours = batched()
            except Exception as e:
                raise NotImplementedError(f"torch cannot batch the gradients on CPU: {e}") from e
            if not alike(ours, expected):
                raise NotImplementedError("torch's batching rules give other gradients on CPU than one after the other")
            return expected

"""Calls with arguments that have been copied by ``copy.deepcopy`` or pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance import torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import tensors_of
from conformance.inventory import Overload
from conformance.vocabulary import Check


class Copied(Context):
    """The op gets copies of its arguments. A view that is copied together with its base must be a view of the copy."""

    name = "copied"
    helpers = (tensors_of,)
    unchecked = frozenset({Check.LEAK} if torch_versions.unpickled_tensors_leak() else ())

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the results of a call with copies, and the copies that are not among them.

        Variants: the copies are made by "deepcopy" or "pickle".
        """
        import copy
        import pickle

        def views(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            return [t.t()[1:] if t.dim() == 2 else t[..., 1::2] if t.dim() else t for t in tensors]

        given: list[Any] = [list(args), dict(kwargs), views(tensors_of([*args, *kwargs.values()]))]
        made: list[Any] = copy.deepcopy(given) if how.variant == "deepcopy" else pickle.loads(pickle.dumps(given))
        copies = tensors_of([*made[0], *made[1].values()])
        for one, other, base in zip(given[2], made[2], copies):
            ours = (other.size(), other.stride(), other.storage_offset(), other.dtype, other.device)
            theirs = (one.size(), one.stride(), one.storage_offset(), one.dtype, one.device)
            if ours != theirs:
                raise AssertionError(f"the {how.variant} of a view is {ours}, and the view is {theirs}")
            if other.untyped_storage().data_ptr() != base.untyped_storage().data_ptr():
                raise AssertionError(f"the {how.variant} of a tensor and of a view of it share no storage")
        result = op(*made[0], **made[1])
        return [result, *(t for t in copies if not any(t is one for one in tensors_of(result)))]

    def applies(self, overload: Overload) -> bool:
        return not torch_versions.has_out(overload.schema)  # the argument to write would be a copy

"""Contexts: the ways in which a cell calls an op besides a plain call, one class each."""

from __future__ import annotations

from conformance.contexts.after_error import AfterError
from conformance.contexts.autocast import Autocast
from conformance.contexts.backward import Backward
from conformance.contexts.compiled import Compiled, Inductor
from conformance.contexts.copied import Copied
from conformance.contexts.decomposed import Decomposed
from conformance.contexts.default_dtype import DefaultDtype
from conformance.contexts.deterministic import Deterministic
from conformance.contexts.fake import Fake
from conformance.contexts.forward_ad import ForwardAd
from conformance.contexts.functionalize import Functionalize
from conformance.contexts.gradcheck import Gradcheck
from conformance.contexts.gradgrad import Gradgrad
from conformance.contexts.inference_mode import InferenceMode
from conformance.contexts.jacrev import Jacrev
from conformance.contexts.model import Context
from conformance.contexts.no_grad import NoGrad
from conformance.contexts.overwritten import Overwritten
from conformance.contexts.reused import Reused
from conformance.contexts.second_device import SecondDevice, SecondStream
from conformance.contexts.stream import Stream
from conformance.contexts.thread import Thread
from conformance.contexts.vmap import Vmap

__all__ = ["CONTEXTS", "PLAIN", "Context", "of"]

PLAIN = Context()
_ALL = (
    SecondDevice(), Thread(), Stream(), SecondStream(), AfterError(), Reused(), InferenceMode(), Autocast(),
    Deterministic(), DefaultDtype(), Backward(), Gradgrad(), Overwritten(), Gradcheck(), Jacrev(), ForwardAd(), Vmap(),
    Functionalize(), Decomposed(), Fake(), NoGrad(), Copied(), Compiled(), Inductor(),
)  # fmt: skip
CONTEXTS: dict[str, Context] = {context.name: context for context in _ALL}


def of(layout: str) -> Context:
    """Return the context of the cells of a layout: the plain one unless the layout is the name of another."""
    return CONTEXTS.get(layout, PLAIN)

"""Samples of the corpus on a device made by hand, whose kernel of one overload is a function of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from conformance.backends import Capabilities
from conformance.contexts import PLAIN
from conformance.corpus.model import DeviceArg, Sample
from conformance.judging.judge import Judge
from conformance.judging.tolerances import criteria_of
from conformance.judging.twins import Twins
from conformance.ops import facts
from conformance.plan.cases import cases
from conformance.torch_versions import schema_of
from conformance.vocabulary import CellId, Route
from tests.generated import corpus
from tests.two_sides import Device

Op = Callable[..., Any]


def found_by(samples: Iterable[Sample], right: Op, wrong: Op, dtype: str = "") -> tuple[set[str], set[str]]:
    """Return the names of the judged samples, and the names of those for which the ``wrong`` op differs from CPU's.

    Each sample runs in its first dtype. With ``dtype``, only the samples that have this dtype run, in this dtype.
    """
    here = Device()

    def op(*args: Any, device: Any, **kwargs: Any) -> Any:
        if device.index is None:
            return right(*args, **kwargs)
        here.native += 1
        return wrong(*args, **kwargs)

    vars(op)["_schema"] = schema_of(right)
    judged, found = set(), set()
    for sample in samples:
        layout = sample.axis or "contiguous"
        cell = CellId(facts(sample.overload).family, sample.overload, dtype or sample.dtypes[0], layout)
        here_too = replace(sample, kwargs=(*sample.kwargs, ("device", DeviceArg())))
        judge = Judge(
            Twins(corpus().value), Capabilities(here, "hand"), op, Route.NATIVE, criteria_of(sample.overload), 20, PLAIN
        )
        for case in cases(cell, [here_too]):
            result = judge.judge(case)
            if not result.skipped:
                judged.add(sample.name)
            if result.mismatches:
                found.add(sample.name)
    return judged, found

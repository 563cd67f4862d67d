"""A device on which a primitive is broken: said once, and only the cells that need it do not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results import resume, store
from conformance.results.store import runs
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status

pytest_plugins = ["pytester"]

# The reference NPU with one kernel replaced.
BROKEN = """
import os

import refnpu
import torch

lib = torch.library.Library("aten", "IMPL")


def {operator}(*args, **kwargs):
    {does}


lib.impl("{operator}", {operator}, "PrivateUse1", allow_override=True)
"""


@pytest.mark.parametrize(
    ("operator", "does", "said", "unreached"),
    [
        ("as_strided", "raise NotImplementedError('no strides')", "NotImplementedError: no strides", "offset_gap"),
        ("conj_physical.out", "os.abort()", "the process that tried it died: SIGABRT", "conj"),
    ],
)
def test_a_broken_primitive_leaves_out_only_the_cells_that_need_it(
    pytester: pytest.Pytester, operator: str, does: str, said: str, unreached: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = operator.partition(".")[0]
    text = BROKEN.replace("{operator}(", f"{name}(").replace(", {operator},", f", {name},")
    pytester.makepyfile(broken_device=text.replace("{operator}", operator).replace("{does}", does))
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    layouts = f"contiguous,{unreached}"
    result = pytester.runpytest_subprocess(
        "--pyargs", "conformance.ops.masking", "--backend", "broken_device:npu", "-p", "no:cacheprovider",
        "--dtypes", "complex64", "--layouts", layouts, "-k", "masked_fill.Scalar",
    )  # fmt: skip
    assert result.ret == Exit.CELLS_FAILED
    result.stdout.fnmatch_lines([f"BROKEN: *{said}*; 2 cells not reached"])
    (directory,) = Path(pytester.path).glob("results/*+part")
    (closed,) = Path(pytester.path).glob("results/runs/*")
    assert runs.opened(closed).ended
    assert not resume.interrupted(directory)
    seen = {(o.cell.overload, o.cell.layout): o.status for o in store.read(directory).observations}
    assert seen["masked_fill.Scalar", "contiguous"] is Status.PASS
    assert {status for (_, layout), status in seen.items() if layout == unreached} == {Status.NOT_REACHED}
    assert Status.ERROR not in seen.values()

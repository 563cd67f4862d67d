"""A device on which a primitive is broken: said once, and only the cells that need it do not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results import resume, store
from conformance.results.store import runs
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

# The reference NPU without as_strided.
BROKEN = """
import os

import refnpu
import torch

lib = torch.library.Library("aten", "IMPL")


def as_strided(*args, **kwargs):
    {does}


lib.impl("as_strided", as_strided, "PrivateUse1", allow_override=True)
"""


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise NotImplementedError('no strides')", "NotImplementedError: no strides"),
        ("os.abort()", "the process that tried it died: SIGABRT"),
    ],
    ids=("raises", "dies"),
)
def test_only_the_cells_that_need_a_broken_primitive_do_not_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, does: str, said: str
) -> None:
    pytester.makepyfile(broken_device=BROKEN.replace("{does}", does))
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = pytester.runpytest_subprocess(
        "--pyargs", "conformance.ops.masking", "--backend", "broken_device:npu", "-p", "no:cacheprovider",
        "--dtypes", "complex64", "--layouts", "contiguous,offset_gap", "-k", "masked_fill.Scalar",
    )  # fmt: skip
    assert result.ret == Exit.CELLS_FAILED
    result.stdout.fnmatch_lines([f"BROKEN: as_strided *{said}*; 2 cells not reached"])
    (directory,) = Path(pytester.path).glob("results/*+part")
    (closed,) = Path(pytester.path).glob("results/runs/*")
    assert runs.opened(closed).ended
    assert not resume.interrupted(directory)
    seen = {(o.cell.overload, o.cell.layout): o.status for o in store.read(directory).observations}
    assert seen["masked_fill.Scalar", "contiguous"] is Status.PASS
    assert {status for (_, layout), status in seen.items() if layout == "offset_gap"} == {Status.NOT_REACHED}
    assert Status.ERROR not in seen.values()

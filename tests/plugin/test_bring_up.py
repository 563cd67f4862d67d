"""A device with a broken primitive, which is reported once. Only the cells that need the primitive do not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results import resume, store
from conformance.results.store import runs
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

# The reference NPU without an op that the gate tries.
BROKEN = """
import os

import refnpu
import torch

lib = torch.library.Library("aten", "IMPL")


def broken(*args, **kwargs):
    {does}


lib.impl("{op}", broken, "PrivateUse1", allow_override=True)
"""

RUN = (
    "--pyargs", "conformance.ops.masking", "--backend", "broken_device:npu", "-p", "no:cacheprovider",
    "--dtypes", "complex64",
)  # fmt: skip


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
    pytester.makepyfile(broken_device=BROKEN.replace("{op}", "as_strided").replace("{does}", does))
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = pytester.runpytest_subprocess(*RUN, "-k", "masked_fill.Scalar", "--layouts", "contiguous,offset_gap")
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


def test_only_the_cases_with_a_conjugated_argument_do_not_run_without_conjugation(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(broken_device=BROKEN.replace("{op}", "resolve_conj").replace("{does}", "os.abort()"))
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    result = pytester.runpytest_subprocess(
        *RUN, "-k", "masked_fill.Scalar or where.self", "--layouts", "contiguous,as_strided"
    )
    (directory,) = Path(pytester.path).glob("results/*+part")
    seen = {(o.cell.overload, o.cell.layout): o for o in store.read(directory).observations}
    of_some, of_all = seen["where.self", "as_strided"], seen["masked_fill.Scalar", "as_strided"]
    assert (of_some.status, of_some.partial) == (Status.PASS, True)
    assert 0 < of_some.compared < of_some.cases
    assert of_all.status is Status.NOT_REACHED  # each of its samples has a conjugated argument
    assert not seen["where.self", "contiguous"].partial
    result.stdout.fnmatch_lines(["BROKEN: conjugate *SIGABRT*; * not reached"])

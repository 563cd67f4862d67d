"""Recorded work as torch sees it: steps, parts that are saved, and donated memory."""

from __future__ import annotations

import io
import random
import subprocess
from collections.abc import Callable, Iterator

import pytest
import refnpu
import torch
from refnpu import testing

Python = Callable[..., subprocess.CompletedProcess[str]]
# The script of a report about torch_xla: saving one tensor donated the memory that another still had to read.
REPORTED = """
import io, refnpu, torch
t0 = torch.tensor([1], device="npu")
t1 = torch.tensor([2], device="npu")
refnpu.mark_step()
t2 = t0 + t1
t1.add_(1)
refnpu.save(t1, io.BytesIO())
refnpu.mark_step()
print(t2.item(), t1.item())
"""


@pytest.fixture
def lazy() -> Iterator[None]:
    with testing.lazy():
        yield
        torch.npu.synchronize()


def stored(file: io.BytesIO) -> object:
    file.seek(0)
    return torch.load(file)


def test_saving_one_of_two_tensors_leaves_the_other_its_old_values(python: Python) -> None:
    done = python(REPORTED, REFNPU_LAZY="1")
    assert done.stdout == "3 3\n", done.stderr


def test_the_reported_script_shows_the_planted_donation(python: Python) -> None:
    if "partial_run_donates" not in testing.faults():
        pytest.skip("built without faults")
    done = python(REPORTED, REFNPU_LAZY="1", REFNPU_FAULT="partial_run_donates")
    assert done.stdout == "4 3\n", done.stderr


@pytest.mark.parametrize("mode", [{}, {"REFNPU_LATE": "1"}])
def test_the_reported_script_is_right_where_work_is_not_recorded(python: Python, mode: dict[str, str]) -> None:
    assert python(REPORTED, **mode).stdout == "3 3\n"


@pytest.mark.usefixtures("lazy")
def test_recorded_work_starts_with_the_step() -> None:
    event = torch.npu.Event()
    x = torch.zeros(3, device="npu").add_(1)
    event.record()
    refnpu.mark_step(wait=True)
    assert event.query()
    assert x.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("lazy")
def test_saved_containers_hold_cpu_tensors() -> None:
    x = torch.arange(3.0, device="npu")
    file = io.BytesIO()
    refnpu.save({"x": x + 1, "more": [x[1:], (x * 2, 5)], "host": torch.ones(1)}, file)
    found = stored(file)
    assert isinstance(found, dict)
    assert found["x"].tolist() == [1, 2, 3]
    assert found["more"][0].tolist() == [1, 2]
    assert (found["more"][1][0].tolist(), found["more"][1][1]) == ([0, 2, 4], 5)
    assert {found["x"].device.type, found["more"][0].device.type, found["host"].device.type} == {"cpu"}


@pytest.mark.usefixtures("lazy")
def test_a_value_runs_the_work_that_it_needs_alone() -> None:
    x, y = torch.ones(3, device="npu"), torch.ones(3, device="npu")
    with testing.fault("kernel_raises"):
        x.masked_fill_(x > 0, 5)
        assert y.add_(1).tolist() == [2, 2, 2]  # the error belongs to other work
        with pytest.raises(RuntimeError, match=r"kernel 'masked_fill', submitted by 'masked_fill_.Scalar'"):
            x.tolist()


@pytest.mark.usefixtures("lazy")
def test_donated_memory_is_read_by_recorded_work_and_by_nobody_else() -> None:
    x = torch.ones(3, device="npu")
    view, y = x[1:], x + 1
    refnpu.donate(x, x)
    assert x.tolist() == [1, 1, 1]
    refnpu.mark_step()
    assert y.tolist() == [2, 2, 2]
    for use in (x.cpu, view.tolist, lambda: x + 1, lambda: x.add_(1), x.sum, lambda: refnpu.donate(x)):
        with pytest.raises(RuntimeError, match="the memory of this tensor was donated, and the step has ended"):
            use()


@pytest.mark.usefixtures("no_garbage")
def test_memory_is_donated_where_work_is_not_recorded_too() -> None:
    x = torch.ones(1000, device="npu")
    before = torch.npu.memory_allocated()
    refnpu.donate(x)
    refnpu.mark_step("npu:1")  # the step of another device
    assert x[0].item() == 1
    refnpu.mark_step(-1)  # the step of the current device
    assert torch.npu.memory_allocated() == before - 4000
    with pytest.raises(RuntimeError, match="was donated"):
        x.cpu()


def test_only_tensors_of_the_npu_can_be_donated() -> None:
    with pytest.raises(ValueError, match="expected tensors of the npu, got one of cpu"):
        refnpu.donate(torch.ones(1))


def test_a_process_started_with_recorded_work_returns_to_it(python: Python) -> None:
    script = """
import refnpu, torch
from refnpu import _C
from refnpu.conformance import adapter
print(adapter.environment(), _C.is_lazy(), _C.is_late())
_C.set_late(False)
print(_C.is_lazy(), _C.is_late())
adapter.delay_work(None)
print(_C.is_lazy())
"""
    done = python(script, REFNPU_LAZY="1", REFNPU_ALLOCATOR="malloc")
    assert done.stdout.splitlines() == ["malloc_lazy True True", "False False", "True"], done.stderr


def test_a_process_exits_with_work_recorded(python: Python) -> None:
    done = python("import refnpu, torch\nx = torch.zeros(3, device='npu')\nx.add_(1)\n", REFNPU_LAZY="1")
    assert (done.returncode, done.stderr) == (0, "")


def test_training_with_saved_states_has_the_values_of_cpu(python: Python) -> None:
    script = """
import io, refnpu, torch
def losses(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    x = torch.randn(16, 4)
    model, x = model.to(device), x.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for step in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        refnpu.save(model.state_dict(), io.BytesIO())
        found.append(loss)
        refnpu.mark_step()
    return torch.stack([loss.detach().cpu() for loss in found])
print(torch.allclose(losses("cpu"), losses("npu"), rtol=1e-4))
"""
    done = python(script, REFNPU_LAZY="1")
    assert done.stdout == "True\n", done.stderr


# Ops of all kinds on integers, whose results are exact: name → what it does to tensors of one shape.
OPS = {
    "add_": lambda x, y, *_: x.add_(y).remainder_(101),
    "mul_": lambda x, *_: x.mul_(3).remainder_(101),
    "add": lambda x, y, z: torch.add(y, z, out=x).remainder_(101),
    "where": lambda x, y, z: x.copy_(torch.where(y > z, y, x)),
    "masked_fill_": lambda x, y, *_: x.masked_fill_(y > 50, 7),
    "view": lambda x, y, *_: x[1:3].add_(y[:2]).remainder_(103),
    "transposed": lambda x, y, *_: x.t().copy_(y),
    "cat": lambda x, y, z: x.copy_(torch.cat([y[:2], z[2:]])),
    "cumsum": lambda x, y, *_: torch.cumsum(y.remainder(7), 0, out=x),
    "sort": lambda x, y, *_: x.copy_(y.sort(1).values),
    "gather": lambda x, y, z: x.copy_(y.gather(0, z.remainder(4))),
    "scatter_": lambda x, y, z: x.scatter_(1, z[:, :1].remainder(4), y),
    "index_put_": lambda x, y, z: x.index_put_((z[0].argsort(stable=True),), y),
    "index_add_": lambda x, y, z: x.index_add_(0, z[0].remainder(4), y).remainder_(107),
    "flip": lambda x, y, *_: x.copy_(y.flip(0)),
    "matmul": lambda x, y, z: x.copy_((y.remainder(5).float() @ z.remainder(5).float()).long()),
    "sum": lambda x, y, *_: x.copy_(y.sum(0).remainder(109)),
    "bitwise_not": lambda x, y, *_: x.copy_((~y).remainder(97)),
    "kron": lambda x, y, z: x.copy_(torch.kron(y[:2, :2].remainder(9), z[:2, :2].remainder(9))),
    "fill_": lambda x, *_: x.select(0, 2).fill_(5),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("lazy")
def test_parts_of_random_programs_of_ops_have_the_values_of_cpu(seed: int) -> None:
    draw = random.Random(seed)
    expected = [torch.arange(16).view(4, 4) * (n + 1) % 61 for n in range(6)]
    tensors = [t.to("npu") for t in expected]
    for step in range(400):
        name = draw.choice(list(OPS))
        target, *sources = draw.sample(range(6), 3)
        OPS[name](*(tensors[n] for n in (target, *sources)))
        OPS[name](*(expected[n] for n in (target, *sources)))
        if draw.random() < 0.2:
            read = draw.randrange(6)
            assert torch.equal(tensors[read].cpu(), expected[read]), f"after step {step}, {name}: tensor {read}"
        if draw.random() < 0.02:
            refnpu.mark_step()
    for number, (tensor, wanted) in enumerate(zip(tensors, expected, strict=True)):
        assert torch.equal(tensor.cpu(), wanted), f"tensor {number} at the end"

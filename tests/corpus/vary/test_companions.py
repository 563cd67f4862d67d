"""Other forms of tensor arguments that a flag may need."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.corpus.model import Sample
from conformance.corpus.vary import generation
from conformance.corpus.vary.companions import companions
from conformance.corpus.vary.trial import Trials
from conformance.corpus.vary.variants import generate
from conformance.inventory import call_of, inventory
from conformance.torch_versions import schema_of
from tests.generated import corpus
from tests.samples import sample, slot

SOLVE = "_linalg_solve_ex"


def test_an_empty_list_is_filled_as_the_one_before_it() -> None:
    (adam,) = corpus().samples("_fused_adam_")
    forms = dict(companions(adam, schema_of(call_of("_fused_adam_"))))
    filled = forms["max_exp_avg_sqs=filled"]
    before, more = ([s for s in filled.tensors if s.argument == name] for name in ("exp_avg_sqs", "max_exp_avg_sqs"))
    assert [s.shape for s in more] == [s.shape for s in before]
    assert [(s.name, s.written) for s in more] == [(f"max_exp_avg_sqs[{i}]", True) for i in range(len(before))]
    assert [s.index for s in filled.tensors] == list(range(len(adam.tensors) + len(before)))


def test_a_list_is_emptied() -> None:
    (adam,) = corpus().samples("_fused_adamw_")
    forms = dict(companions(adam, schema_of(call_of("_fused_adamw_"))))
    assert not [s for s in forms["max_exp_avg_sqs=empty"].tensors if s.argument == "max_exp_avg_sqs"]


def test_two_sizes_of_one_tensor_are_exchanged_unless_they_are_equal() -> None:
    one = sample(SOLVE, slot(0, "A", (2, 3, 3)), slot(1, "B", (2, 3, 4)))
    forms = {name: [s.shape for s in form.tensors] for name, form in companions(one, schema_of(call_of(SOLVE)))}
    assert forms == {
        "A=exchanged0": [(3, 2, 3), (2, 3, 4)],
        "B=exchanged1": [(2, 3, 3), (2, 4, 3)],
        "B=exchanged0": [(2, 3, 3), (3, 2, 4)],
    }


def test_a_flag_that_cpu_refuses_is_tried_with_them() -> None:
    known = {o.name: o for o in inventory("CPU")}

    def make(overload: str, trials: Trials) -> Iterator[Sample]:
        yield from generate(known[overload], corpus().samples(overload), trials.untimed(), corpus())

    flags = {"_fused_adam_": "amsgrad=True", "_fused_adamw_": "amsgrad=False", SOLVE: "left=False"}
    for overload, samples in generation.generate(flags, corpus(), make, 1):  # in children: a call with other sizes dies
        assert [s for s in samples or () if f".{flags[overload]}." in s.name and not s.raises]

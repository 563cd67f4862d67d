"""Failing cells attributed to the fewest kernels that explain them."""

from __future__ import annotations

from dataclasses import replace

from conformance.records import Mismatch
from conformance.results.causes import FALLBACK, Contrast, FailingCell, Manner, PassingCell, causes, failing_cell
from conformance.vocabulary import CellId, Check, Status
from tests.records import failure, observed


def cell(overload: str, layout: str = "contiguous", dtype: str = "float32") -> CellId:
    return CellId("family", overload, dtype, layout)


def failing(
    overload: str, *kernels: str, layout: str = "contiguous", elements: int = 4, route: str = "native"
) -> FailingCell:
    """Return a failing cell with the kernels that it calls."""
    one = cell(overload, layout)
    return FailingCell(one, f"{one}#case", kernels, elements, route)


def died(overload: str, *kernels: str) -> FailingCell:
    """Return a cell of a composite that died on the device, with the kernels that CPU runs for it."""
    one = cell(overload, "expanded")
    return FailingCell(one, f"{one}#case", kernels, route="composite", on_cpu=True)


def agree(overload: str, layout: str = "contiguous", dtype: str = "float32", route: str = "native") -> PassingCell:
    """Return a cell that agrees with CPU."""
    return PassingCell(cell(overload, layout, dtype), route)


def names(failed: list[FailingCell], passed: tuple[PassingCell, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Return the overloads that each cause explains, by the cause's kernel."""
    return {cause.kernel: cause.overloads for cause in causes(failed, passed)}


def test_a_broken_copy_explains_all_that_copy() -> None:
    failed = [
        failing("_copy_from"),
        failing("clone", "empty_like", "copy_", "_copy_from"),
        failing("contiguous", "clone", "empty_like", "copy_", "_copy_from"),
        failing("copy_", "_copy_from"),
    ]
    assert names(failed, (agree("empty_like"),)) == {"_copy_from": ("_copy_from", "clone", "contiguous", "copy_")}


def test_a_kernel_whose_own_cells_all_pass_is_no_suspect() -> None:
    failed = [failing("add", "empty"), failing("mul", "empty")]
    assert names(failed, (agree("empty"),)) == {"add": ("add",), "mul": ("mul",)}


def test_a_kernel_without_cells_of_its_own_can_be_a_cause() -> None:
    failed = [failing("add", "helper"), failing("mul", "helper")]
    assert names(failed) == {"helper": ("add", "mul")}


def test_an_untried_kernel_is_not_the_cause_of_a_single_operator() -> None:
    assert names([failing("masked_fill_", "fill_", "helper")]) == {"masked_fill_": ("masked_fill_",)}


def test_a_kernel_without_cells_is_no_suspect_where_its_caller_passes() -> None:
    failed = [failing("uniform_", "copy_", "_copy_from"), failing("normal_", "copy_", "_copy_from")]
    assert names(failed, (agree("copy_"),)) == {"normal_": ("normal_",), "uniform_": ("uniform_",)}
    assert names(failed) == {"_copy_from": ("normal_", "uniform_")}


def test_of_two_kernels_that_explain_the_same_cells_the_later_is_the_cause() -> None:
    failed = [failing("copy_", "_copy_from"), failing("_copy_from"), failing("clone", "copy_", "_copy_from")]
    assert list(names(failed)) == ["_copy_from"]


def test_a_call_by_another_caller_leaves_a_kernel_without_cells_a_suspect() -> None:
    failed = [
        failing("copy_", "_copy_from"),
        failing("clone", "copy_", "_copy_from"),
        failing("solve", "copy_", "item", "_copy_from"),
    ]
    assert names(failed, (agree("item"),)) == {"_copy_from": ("clone", "copy_", "solve")}


def test_composites_of_passing_kernels_have_a_kernel_of_all_as_their_cause() -> None:
    failed = [
        failing("fft_hfft", "empty", "copy_", "conj", route="composite"),
        failing("fft_ihfft", "empty", "copy_", "neg", route="composite"),
    ]
    passed = tuple(map(agree, ("empty", "copy_", "conj", "neg")))
    assert names(failed, passed) == {"copy_": ("fft_hfft", "fft_ihfft")}
    assert names(failed[:1], passed) == {"fft_hfft": ("fft_hfft",)}


def test_a_composite_is_no_cause_where_a_kernel_below_it_explains_the_death_of_its_callers() -> None:
    failed = [
        failing("copy_", "_copy_from", route="composite"),
        failing("clone", "copy_", "_copy_from", route="composite"),
        died("flip", "clone", "copy_"),
        died("roll", "copy_"),
    ]
    assert names(failed) == {"_copy_from": ("clone", "copy_", "flip", "roll")}


def test_the_operators_of_a_case_that_died_are_those_that_cpu_ran() -> None:
    died_in, differs = (replace(failure("a#s.0", check), calls=("copy_",)) for check in ("", "value"))
    crashed = failing_cell(replace(observed("a", status=Status.CRASH), failures=(died_in,)))
    assert died_in.death
    traced = replace(died_in, death=replace(died_in.death, operators=("resize_", "copy_", "a")))
    assert failing_cell(replace(observed("a", status=Status.CRASH), failures=(traced,))).stack == ("copy_", "resize_")
    failed = failing_cell(replace(observed("a", status=Status.FAIL), failures=(differs,)))
    assert [(f.kernels, f.on_cpu) for f in (crashed, failed)] == [(("copy_",), True), (("copy_",), False)]


def on_stack(overload: str, *stack: str, kernels: tuple[str, ...] = (), check: str = "") -> FailingCell:
    """Return a cell that died or failed ``check``, with the kernels that CPU runs and those on the native stack."""
    manner = Manner(check=check) if check else Manner(signal="SIGSEGV")
    return replace(died(overload, *kernels), manner=manner, stack=stack)


def test_operators_on_the_native_stack_are_the_cause_of_deaths_and_not_those_that_have_returned() -> None:
    ran = ("view", "alias", "copy_")
    grown = [on_stack("resize_"), *(on_stack(name, "resize_", kernels=ran) for name in ("cat", "eq"))]
    copies = [on_stack("copy_"), on_stack("fft", "copy_", kernels=ran)]
    assert names([*grown, *copies]) == {"resize_": ("resize_", "cat", "eq"), "copy_": ("copy_", "fft")}
    unknown = [on_stack("sort", kernels=ran), on_stack("pad", kernels=("view", "alias"))]
    found = names([*grown, *copies, *unknown])
    assert found["copy_"] == ("copy_", "fft", "sort")
    assert found["pad"] == ("pad",)
    assert set(names(unknown)) == {"alias"}


def test_a_kernel_with_wrong_results_may_kill_a_call_after_it_has_returned() -> None:
    ran = ("masked_fill_",)
    damage = on_stack("masked_fill_", check="untouched")
    calling = [on_stack(name, "empty", kernels=ran) for name in ("decode", "attend")]
    assert names([damage, *calling]) == {"masked_fill_": ("masked_fill_", "attend", "decode")}
    assert set(names([on_stack("masked_fill_"), *calling])) == {"empty", "masked_fill_"}


def test_a_composite_that_fails_is_a_cause_of_callers_that_run_no_kernel_below_it() -> None:
    failed = [
        failing("copy_", "helper", route="composite"),
        failing("clone", "copy_", route="composite"),
        failing("flip", "copy_", route="composite"),
    ]
    assert names(failed) == {"copy_": ("copy_", "clone", "flip")}


def test_composites_of_a_failing_composite_have_a_kernel_below_it_as_their_cause() -> None:
    failed = [
        failing("to", "empty", "copy_", "_copy_from", route="composite"),
        failing("chalf", "to", "empty", "copy_", "_copy_from", route="composite"),
        failing("fft", "to", "empty", "copy_", "_copy_from", "_fft_c2c", route="composite"),
    ]
    passed = (agree("empty"), agree("copy_", route="composite"))
    assert names(failed, passed) == {"_copy_from": ("chalf", "fft", "to")}


def test_a_kernel_without_failing_cells_explains_those_that_fail_alike() -> None:
    raised, died_of = Manner(error="RuntimeError", message="no kernel"), Manner(signal="SIGSEGV")
    windows = [replace(failing(f"window.{i}", "resize_", "fill_"), manner=raised) for i in range(3)]
    grown = [replace(failing(name, "resize_"), manner=died_of) for name in ("cat", "stack")]
    assert names([*windows, *grown]) == {"resize_": ("cat", "stack"), "window": ("window.0", "window.1", "window.2")}
    alike = [replace(f, manner=died_of) for f in (*windows, *grown)]
    assert list(names(alike)) == ["resize_"]
    composites = [replace(f, route="composite") for f in (*windows, *grown)]
    found = names(composites, (agree("resize_"), agree("fill_")))
    assert found == {"window": ("window.0", "window.1", "window.2"), "resize_": ("cat", "stack")}
    tried = names([*windows, *grown, failing("resize_")])
    assert set(tried["resize_"]) >= {"resize_", "cat", "stack", "window.0"}


def test_a_kernel_that_only_dies_or_raises_explains_callers_that_do_so_too() -> None:
    died_of, differs = Manner(signal="SIGSEGV"), Manner(check="stride")
    raised = [Manner(error="RuntimeError", message=f"'{name}' takes {i} elements") for i, name in enumerate("ab")]
    grown = replace(failing("resize_"), manner=died_of)
    callers = {
        "cat": Manner(signal="SIGABRT"), "pad": differs, "window": raised[0],
    }  # fmt: skip
    calling = [replace(failing(name, "resize_"), manner=manner) for name, manner in callers.items()]
    assert names([grown, *calling])["resize_"] == ("resize_", "cat")
    refuses = replace(failing("resize_"), manner=raised[1])
    assert names([refuses, *calling])["resize_"] == ("resize_", "window")
    wrong = replace(failing("resize_"), manner=differs)
    assert names([wrong, *calling])["resize_"] == ("resize_", "cat", "pad", "window")


def test_the_manner_of_a_cause_leaves_out_what_depends_on_the_arguments_of_its_cells() -> None:
    def of(*manners: Manner) -> Manner:
        failed = [replace(failing(f"a{i}", route="fallback"), manner=manner) for i, manner in enumerate(manners)]
        (found,) = causes(failed, [])
        return found.manner

    refuses = [Manner(error="RuntimeError", message=f"'{name}' takes {i} elements") for i, name in enumerate("ab")]
    assert of(refuses[0]) == refuses[0]
    assert of(*refuses) == Manner(error="RuntimeError", message="... takes ... elements")


def test_programs_that_differ_have_no_kernel_without_cells_in_common() -> None:
    cells = map(CellId.of_scenario, ("masks:a", "masks:b", "rnn:c"))
    programs = [replace(failing("", "empty"), cell=one) for one in cells]
    assert len(names(programs)) == 3
    raised = Manner(error="RuntimeError", message="no generator")
    assert list(names([replace(f, manner=raised) for f in programs])) == ["empty"]


def test_the_manner_of_a_failure_is_a_signal_an_error_or_the_first_check() -> None:
    def manner(**facts: object) -> Manner:
        shown = replace(failure("a#s.0", "error_parity"), mismatches=(Mismatch(Check.ERROR_PARITY, "", facts),))
        return failing_cell(replace(observed("a", status=Status.FAIL), failures=(shown,))).manner

    error, differ = {"type": "RuntimeError", "message": "no kernel"}, Manner(check="error_parity")
    assert manner(kind="errors", device=error, cpu=None) == Manner(error="RuntimeError", message="no kernel")
    assert manner(kind="errors", device=None, cpu=error) == differ
    assert manner(kind="errors", device=error, cpu=error) == differ
    crashed = replace(observed("a", status=Status.CRASH), failures=(failure("a#s.0", ""),))
    assert failing_cell(crashed).manner == Manner(signal="SIGSEGV")


def test_of_two_kernels_that_explain_the_same_one_without_passing_cells_is_the_cause() -> None:
    failed = [failing(name, "_copy_from", "empty", route="composite") for name in ("lift", "detach")]
    assert names(failed, (agree("empty"),)) == {"_copy_from": ("detach", "lift")}


def test_the_only_kernel_without_passing_cells_is_the_cause_of_one_composite() -> None:
    failed = [failing("neg_copy", "empty", "copy_", "_copy_from", route="composite")]
    passed = (agree("empty"), agree("copy_", route="composite"))
    assert names(failed, passed) == {"_copy_from": ("neg_copy",)}
    assert names(failed, passed[1:]) == {"neg_copy": ("neg_copy",)}
    assert names([failing("neg_copy", "empty", "_copy_from")], passed) == {"neg_copy": ("neg_copy",)}


def test_an_operator_with_a_passing_native_overload_has_a_kernel() -> None:
    failed = [
        failing("gather", "empty", "narrow", route="composite"),
        failing("take", "gather", "empty", "narrow", route="composite"),
    ]
    passed = (agree("empty"), agree("narrow"))
    assert names(failed, (*passed, agree("gather.out"))) == {"gather": ("gather", "take")}
    assert names(failed, passed) == {"narrow": ("gather", "take")}


def test_two_faults_are_two_causes_the_one_that_explains_more_first() -> None:
    failed = [
        failing("neg"),
        failing("fill_"),
        failing("zero_", "fill_"),
        failing("ones", "empty", "fill_"),
    ]
    found = causes(failed, [agree("empty")])
    assert [(c.kernel, len(c.cells)) for c in found] == [("fill_", 3), ("neg", 1)]


def test_a_cell_is_explained_once() -> None:
    failed = [failing("a"), failing("b"), failing("c", "a", "b"), failing("d", "a")]
    found = causes(failed, [])
    assert sum(len(c.cells) for c in found) == len(failed)


def test_a_broken_fallback_explains_what_falls_back() -> None:
    failed = [failing("svd", route="fallback"), failing("qr", route="fallback"), failing("neg")]
    assert names(failed) == {FALLBACK: ("qr", "svd"), "neg": ("neg",)}


def test_the_fallback_is_one_cause_for_each_manner_of_failing() -> None:
    manners = {
        "stride": Manner(check="stride"), "died": Manner(signal="SIGSEGV"),
        "raised": Manner(error="RuntimeError", message="no generator"),
    }  # fmt: skip
    failed = [
        replace(failing(f"{how}_{i}", route="fallback"), manner=manner)
        for how, manner in manners.items()
        for i in range(2)
    ]
    found = causes(failed, [])
    assert {cause.kernel for cause in found} == {FALLBACK}
    assert {cause.overloads: cause.manner for cause in found} == {
        (f"{how}_0", f"{how}_1"): manner for how, manner in manners.items()
    }


def test_the_cause_of_one_failing_fallback_operator_is_the_fallback() -> None:
    assert names([failing("svd", route="fallback")]) == {FALLBACK: ("svd",)}


def test_the_fallback_is_the_cause_of_composites_that_call_its_operators() -> None:
    failed = [failing("svd", route="fallback"), failing("pinv", "svd", route="composite")]
    assert names(failed) == {FALLBACK: ("pinv", "svd")}
    assert names([failing("svd", route="fallback"), failing("svd.out", route="composite")]) == {
        FALLBACK: ("svd", "svd.out")
    }


def test_a_failing_native_kernel_explains_its_callers_that_fall_back() -> None:
    failed = [failing("resize_"), failing("svd", "resize_", route="fallback")]
    assert names(failed) == {"resize_": ("resize_", "svd")}


def test_a_cause_lists_its_callers_apart_from_its_own_overloads() -> None:
    (found,) = causes([failing("copy_"), failing("copy_.Tensor"), failing("clone", "copy_")], [])
    assert (found.overloads, found.callers) == (("copy_", "copy_.Tensor", "clone"), ("clone",))


def test_the_example_is_the_kernel_s_own_smallest_case() -> None:
    failed = [
        failing("clone", "copy_", elements=1),
        failing("copy_", layout="step2", elements=9),
        failing("copy_", layout="transposed", elements=6),
    ]
    (found,) = causes(failed, [])
    assert found.example == f"{cell('copy_', 'transposed')}#case"
    assert found.example_cell == cell("copy_", "transposed")


def test_a_cause_names_the_values_that_only_failing_cells_have() -> None:
    failed = [failing("copy_", layout="step2"), failing("copy_", layout="transposed"), failing("clone", "copy_")]
    passed = [agree("copy_"), agree("copy_", "step2", "int64")]
    (found,) = causes(failed, passed)
    assert found.contrasts == (
        Contrast("dtype", ("float32",), ("int64",)),
        Contrast("layout", ("step2", "transposed"), ("contiguous",)),
    )


def test_a_run_without_failing_cells_has_no_causes() -> None:
    assert causes([], [agree("neg")]) == []

"""The first wrong kernel, found in the output of the value printer."""

from __future__ import annotations

from conformance.aoti.kernels import Launch, Saved, first_wrong, launches, unfinished

LOG = """\
a line of another library
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchbefore_launch_cpp_fused_relu_0_arg0_1_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchbefore_launch_cpp_fused_relu_0_buf0_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchafter_launch_cpp_fused_relu_0_arg0_1_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchafter_launch_cpp_fused_relu_0_buf0_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchbefore_launch_aoti_torch_cpu_mm_out_buf1_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchafter_launch_aoti_torch_cpu_mm_out_buf1_cpu.pt
aoti_torch_save_tensor_handle: Saved tensor to /t/aoti_torchbefore_launch_aoti_torch_cpu_mm_out_buf2_cpu.pt
"""
NODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "buf0": ("relu", ("aten.relu.default",)),
    "buf1": ("mm", ("aten.mm.default",)),
}


def launch(kernel: str, *buffers: str) -> Launch:
    before, after = (tuple(Saved(when, kernel, b, f"{b}.pt") for b in buffers) for when in (True, False))
    return Launch(kernel, before, after)


def test_launches_are_read_in_order_with_their_tensors() -> None:
    first, second, third = launches(LOG)
    assert (first.kernel, [s.buffer for s in first.before]) == ("cpp_fused_relu_0", ["arg0_1", "buf0"])
    assert first.after[1].file == "/t/aoti_torchafter_launch_cpp_fused_relu_0_buf0_cpu.pt"
    assert (second.kernel, len(second.before), len(second.after)) == ("aoti_torch_cpu_mm_out", 1, 1)
    assert third.kernel == second.kernel


def test_a_launch_that_did_not_return_is_the_last_one() -> None:
    found = launches(LOG)
    assert unfinished(found) is found[-1]
    assert unfinished(found[:-1]) is None
    assert unfinished([]) is None


def test_the_first_launch_whose_output_differs_is_wrong() -> None:
    ran = [launch("relu", "arg0_1", "buf0"), launch("mm", "buf0", "buf1"), launch("mm", "buf1")]
    wrong, compared = first_wrong(ran, NODES, lambda saved, _: "far" if saved.buffer == "buf1" else "")
    assert wrong is not None
    assert (wrong.index, wrong.launch.kernel, wrong.buffer, wrong.node, wrong.difference) == (
        1,
        "mm",
        "buf1",
        "mm",
        "far",
    )
    assert compared == 2


def test_no_launch_is_wrong_if_no_buffer_differs() -> None:
    ran = [launch("relu", "buf0"), launch("mm", "buf0", "buf1", "buf7")]
    assert first_wrong(ran, NODES, lambda *_: "") == (None, 2)


def test_a_buffer_that_cannot_be_compared_is_not_counted() -> None:
    assert first_wrong([launch("relu", "buf0")], NODES, lambda *_: None) == (None, 0)


def test_an_input_that_a_later_kernel_overwrites_is_not_compared_again() -> None:
    ran = [launch("relu", "buf0"), launch("add_", "buf0")]
    wrong, _ = first_wrong(ran, NODES, lambda saved, _: "far" if saved.kernel == "add_" else "")
    assert wrong is None

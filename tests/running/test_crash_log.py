"""The parts of the output of a dead process."""

from __future__ import annotations

from conformance.running import crash_log
from conformance.scenarios.running_script import FILE

SITE = "/env/lib/python3.11/site-packages"
LOG = f"""backend: queue 3 is full
SIGSEGV(11), PID: 7, Thread 7:
 frame #0: c10::FatalSignalHandler::stacktraceSignalHandler(bool) + 0x8f (0x7f0 in {SITE}/torch/lib/libc10.so)
frame #1: <unknown function> + 0x3c050 (0x7f1 in /lib/x86_64-linux-gnu/libc.so.6)
frame #2: <unknown function> + 0x5bdbc (0x7f2 in {SITE}/mine/lib/libmine.so)
frame #3: mine::launch<float>(int, char const*) + 0x114 (0x7f3 in {SITE}/mine/lib/libmine.so)
frame #4: <unknown function> + 0x59610ab (0x7f4 in {SITE}/torch/lib/libtorch_cpu.so)
frame #5: at::_ops::fill__Scalar::call(at::Tensor&) + 0x192 (0x7f5 in {SITE}/torch/lib/libtorch_cpu.so)
<omitting python frames>
frame #9: _start + 0x21 (0x7f6 in /env/bin/python3.11)

SIGSEGV(11), PID: 7, Thread 9:
 frame #0: mine::idle() + 0x1 (0x7f7 in {SITE}/mine/lib/libmine.so)

Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/home/me/mine/kernels.py", line 12 in fill
  File "{SITE}/torch/_ops.py", line 760 in __call__
  File "{SITE}/conformance/judging/oracle.py", line 56 in call
  File "{SITE}/conformance/running/child.py", line 200 in live
  ...

Extension modules: numpy._core._multiarray_umath (total: 1)
"""


def test_a_crash_log_begins_with_the_backends_frames_and_omits_the_suites() -> None:
    found = crash_log.parse(LOG)
    assert found.message == "backend: queue 3 is full"
    assert found.stack == (
        "libmine.so+0x5bdbc",
        "mine::launch (libmine.so)",
        "at::_ops::fill__Scalar::call (libtorch_cpu.so)",
    )
    assert found.python == ("/home/me/mine/kernels.py:12 fill",)


def test_the_calls_of_a_crash_are_those_of_the_dead_thread_each_once() -> None:
    def frame(function: str) -> str:
        return f"frame #1: {function} + 0x1 (0x7f4 in {SITE}/torch/lib/libtorch_cpu.so)"

    copies = ["at::_ops::copy_::call(at::Tensor&)", "at::native::copy_(at::Tensor&)"] * 2
    other = "SIGSEGV(11), PID: 7, Thread 9:\n" + frame("at::_ops::mm::call(at::Tensor const&)")
    grows = ["at::native::resize_bytes_cpu(int)", "at::_ops::resize_::redispatch(c10::DispatchKeySet)"]
    log = "\n".join([*map(frame, [*grows, *copies, "at::native::(anonymous namespace)::mm(int)"]), other])
    assert crash_log.parse(log).calls == ("resize_bytes_cpu", "resize_", "copy_")
    assert crash_log.parse(LOG).calls == ("fill__Scalar",)
    assert crash_log.parse(other.partition("\n")[0]).calls == ()


def test_the_line_of_a_script_is_that_of_the_innermost_frame_in_it() -> None:
    frames = [("/home/me/mine/kernels.py", 12), (FILE, 40), (FILE, 7), (f"{SITE}/conformance/scenarios/walks.py", 300)]
    text = "\n".join(f'  File "{file}", line {line} in work' for file, line in frames)
    assert crash_log.parse(f"Current thread 0x00007f (most recent call first):\n{text}\n").script_line == 40


def test_a_long_native_stack_is_cut() -> None:
    frames = [f"frame #{n}: again() + 0x1 (0x7 in {SITE}/mine/lib/libmine.so)" for n in range(64)]
    assert len(crash_log.parse("\n".join(frames)).stack) == crash_log.FRAMES_SHOWN


def test_a_crash_log_without_stacks_is_all_message() -> None:
    assert crash_log.parse("free(): invalid pointer\n") == crash_log.CrashLog("free(): invalid pointer")

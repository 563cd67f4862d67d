"""Reports as the sanitizers of GCC 12 wrote them, of small programs with one mistake each."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.records import SanitizerReport
from conformance.running import sanitizer_report
from conformance.running.sanitizer_report import Report, function_name

REPORTS = Path(__file__).parent / "sanitizer_reports"


def read(name: str) -> str:
    return (REPORTS / f"{name}.txt").read_text(encoding="utf-8")


def parse(name: str) -> Report:
    found = sanitizer_report.parse(read(name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "kind", "access", "size", "where", "line"),
    [
        ("heap_buffer_overflow", "heap-buffer-overflow", "WRITE", 4, "0 bytes past the end of a block of 40 bytes", 9),
        ("before_the_start", "heap-buffer-overflow", "READ", 4, "4 bytes before the start of a block of 40 bytes", 10),
        ("memcpy_past_the_end", "heap-buffer-overflow", "WRITE", 40, "0 bytes past the end of a block of 20 bytes", 37),
        ("heap_use_after_free", "heap-use-after-free", "WRITE", 4, "0 bytes inside a block of 40 bytes", 9),
        ("double_free", "double-free", "", 0, "0 bytes inside a block of 40 bytes", 11),
        ("bad_free", "bad-free", "", 0, "8 bytes inside a block of 40 bytes", 11),
        ("alloc_dealloc_mismatch", "alloc-dealloc-mismatch", "", 0, "0 bytes inside a block of 16 bytes", 11),
        ("memcpy_param_overlap", "memcpy-param-overlap", "", 0, "0 bytes inside a block of 40 bytes", 35),
        ("negative_size_param", "negative-size-param", "", 0, "4 bytes inside a block of 40 bytes", 36),
        ("stack_buffer_overflow", "stack-buffer-overflow", "READ", 4, "at the local variable 'row'", 2),
        ("stack_use_after_return", "stack-use-after-return", "READ", 4, "at the local variable 'x'", 33),
        ("segv", "SEGV", "WRITE", 0, "", 38),
        ("bool", "bool", "", 0, "", 14),
        ("signed_integer_overflow", "signed-integer-overflow", "", 0, "", 15),
        ("alignment", "alignment", "", 0, "", 18),
        ("data_race", "data-race", "READ", 4, "", 3),
    ],
)
def test_a_sanitizer_report_has_kind_access_place_in_memory_and_line(
    name: str, kind: str, access: str, size: int, where: str, line: int
) -> None:
    found = parse(name)
    assert (found.kind, found.access, found.size, found.where) == (kind, access, size, where)
    assert found.blamed
    assert found.blamed.place.endswith(f".cpp:{line}")


def test_a_report_about_a_global_variable_names_it() -> None:
    assert parse("global_buffer_overflow").where == "0 bytes past the end of the global variable 'global_table'"


def test_a_report_is_shown_without_frames_of_the_runtime() -> None:
    assert str(parse("heap_use_after_free").record()) == (
        "AddressSanitizer: heap-use-after-free: WRITE of 4 bytes, 0 bytes inside a block of 40 bytes\n"
        "  at: backend/t.cpp:9 fill < backend/t.cpp:28 main\n"
        "  block allocated at: backend/t.cpp:8 block < backend/t.cpp:24 main\n"
        "  block freed at: backend/t.cpp:11 release < backend/t.cpp:28 main"
    )


def test_a_report_shows_the_detail_of_its_kind() -> None:
    assert "bool (load of value 2, which is not a valid value for type 'bool')\n" in str(parse("bool").record())
    assert "(operator new [] vs free)" in str(parse("alloc_dealloc_mismatch").record())
    assert "(unknown address 0x000000000010)" in str(parse("segv").record())


def test_a_report_of_a_race_has_two_stacks() -> None:
    found = parse("data_race")
    assert (found.stack[0].place, found.other[0].place) == ("backend/race.cpp:3", "backend/race.cpp:3")
    assert "racing with: backend/race.cpp:3 bump" in str(found.record())


def test_a_report_about_two_blocks_has_the_stack_of_the_first() -> None:
    assert [str(f) for f in sanitizer_report.shown(parse("memcpy_param_overlap").allocated)] == [
        "backend/t.cpp:8 block", "backend/t.cpp:24 main",
    ]  # fmt: skip


def test_a_stack_without_modules_is_attributed_by_its_paths() -> None:
    with_modules, without = parse("heap_use_after_free"), parse("without_modules")
    assert without.blamed
    assert with_modules.blamed
    assert without.blamed.place == with_modules.blamed.place
    assert without.record().freed == with_modules.record().freed


def test_the_record_of_a_report_has_the_blamed_line_and_its_own_frames() -> None:
    assert parse("heap_buffer_overflow").record() == SanitizerReport(
        "AddressSanitizer", "heap-buffer-overflow", access="WRITE", size=4,
        where="0 bytes past the end of a block of 40 bytes", line="backend/t.cpp:9", function="fill",
        stack=("backend/t.cpp:9 fill", "backend/t.cpp:25 main"),
        allocated=("backend/t.cpp:8 block", "backend/t.cpp:24 main"),
    )  # fmt: skip


def test_each_leak_has_its_size_and_the_stack_of_its_allocation() -> None:
    first, second, third = sanitizer_report.leaks(read("leak"))
    assert (first.bytes, first.objects, first.direct, first.own) == (200, 2, True, True)
    assert [str(f) for f in sanitizer_report.shown(first.stack)] == [
        "backend/t.cpp:8 block", "backend/t.cpp:19 lose", "backend/t.cpp:47 main",
    ]  # fmt: skip
    assert (second.bytes, third.bytes) == (100, 40)


def test_a_leak_of_the_interpreter_is_not_the_backends_own() -> None:
    (leak,) = sanitizer_report.leaks(
        "Direct leak of 1504 byte(s) in 47 object(s) allocated from:\n"
        "    #0 0x7f65dacb89cf in __interceptor_malloc ../asan_malloc_linux.cpp:69 @/usr/lib/libasan.so.8\n"
        "    #1 0x7f65da4a9264 in PyThread_allocate_lock Python/thread_pthread.h:385 @/usr/lib/libpython3.11.so.1.0\n"
    )
    assert not leak.own


def test_a_leak_without_known_frames_is_not_the_backends_own() -> None:
    (leak,) = sanitizer_report.leaks(
        "Direct leak of 32 byte(s) in 1 object(s) allocated from:\n"
        "    #0 0x7fe4708b89cf in __interceptor_malloc ../asan_malloc_linux.cpp:69 @/usr/lib/libasan.so.8\n"
        "    #1 0x7fe470ed300f  (<unknown module>) @<null>\n"
    )
    assert not leak.own


def test_leaks_and_refused_allocations_are_no_error_report() -> None:
    assert sanitizer_report.parse(read("leak")) is None
    assert sanitizer_report.parse("==1==WARNING: AddressSanitizer failed to allocate 0x1000 bytes\n") is None
    assert sanitizer_report.parse("free(): invalid pointer\nAborted\n") is None


def test_a_frame_in_headers_of_torch_is_not_the_blamed_line() -> None:
    found = sanitizer_report.parse(
        "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1 at pc 0x2 bp 0x3 sp 0x4\n"
        "READ of size 8 at 0x1 thread T0\n"
        "    #0 0x1 in __interceptor_memcpy ../sanitizer_common_interceptors.inc:827 @/usr/lib/libasan.so.8\n"
        "    #1 0x2 in c10::IntArrayRef::at(long) /venv/torch/include/c10/util/ArrayRef.h:92 @/venv/demo/_C.so\n"
        "    #2 0x3 in demo::copy(at::Tensor const&) aten/copy.cpp:12 @/venv/demo/_C.so\n"
        "    #3 0x4 in c10::Dispatcher::call() (/torch/lib/libtorch_cpu.so+0x99) @/torch/lib/libtorch_cpu.so\n"
    )
    assert found
    assert str(found.blamed) == "aten/copy.cpp:12 demo::copy"
    assert str(found.record()).endswith("\n  at: aten/copy.cpp:12 demo::copy")


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("fill(float*, unsigned long, float)", "fill"),
        ("void demo::(anonymous namespace)::fill<float, 4>(int (*)(demo::View))", "demo::fill"),
        ("demo::launch(at::Tensor const&)::{lambda(int)#1}::operator()(int) const", "demo::launch::{lambda}"),
        ("operator()", "operator()"),
        ("operator new(unsigned long)", "operator new"),
        ("std::vector<int, std::allocator<int> >::at(unsigned long) const [clone .isra.0]", "std::vector::at"),
        ("_start", "_start"),
    ],
)
def test_a_function_is_shown_without_its_types(signature: str, name: str) -> None:
    assert function_name(signature) == name

"""A parser of reports by GCC's AddressSanitizer, LeakSanitizer, ThreadSanitizer and UndefinedBehaviorSanitizer. Pure.

A stack's *own* frames belong to the code under test, not to the sanitizer, the C library, Python or torch. The options
that ``sanitizers`` sets add the module to each frame, which decides. Without a module, the source's path decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.records import SanitizerReport

FRAMES_SHOWN = 4

_ELSE = "not shown"  # stacks that are not part of the record

_ERROR = re.compile(r"(?:ERROR|WARNING): (Address|Thread)Sanitizer: (?!failed to allocate)(.+)")
_UNDEFINED = re.compile(r"^(\S+?):(\d+):(?:\d+:)? runtime error: (.+)$")
_ACCESS = re.compile(r"^\s*(?:Previous )?(?:atomic )?(READ|WRITE) of size (\d+)", re.IGNORECASE)
_SIGNAL = re.compile(r"The signal is caused by a (READ|WRITE) memory access")
_REGION = re.compile(
    r"is located (\d+) bytes (to the right of|to the left of|after|before|inside of) (\d+)-byte region"
)
_VARIABLE = re.compile(
    r"is located (\d+) bytes (to the right of|to the left of|after|before|inside of) global variable '(.+?)'"
)
_OF_STACK = re.compile(r"'(\S+)' \(line \d+\) <== Memory access")
_LEAK = re.compile(r"^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:")
_FRAME = re.compile(r"^\s*#\d+ (?:0x[0-9a-f]+ )?(?:in )?(?P<what>.*?)(?: @(?P<module>\S+))?\s*$")
_LINE = r"\S+?:\d+(?::\d+)?"
_MODULE = r"\([^()]*\+0x[0-9a-f]+\)(?: \(BuildId: \w+\))?|\(<unknown module>\)"
_PLACE = re.compile(rf"^(?P<function>.*?) ?(?P<place>{_LINE}|{_MODULE})$")
_END = re.compile(r"^(SUMMARY: |Shadow bytes around|==\d+==ABORTING|AddressSanitizer can not provide|HINT: )")

# Names for errors whose report does not begin with a name.
_NAMES = (
    (r"attempting double-free", "double-free"),
    (r"attempting free on address which was not malloc", "bad-free"),
    (r"data race", "data-race"),
)
_UNDEFINED_NAMES = (
    (r"signed integer overflow|negation of|division of -?\d+ by -1", "signed-integer-overflow"),
    (r"shift (exponent|of negative)|left shift", "shift"),
    (r"division by zero", "integer-divide-by-zero"),
    (r"not a valid value for type 'bool'", "bool"),
    (r"not a valid value for type", "enum"),
    (r"misaligned address", "alignment"),
    (r"null pointer", "null"),
    (r"index .* out of bounds", "bounds"),
    (r"outside the range of representable", "float-cast-overflow"),
    (r"pointer index expression|offset .* to (null|non-null) pointer", "pointer-overflow"),
    (r"insufficient space", "object-size"),
    (r"does not point to an object of type", "vptr"),
    (r"unreachable", "unreachable"),
)

# Modules, or sources if the module is unknown, that are not the code under test.
_OTHERS = re.compile(
    r"/lib(asan|ubsan|tsan|lsan|c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|python[\d.]*)(?:[-.\d][-.\d\w]*)?\.so|/ld-linux|\[vdso\]"
    r"|/torch/(lib|_C|bin)|/lib-dynload/|/numpy|/python[\d.]*$|<unknown module>|<null>"
)
_OTHER_SOURCES = re.compile(
    r"libsanitizer/|^\.\./(sysdeps|csu|nptl)/|^(Objects|Python|Modules|Parser|Programs|Include)/|\+0x"
)
_HEADERS = re.compile(r"/torch/include/|^/usr/|/include/c\+\+/|/pybind11/")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack: the function without its arguments, ``file:line`` if known, and the module's path."""

    function: str
    place: str
    module: str = ""

    @property
    def own(self) -> bool:
        """Whether the frame belongs to the code under test."""
        if self.module:
            return not _OTHERS.search(self.module)
        return bool(self.place) and not (_OTHER_SOURCES.search(self.place) or _HEADERS.search(self.place))

    def __str__(self) -> str:
        return f"{self.place or self.module} {self.function}".strip()


Stack = tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One error. ``access``: READ, WRITE or ""; ``size``: bytes, 0 if unknown."""

    sanitizer: str  # e.g. "AddressSanitizer"
    kind: str  # e.g. "heap-buffer-overflow", or a name of -fsanitize, e.g. "signed-integer-overflow"
    detail: str  # the rest of the first line
    access: str = ""
    size: int = 0
    where: str = ""  # e.g. "0 bytes past the end of a block of 40 bytes"
    stack: Stack = ()
    other: Stack = ()  # the other access of a data race
    allocated: Stack = ()
    freed: Stack = ()

    @property
    def blamed(self) -> Frame | None:
        """The innermost frame in a source of the code under test, None if there is none."""
        return blamed(self.stack)

    def record(self) -> SanitizerReport:
        """Return the record of the error, with the relevant frames of each stack."""
        found = self.blamed
        place, function = (found.place, found.function) if found else ("", "")
        stacks = (tuple(map(str, shown(stack))) for stack in (self.stack, self.other, self.allocated, self.freed))
        return SanitizerReport(
            self.sanitizer, self.kind, self.detail, self.access, self.size, self.where, place, function, *stacks
        )


@dataclass(frozen=True, slots=True)
class Leak:
    """Leaked memory that was allocated at one stack."""

    direct: bool
    bytes: int
    objects: int
    stack: Stack

    @property
    def own(self) -> bool:
        """Whether a frame belongs to the code under test."""
        return any(frame.own for frame in self.stack)


def parse(log: str) -> Report | None:
    """Return the first error in a log, None if there is none. For leaks see :func:`leaks`."""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if found := _ERROR.search(line):
            kind, detail = _named(found[2], _NAMES)
            return _report(f"{found[1]}Sanitizer", kind, detail, lines[number + 1 :])
        if found := _UNDEFINED.match(line):
            kind = next((name for pattern, name in _UNDEFINED_NAMES if re.search(pattern, found[3])), "undefined")
            return _undefined(kind, found[3], f"{found[1]}:{found[2]}", lines[number + 1 :])
    return None


def leaks(log: str) -> list[Leak]:
    """Return all leaks of all searches in a log, in order."""
    lines = log.splitlines()
    return [
        Leak(found[1] == "Direct", int(found[2]), int(found[3]), tuple(_frames(lines[number + 1 :])))
        for number, line in enumerate(lines)
        if (found := _LEAK.match(line))
    ]


def blamed(stack: Stack) -> Frame | None:
    """Return the innermost own frame outside other projects' headers, else the innermost own frame, else None."""
    own = [frame for frame in stack if frame.own]
    return next(iter(_lines(own)), own[0] if own else None)


def shown(stack: Stack) -> list[Frame]:
    """Return the frames for a message: the innermost own lines, else own frames, else the innermost frames."""
    own = [frame for frame in stack if frame.own]
    return (_lines(own) or own or list(stack))[:FRAMES_SHOWN]


def _lines(own: list[Frame]) -> list[Frame]:
    return [frame for frame in own if frame.place and not _HEADERS.search(frame.place)]


def function_name(signature: str) -> str:
    """Return ``a::b`` for ``void a::(anonymous namespace)::b<float, 4>(int (*)(a::c)) [clone .constprop.0]``."""
    text = signature.replace("(anonymous namespace)::", "").replace("decltype(auto)", "").partition(" [clone")[0]
    text = re.sub(r"\{lambda\(.*?\)#\d+\}", "{lambda}", text)
    text = re.sub(r"operator\(\)", "operator{}", text).replace("operator ", "operator\0")
    text = _without_brackets(text).replace("::operator{}", "").replace("operator{}", "operator()")
    return text.replace(" const", "").strip().rpartition(" ")[2].replace("\0", " ") or signature


def _without_brackets(text: str) -> str:
    """Return the text outside all parentheses and angle brackets."""
    kept, depth = [], 0
    for character in text:
        depth += character in "(<"
        if not depth:
            kept.append(character)
        depth -= character in ")>"
    return "".join(kept)


def _named(words: str, names: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the kind's name and the rest of the line."""
    for pattern, name in names:
        if re.match(pattern, words):
            return name, ""
    kind, _, rest = words.partition(" ")
    found = re.search(r"\((?!pc )(.*?)\)|memory ranges .*|unknown address( 0x\w+)?", rest)
    return kind.rstrip(":"), found[0].strip("()") if found else ""


def _undefined(kind: str, message: str, place: str, lines: list[str]) -> Report:
    stack = tuple(_frames(lines, skip=6)) or (Frame("", place),)
    return Report("UndefinedBehaviorSanitizer", kind, message, stack=stack)


def _report(sanitizer: str, kind: str, detail: str, lines: list[str]) -> Report:
    """Return the error. ``lines``: the lines after its first line."""
    stacks: dict[str, list[Frame]] = {"stack": [], "other": [], "allocated": [], "freed": []}
    current, access, size, where = "stack", "", 0, ""
    for line in lines:
        if _END.match(line) and stacks["stack"]:
            break
        if frame := _frame(line):
            stacks.get(current, []).append(frame)
            continue
        named = _section(line, current)
        current = _ELSE if stacks.get(named) else named  # ignore a second stack of the same kind
        if not access and (found := _ACCESS.match(line) or _SIGNAL.search(line)):
            access, size = found[1].upper(), int(found[2]) if found.re is _ACCESS else 0
        where = where or _where(line)
    return Report(sanitizer, kind, detail, access, size, where, **{k: tuple(v) for k, v in stacks.items()})


def _section(line: str, current: str) -> str:
    """Return the stack to which the frames after this line belong."""
    for pattern, name in (
        (r"^\s*freed by thread", "freed"),
        (r"^\s*(previously )?allocated by|Location is heap block", "allocated"),
        (r"^\s*Previous (atomic )?(read|write)", "other"),
        (r"is located in stack of thread|created by|Mutex .* created", _ELSE),
    ):
        if re.search(pattern, line):
            return name
    return current


def _where(line: str) -> str:
    """Return the position of the address in words, "" if the line does not contain it."""
    if found := _REGION.search(line):
        return f"{found[1]} bytes {_SIDES[found[2]]} a block of {found[3]} bytes"
    if found := _VARIABLE.search(line):
        return f"{found[1]} bytes {_SIDES[found[2]]} the global variable '{found[3]}'"
    if found := _OF_STACK.search(line):
        return f"at the local variable '{found[1]}'"
    return ""


_SIDES = {
    "to the right of": "past the end of", "after": "past the end of", "to the left of": "before the start of",
    "before": "before the start of", "inside of": "inside",
}  # fmt: skip


def _frames(lines: list[str], skip: int = 0) -> Iterator[Frame]:
    """Yield the frames at the beginning of ``lines``, after at most ``skip`` other lines."""
    began = False
    for number, line in enumerate(lines):
        frame = _frame(line)
        if frame:
            began = True
            yield frame
        elif began or number >= skip:
            return


def _frame(line: str) -> Frame | None:
    found = _FRAME.match(line)
    if not found:
        return None
    place = _PLACE.match(found["what"])
    if not place:
        return Frame(function_name(found["what"]), "", found["module"] or "")
    source = place["place"]
    if source.startswith("("):  # (module+offset), without a line
        module = found["module"] or source[1:].partition("+0x")[0].rstrip(")")
        return Frame(function_name(place["function"]), "", module)
    return Frame(function_name(place["function"]), source, found["module"] or "")

"""The stderr of a dead process, split into the message, the native stack and the Python stack. Pure.

torch prints the native stack (``frame #5: ...``), faulthandler the Python stack. Frames of the suite, of the C library
and of Python are left out, because they say nothing about a backend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from conformance.running.sanitizer_report import Frame, function_name
from conformance.scenarios import running_script

FRAMES_SHOWN = 8
TORCH_FRAMES_SHOWN = 3
PYTHON_FRAMES_SHOWN = 4
_LONGEST_MESSAGE = 3000  # characters; the first ones are kept

_FRAME = re.compile(r"^\s*frame #\d+: (?P<function>.*) \+ (?P<offset>0x[0-9a-f]+) \(0x[0-9a-f]+ in (?P<module>.*)\)$")
_THREAD = re.compile(r"^\S.*, PID: \d+, Thread \d+:\s*$")
_PYTHON_THREAD = re.compile(r"^(Current thread|Thread|Stack) .*\(most recent call first\):$")
_PYTHON_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_NOISE = re.compile(r"^(Extension modules: |<omitting python frames>|Fatal Python error: )")
# A call through the dispatcher, or of a kernel of torch, which usually has the name of its overload.
_CALL = re.compile(r"^at::(?:_ops::(\w+)::(?:call|redispatch)|native::(\w+))\(")
_UNKNOWN = "<unknown function>"
_TORCH = re.compile(r"/torch/lib/|/torch/_C")
_SUITE = re.compile(r"(^|/)conformance/(judging|running|plugin|plan|calls|triage|scenarios)/|/torch/_ops\.py$")


@dataclass(frozen=True, slots=True)
class CrashLog:
    """The parts of a log."""

    message: str
    stack: tuple[str, ...] = ()  # frames of the thread that died, the backend's frames first
    calls: tuple[str, ...] = ()  # overloads that the thread was calling, the innermost first, e.g. ``fill__Scalar``
    python: tuple[str, ...] = ()  # Python frames without those of the suite, the innermost first
    script_line: int = 0  # if the program writes scripts: the number of the script's line that ran; 0 if unknown


def parse(log: str) -> CrashLog:
    """Return the parts of a log."""
    message: list[str] = []
    threads: list[list[tuple[str, Frame]]] = []
    python: list[str] = []
    script_line = 0
    for line in log.splitlines():
        if _THREAD.match(line):
            threads.append([])
        elif found := _FRAME.match(line):
            threads = threads or [[]]
            threads[-1].append((_text(found), Frame(found["function"], "", found["module"])))
        elif found := _PYTHON_FRAME.match(line):
            python.append(f"{found['file']}:{found['line']} {found['function']}")
            if found["file"] == running_script.FILE and not script_line:
                script_line = int(found["line"])
        elif not (_PYTHON_THREAD.match(line) or _NOISE.match(line) or _is_end_of_stack(line)):
            message.append(line)
    shown = "\n".join(message).strip()[:_LONGEST_MESSAGE]
    died = threads[0] if threads else []
    calls = (found[1] or found[2] for _, frame in died if (found := _CALL.match(frame.function)))
    return CrashLog(shown, tuple(_native(died)), tuple(dict.fromkeys(calls)), tuple(_outside(python)), script_line)


def _is_end_of_stack(line: str) -> bool:
    return line.strip() in ("", "...", "<no Python frame>")


def _text(found: re.Match[str]) -> str:
    module = PurePath(found["module"]).name
    if found["function"] == _UNKNOWN:
        return f"{module}+{found['offset']}"
    return f"{function_name(found['function'])} ({module})"


def _native(frames: Iterable[tuple[str, Frame]]) -> Iterator[str]:
    """Yield the frames of the backend, then the innermost named ones of torch."""
    frames = list(frames)
    own = [text for text, frame in frames if frame.own]
    named = (text for text, frame in frames if _TORCH.search(frame.module) and frame.function != _UNKNOWN)
    torchs = [text for text in named if "FatalSignalHandler" not in text]
    yield from (own + torchs[:TORCH_FRAMES_SHOWN])[:FRAMES_SHOWN]


def _outside(frames: list[str]) -> list[str]:
    """Return the innermost frames that come before the first frame of the suite."""
    suite = (n for n, frame in enumerate(frames) if _SUITE.search(frame.rpartition(":")[0]))
    return frames[: next(suite, len(frames))][:PYTHON_FRAMES_SHOWN]

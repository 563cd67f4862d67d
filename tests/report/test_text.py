"""The report as text: its content, in which no text of results is markup or a control character."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance.cli import commands
from conformance.records import Mismatch
from conformance.report import gather, text
from conformance.vocabulary import Check
from tests.records import observed
from tests.report.results import bad, nights, ran


def shown(results: Path, width: int = 200) -> str:
    out = io.StringIO()
    text.show(gather.gather(results, results, (), 30), Console(file=out, width=width, color_system=None))
    return out.getvalue()


def test_the_text_report_has_lanes_new_failures_and_coverage(tmp_path: Path) -> None:
    nights(tmp_path)
    lines = [" ".join(line.split()) for line in shown(tmp_path).splitlines()]
    assert "demo-torch2.8-malloc-release 2026-01-02 04:00 3 1 1 1 · 33.3 % 1 min 1 s balances" in lines
    assert (
        "newly failing 1 masked_fill_.Scalar[float32-offset_gap] pass → fail (untouched) demo-torch2.8-malloc-release"
        in lines
    )
    assert any(line.startswith("1 masked_fill_.Scalar fail (untouched) 1 self: 8 bytes outside") for line in lines)
    assert "masking 2 ·" in lines
    assert "demo-torch2.13-malloc-release 1/3 1/2" in lines


def test_cells_that_change_alike_in_many_lanes_are_one_line(tmp_path: Path) -> None:
    for lane in ("demo-torch2.8-malloc-release", "demo-torch2.13-malloc-release"):
        ran(tmp_path, 0, observed("mm"), lane=lane)
        ran(tmp_path, 1, bad("mm", "float32-contiguous"), lane=lane, backend_commit="b")
    lines = [" ".join(line.split()) for line in shown(tmp_path).splitlines()]
    assert "newly failing 2 mm[float32-contiguous] pass → fail (untouched) 2 lanes" in lines


def test_no_number_is_broken_in_a_narrow_terminal(tmp_path: Path) -> None:
    ran(
        tmp_path, 1, *(observed(f"op_{n}") for n in range(123)), lane="demo-torch2.13-aligned_alloc-release-with-a-name"
    )
    rows = shown(tmp_path, width=80).splitlines()
    row = next(line for line in rows if line.startswith("demo-"))
    assert row.split()[1:3] == ["123", "123"]
    assert "balances" in row
    assert max(map(len, rows)) <= 80


def test_a_long_message_leaves_room_for_what_failed(tmp_path: Path) -> None:
    long = Mismatch(Check.VALUE, "result", {"kind": "plain", "device": "differs " * 40, "cpu": ""})
    ran(tmp_path, 1, bad("masked_fill_.Scalar", mismatch=long))
    assert any("masked_fill_.Scalar" in line and "…" in line for line in shown(tmp_path, width=80).splitlines())


def test_a_piped_text_report_has_no_wrapped_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lane = "demo-torch2.13-aligned_alloc-release-with-a-name"
    ran(tmp_path, 1, observed("mm"), lane=lane)
    said = CliRunner().invoke(commands, ["report", "--text", "--results", str(tmp_path)]).output
    assert any(lane in line and "balances" in line for line in said.splitlines())


def test_a_quiet_night_is_said_so(tmp_path: Path) -> None:
    ran(tmp_path, 1, observed("mm"))
    assert "New tonight: no earlier run to compare with" in shown(tmp_path)
    ran(tmp_path, 2, observed("mm"))
    said = shown(tmp_path)
    assert "New tonight: nothing changed" in said
    assert "Failing: nothing" in said


def test_no_text_of_results_is_markup_or_moves_the_cursor(tmp_path: Path) -> None:
    planted = "[bold red]x[/] [link=https://example.org]y[/link] \x1b[2J\x07\u202e\n\r"
    found = Mismatch(Check.DEVICE, "", {"kind": "plain", "device": planted, "cpu": ""})
    ran(tmp_path, 1, bad("[blink]op", mismatch=found), lane="demo-[red]lane\x1b[31m")
    said = shown(tmp_path)
    assert "[bold red]x[/] [link=https://example.org]y[/link] \\x1b[2J\\x07\\u202e" in said
    assert "[blink]op" in said
    assert "demo-[red]lane\\x1b[31m" in said
    assert not set("\x1b\x07\u202e\r") & set(said)


def test_the_command_prints_it(tmp_path: Path) -> None:
    nights(tmp_path)
    run = CliRunner().invoke(commands, ["report", "--text", "--results", str(tmp_path)])
    assert run.exit_code == 0
    assert "New tonight" in run.output

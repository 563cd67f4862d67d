"""The report in a real browser, opened from files: its content, its keys and addresses, and text that must not run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest

from tests.report.results import HOSTILE, PROGRAM
from tools.browser import look, requests, visit, wait

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

VIEWS = ("overview", "causes", "new", "map", "cells", "coverage", "kill-rate", "flaky", "speed")
CELL = "ops/masking.py::masked_fill_.Scalar[float32-offset_gap]"
CELL_PAGE = f"#/cell/{quote(CELL, safe='')}"
SIZES = {"phone": (390, 844), "tablet": (1024, 768), "desk": (1680, 1050)}


def js(page: Chrome, script: str, *arguments: object) -> Any:
    return page.execute_script(script, *arguments)


def texts(page: Chrome, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.replace(/\\s+/g, ' '))"
    found: list[str] = js(page, script, selector)
    return found


def console(page: Chrome) -> list[str]:
    return [entry["message"] for entry in page.get_log("browser")]


def press(page: Chrome, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(page).send_keys(key).perform()


@pytest.mark.parametrize("view", [*VIEWS, CELL_PAGE[2:]])
def test_every_view_opens_from_a_file_without_a_network_or_an_error(page: Chrome, report: Path, view: str) -> None:
    visit(page, report, f"#/{view}")
    assert console(page) == []
    assert texts(page, "main h1") != []
    assert texts(page, "main .alarm") == []
    (shown,) = texts(page, "main")
    assert [word for word in ("[object", "undefined", "NaN", "null") if word in shown] == []
    loaded = requests(page)
    waits_for_cells = view not in ("overview", "coverage", "kill-rate", "speed")
    assert any(name.endswith("/data/lane-1.js") for name in loaded) is waits_for_cells
    assert [name for name in loaded if not name.startswith(("file://", "about:"))] == []


def test_the_overview_says_what_each_lane_came_to(page: Chrome, report: Path) -> None:
    visit(page, report)
    figures = dict(zip(texts(page, ".card .title"), texts(page, ".card .figure")))
    assert figures == {"Newly failing": "1", "Failing": "3", "Flaky": "0", "Accounting": "balances"}
    assert texts(page, ".lane strong") == ["demo-torch2.8-malloc-release", "demo-torch2.13-malloc-release"]
    assert "1 newly failing" in texts(page, ".lane .news")


def test_new_failures_are_grouped_and_link_to_their_cells(page: Chrome, report: Path) -> None:
    visit(page, report, "#/new")
    assert texts(page, "main h2") == ["Newly failing 1 cell", "Changed kind 1 cell", "New 1 cell", "Fixed 1 cell"]
    (first, *_) = texts(page, ".change")
    assert first == "1 masked_fill_.Scalar[float32-offset_gap] pass → fail (untouched) demo-torch2.8-malloc-release"
    js(page, "document.querySelector('.change').click()")
    wait(page, "return document.querySelector('.verdict')")
    assert texts(page, ".news") == ["Tonight newly failing: pass → fail (untouched)"]


def test_speed_ranks_cases_and_draws_them_with_the_limits(page: Chrome, report: Path) -> None:
    visit(page, report, "#/speed")
    assert texts(page, "main tbody th code") == ["mm", "neg"]
    assert len(js(page, "return [...document.querySelectorAll('.roofline')]")) == 2
    assert js(page, "return document.querySelectorAll('.roofline circle').length") == 3  # mm in both drawings
    assert js(page, "return [...document.querySelectorAll('.limit')].every((l) => l.points.length > 50)")


def test_the_map_opens_down_to_a_cell(page: Chrome, report: Path) -> None:
    visit(page, report, "#/map")
    assert texts(page, ".map .version") == ["2.8.0", "2.13.0"]
    for selector in (".heat.bad4 a", "tbody tr:nth-child(1) .heat.bad4 a", ".one a"):
        js(page, "document.querySelector(arguments[0]).click()", selector)
        wait(page, "return document.documentElement.dataset.drawn === location.hash")
    assert unquote(page.current_url).partition("#/cell/")[2].startswith("ops/masking.py::m")


def test_a_failing_case_has_its_arguments_drawn_as_they_lie(page: Chrome, report: Path) -> None:
    visit(page, report, CELL_PAGE)
    drawn = js(
        page,
        """
        const kinds = (kind) => document.querySelector(".argument .storage").querySelectorAll("rect." + kind).length;
        return ["once", "many", "before", "gap", "wrong"].map(kinds)""",
    )
    assert drawn == [6, 0, 5, 6, 1]  # size [2, 3], stride [5, 1], offset 5, storage 17; wrong at byte 32 of 68
    said = texts(page, "pre.message")[0]
    assert "untouched: self: 8 bytes outside the view" in said
    assert "kernels: masked_fill_ -> fill_" in said
    assert [t.removesuffix(" copy") for t in texts(page, ".failure > pre.command")] == [
        f"pytest --pyargs conformance --backend demo --case '{CELL}#opinfo.masked_fill.3@self'",
        f"conformance repro --backend demo '{CELL}#opinfo.masked_fill.3@self'",
    ]
    js(page, "document.querySelector('.program summary').click()")
    assert js(page, "return document.querySelector('.program code').textContent") == PROGRAM
    assert texts(page, ".plain td .strip") == ["F", "·"]


def test_a_cause_shows_its_cells_its_contrasts_and_its_commands(page: Chrome, report: Path) -> None:
    visit(page, report, "#/causes")
    assert texts(page, "main h2") == ["demo-torch2.8-malloc-release 2 failing cells, 1 kernel, the fallback"]
    assert texts(page, ".cause summary") == ["1 the fallback (SIGSEGV) 1 overload", "1 masked_fill_ 1 overload"]
    shown = texts(page, ".cause:last-child")[0]
    assert f"Example F {CELL}#opinfo.masked_fill.3@self" in shown
    assert [t.removesuffix(" copy") for t in texts(page, ".cause:last-child pre.command")] == [
        f"pytest --pyargs conformance --backend demo --case '{CELL}#opinfo.masked_fill.3@self'",
        f"conformance triage --backend demo '{CELL}#opinfo.masked_fill.3@self'",
    ]
    js(page, "document.querySelector('.cause:last-child .case a').click()")
    wait(page, "return document.querySelector('.cause-of')")
    assert texts(page, ".cause-of") == ["Cause: masked_fill_, which explains 1 failing cell"]


def test_overloads_that_call_a_broken_kernel_are_listed_under_it(page: Chrome, called: Path) -> None:
    visit(page, called, "#/causes")
    assert texts(page, ".cause summary") == ["3 _copy_from 3 overloads"]
    shown = texts(page, ".cause")[0]
    assert "Its own _copy_from 1 They call it clone 1, contiguous 1" in shown
    assert "layout fails in offset_gap; all pass in contiguous" in shown
    js(page, "[...document.querySelectorAll('.cause a')].find((a) => a.innerText === '3 cells').click()")
    wait(page, "return document.getElementById('found')")
    assert texts(page, "#found") == ["3 of 4 cells"]


def test_a_cause_has_an_address_and_the_keyboard_leads_to_it(page: Chrome, report: Path) -> None:
    from selenium.webdriver import Keys

    visit(page, report, "#/overview")
    press(page, "2")
    wait(page, "return document.documentElement.dataset.drawn === '#/causes'")
    press(page, "j", "j", Keys.ENTER)
    wait(page, "return location.hash.startsWith('#/causes/masked_fill_') && document.querySelector('.cause')")
    assert texts(page, ".cause[open] summary code") == ["masked_fill_"]
    press(page, "j", Keys.ENTER)
    wait(page, "return location.hash.startsWith('#/causes/the%20fallback') && document.querySelector('.cause')")
    assert texts(page, ".cause[open] summary code") == ["the fallback (SIGSEGV)"]
    visit(page, report, "#/causes/no_such")
    assert "no_such is no cause here." in texts(page, "main p")
    visit(page, report, "#/causes?lane=demo-torch2.13-malloc-release")
    assert texts(page, "main p")[-1] == "No cell of this lane fails that is not known to fail."


def test_the_result_of_bisect_is_on_the_page_of_its_case(page: Chrome, report: Path) -> None:
    visit(page, report, CELL_PAGE)
    (said,) = texts(page, ".bisect > p:first-child")
    assert said.startswith("last good torch v5 (demo==5), first bad torch v6 (demo==6), confidence ")
    assert any("torch v15" in row and "bad" in row for row in texts(page, ".bisect tbody tr"))


def test_the_kill_rate_names_the_survivors(page: Chrome, report: Path) -> None:
    visit(page, report, "#/kill-rate")
    assert texts(page, ".card .figure") == ["3 of 4", "1", "0"]
    assert texts(page, ".listed .item") == ["a_fault needs another stream"]


def test_flaky_cells_show_their_nights(page: Chrome, hostile: Path) -> None:
    visit(page, hostile, "#/flaky")
    assert texts(page, ".item .strip") == ["· F · F"]
    assert "the same build both failed and passed" in texts(page, ".item")[0]


def test_overloads_that_were_not_reached_are_found_by_their_reason(page: Chrome, report: Path) -> None:
    visit(page, report, "#/coverage?q=nothing+to")
    assert texts(page, "#q + div summary") == ["1nothing to compare"]
    visit(page, report, "#/coverage?q=no-such")
    assert texts(page, "#q + div summary") == []


def test_operators_that_models_need_and_nothing_implements_are_listed(page: Chrome, report: Path) -> None:
    visit(page, report, "#/coverage")
    (shown,) = [text for text in texts(page, ".item summary") if "convolution_overrideable" in text]
    assert shown.endswith("convolution_overrideable 2 other overloads cannot run without it")


def test_a_case_has_an_address_of_its_own(page: Chrome, report: Path) -> None:
    visit(page, report, CELL_PAGE)
    link = js(page, "return document.querySelector('.failure .case a').href")
    assert unquote(link).endswith(f"#/cell/{CELL}#opinfo.masked_fill.3@self?lane=demo-torch2.8-malloc-release")
    visit(page, report, link[link.index("#") :])
    assert js(page, "return document.querySelectorAll('.failure[open]').length") == 1
    visit(page, report, f"{CELL_PAGE}{quote('#another')}")
    assert js(page, "return document.querySelectorAll('.failure[open]').length") == 0


def test_a_repaired_cell_shows_its_nights(page: Chrome, report: Path) -> None:
    cell = quote("ops/masking.py::where.self[float32-offset_gap]", safe="")
    visit(page, report, f"#/cell/{cell}?lane=demo-torch2.8-malloc-release")
    assert "Tonight fixed: fail (untouched) → pass" in texts(page, "main section p")
    assert texts(page, ".plain td .strip") == ["·", "F"]


def test_a_crash_shows_its_layout_on_an_example(page: Chrome, report: Path) -> None:
    visit(page, report, f"#/cell/{quote('ops/masking.py::mm[float32-contiguous]', safe='')}")
    assert "crash (SIGSEGV)" in texts(page, ".verdict")[0]
    assert js(page, "return document.querySelectorAll('.storage rect.once').length") == 12


def test_a_known_failure_says_its_reason_and_links_to_the_web_alone(page: Chrome, report: Path, hostile: Path) -> None:
    where = "#/cell/" + quote("ops/masking.py::where.self[float32-offset_gap]", safe="")
    visit(page, report, f"{where}?lane=demo-torch2.13-malloc-release")
    assert "not yet" in texts(page, ".known")[0]
    assert js(page, "return document.querySelector('.known a').href") == "https://example.org/1"
    visit(page, hostile, "#/cells")
    js(page, "document.querySelector('.row').click()")
    wait(page, "return document.querySelector('.known')")
    assert "javascript:" in texts(page, ".known")[0]
    assert js(page, "return document.querySelectorAll('.known a').length") == 0


@pytest.mark.parametrize("view", VIEWS)
def test_no_text_of_results_is_run_or_taken_for_markup(page: Chrome, hostile: Path, view: str) -> None:
    visit(page, hostile, f"#/{view}")
    own = js(page, "return [...document.scripts].every((s) => s.src.startsWith('file://') && !s.text)")
    assert own
    assert js(page, "return typeof window.planted") == "undefined"
    assert js(page, "return document.querySelectorAll('main img, main script, main iframe').length") == 0
    assert console(page) == []


def test_hostile_text_is_shown_as_it_is(page: Chrome, hostile: Path) -> None:
    visit(page, hostile, "#/cells")
    js(page, "document.querySelector('.row').click()")
    wait(page, "return document.querySelector('.failure')")
    shown = js(page, "return document.querySelector('main').textContent")
    assert shown.count(HOSTILE) > 8
    assert js(page, "return typeof window.planted") == "undefined"
    assert js(page, "return document.querySelectorAll('main img, main script').length") == 0
    assert console(page) == []


def test_words_planted_in_the_address_are_words(page: Chrome, report: Path) -> None:
    for route in (
        f"#/cells?q={quote(HOSTILE)}&lane={quote(HOSTILE)}",
        f"#/cell/{quote(HOSTILE, safe='')}",
        f"#/{quote(HOSTILE)}",
    ):
        visit(page, report, route)
        assert js(page, "return typeof window.planted") == "undefined"
        assert js(page, "return document.querySelectorAll('main img, main script').length") == 0


def test_a_search_is_kept_in_the_address_and_found_again(page: Chrome, report: Path) -> None:
    visit(page, report, "#/cells")
    assert texts(page, "#found") == ["3 cells"]
    press(page, "/", *"where")
    assert texts(page, "#found") == ["1 of 3 cells"]
    js(page, "[...document.querySelectorAll('.chip')].find((c) => c.innerText.includes('pass')).click()")
    address = page.current_url
    assert address.endswith("#/cells?q=where&status=pass")
    page.get("about:blank")
    page.get(address)
    wait(page, "return document.documentElement.dataset.drawn")
    assert texts(page, "#found") == ["1 of 3 cells"]
    assert js(page, "return document.getElementById('q').value") == "where"


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("status=fail,crash", 3), ("status=fail&lane=demo-torch2.13-malloc-release", 1), ("check=SIGSEGV", 1),
        ("check=untouched", 2), ("change=newly+failing", 1), ("known=known", 1), ("known=not+known", 2),
        ("route=fallback", 1), ("cause=the+fallback", 1), ("cause=masked_fill_&lane=demo-torch2.8-malloc-release", 1),
        ("cause=nothing", 0), ("dtype=float32", 3), ("layout=offset_gap", 2), ("q=outside+changed", 2),
        ("q=no-such", 0),
        ("q=where+offset_gap", 1), ("q=where+contiguous", 0),
        (f"q={quote(CELL)}%23opinfo.masked_fill.3%40self", 1), ("family=masking&overload=where.self", 1),
        ("status=unsupported", 1), ("lane=nobody", 0),
    ],
)  # fmt: skip
def test_filters_leave_what_they_say(page: Chrome, report: Path, filters: str, count: int) -> None:
    visit(page, report, f"#/cells?{filters}")
    assert texts(page, "#found") == [f"{count} of 3 cells"] or (count, texts(page, "#found")) == (3, ["3 cells"])
    assert len(texts(page, ".row")) == count


def test_the_keyboard_walks_opens_and_goes_back(page: Chrome, report: Path) -> None:
    from selenium.webdriver import Keys

    visit(page, report, "#/cells")
    press(page, "j", "j", "k", "j")
    assert js(page, "return document.querySelector('.row.selected .name').innerText") == texts(page, ".row .name")[1]
    press(page, Keys.ENTER)
    wait(page, "return location.hash.startsWith('#/cell/') && document.getElementById('next')")
    first = page.current_url
    press(page, "j")
    wait(page, f"return location.href !== {first!r} && document.getElementById('previous')")
    press(page, Keys.ESCAPE)
    wait(page, f"return location.href === {first!r}")
    press(page, "4")
    wait(page, "return location.hash === '#/map'")
    press(page, "?")
    assert js(page, "return document.getElementById('help').open")
    press(page, Keys.ESCAPE)
    assert not js(page, "return document.getElementById('help').open")


def test_a_search_from_anywhere_leads_to_the_cells(page: Chrome, report: Path) -> None:
    from selenium.webdriver import Keys

    visit(page, report)
    press(page, "/", *"crash", Keys.ENTER)
    wait(page, "return document.getElementById('found')")
    assert page.current_url.endswith("#/cells?q=crash")
    assert texts(page, "#found") == ["1 of 3 cells"]


def test_light_and_dark_follow_the_system_until_they_are_chosen(page: Chrome, report: Path) -> None:
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    visit(page, report)
    light = js(page, ground)
    look(page, 1280, 800, "dark")
    dark = js(page, ground)
    assert light != dark
    press(page, "t")
    assert js(page, ground) == light
    press(page, "t")
    js(page, "localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page: Chrome, report: Path, scheme: str) -> None:
    look(page, 1280, 800, scheme)
    poor: dict[str, float] = {}
    for route in ("#/overview", "#/causes", "#/new", "#/map", "#/cells", CELL_PAGE, "#/coverage", "#/kill-rate"):
        visit(page, report, route)
        poor |= {f"{route} {where}": ratio for where, ratio in js(page, CONTRAST).items() if ratio < 4.5}
    assert poor == {}


# The contrast ratio of WCAG 2 of every element with text of its own, between its colour and its background.
CONTRAST = """
    const parts = (c) => c.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = (e) => {
      const colour = parts(getComputedStyle(e).backgroundColor);
      return colour[3] !== 0 ? colour : e.parentElement ? ground(e.parentElement) : [255, 255, 255];
    };
    const speaks = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const found = {};
    for (const e of document.querySelectorAll("body *")) {
      if (e.closest("svg, option") || !speaks(e) || !e.getClientRects().length) continue;
      const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
      const name = e.tagName.toLowerCase() + "." + e.className + " " + e.innerText.slice(0, 20);
      found[name] = (a + 0.05) / (b + 0.05);
    }
    return found;"""


@pytest.mark.parametrize("size", SIZES)
def test_no_view_is_wider_than_the_window(page: Chrome, report: Path, hostile: Path, size: str) -> None:
    look(page, *SIZES[size])
    wide: dict[tuple[str, str], int] = {}
    for site in (report, hostile):
        for route in (
            *(f"#/{view}" for view in VIEWS),
            "#/map?family=masking",
            "#/map?family=masking&overload=mm",
            CELL_PAGE,
        ):
            visit(page, site, route)
            wide[site.parent.name, route] = js(page, "return document.documentElement.scrollWidth - innerWidth")
    assert {where: by for where, by in wide.items() if by > 0} == {}


def test_runs_that_were_left_out_are_listed_on_each_page(page: Chrome, report: Path, tmp_path: Path) -> None:
    site = shutil.copytree(report, tmp_path / "site")
    file = site / "data" / "site.js"
    file.write_text(file.read_text().replace('"left_out":[]', '"left_out":["run x: truncated"]'))
    for view in ("overview", "cells"):
        visit(page, site, f"#/{view}")
        assert "run x: truncated" in texts(page, "[role=alert]")[0]


def test_a_file_of_data_that_is_missing_is_said(page: Chrome, report: Path, tmp_path: Path) -> None:
    site = shutil.copytree(report, tmp_path / "site")
    (site / "data" / "lane-1.js").unlink()
    visit(page, site, "#/cells")
    assert texts(page, ".alarm") == ["data/lane-1.js cannot be loaded; is the report's directory whole?"]
    (site / "data" / "site.js").unlink()
    page.get("about:blank")
    page.get((site / "index.html").as_uri())
    assert texts(page, ".alarm") == ["data/site.js cannot be loaded; is the report's directory whole?"]

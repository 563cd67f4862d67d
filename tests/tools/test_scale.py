"""The plan of docs/scale.md: its numbers follow from the latest measured lane."""

from __future__ import annotations

from tools import scale
from tools.settings.model import SETTINGS, Measured


def lane(total: int, date: str, setting: str = SETTINGS[0].name, command: str = "2.13") -> Measured:
    return Measured(setting, "", command, 0, total, 0, date=date)


def test_the_plan_is_made_for_the_latest_lane_on_a_machine_as_it_is() -> None:
    other = lane(1, "2026-09-09", SETTINGS[1].name), lane(1, "2026-09-09", command="2.8")
    measured = [lane(100_000, "2026-01-02"), lane(200_000, "2026-01-03"), lane(100_000, "2026-01-01"), *other]
    _, rows = scale.inputs(measured)
    assert rows[0][1] == "200,000"
    assert "2026-01-03" in rows[0][2]


def test_hours_bytes_and_prices_follow_from_the_cells() -> None:
    measured = [lane(200_000, "2026-01-03")]
    hours = 2880 * (23 + 200_000 * 0.005) / 3600
    assert [row[1] for row in scale.night(measured)[1]] == ["1,000", scale.rounded(hours), scale.rounded(hours / 8)]
    values = [row[1] for row in scale.year(measured)[1]]
    assert values[:2] == ["1,051,200", "2.3"]
    assert values[-2] == f"{scale.rounded(365 * hours * 0.04)} USD"


def test_numbers_are_rounded_to_two_digits() -> None:
    assert [scale.rounded(n) for n in (1434.6, 179.3, 4.14, 0.6, 9.96)] == ["1,400", "180", "4.1", "0.6", "10"]

"""The file with the ends of the contract's programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results import contract_ends
from conformance.results.contract_ends import End, Ended, EndsError

STREAMS = Ended("devices", "Streams run.", End.PARTLY, "not offered: priorities")
LOADERS = Ended("loading", "Loaders pin.", End.SUPPORTED)


def test_ends_are_read_as_they_were_written(tmp_path: Path) -> None:
    ends = {"one": {"devices:streams": STREAMS}, "other": {"loading:loaders": LOADERS}}
    contract_ends.save(tmp_path / "ends.json", ends)
    assert contract_ends.load(tmp_path / "ends.json") == ends


def test_new_ends_replace_old_ones_of_a_backend_and_programs_that_are_gone_are_left_out() -> None:
    old = {"one": {"gone": LOADERS, "loading:loaders": LOADERS}, "other": {"gone": LOADERS}}
    found = contract_ends.renewed(old, "one", {"devices:streams": STREAMS}, {"devices:streams", "loading:loaders"})
    assert found == {"one": {"devices:streams": STREAMS, "loading:loaders": LOADERS}, "other": {"gone": LOADERS}}
    assert list(found["one"]) == ["devices:streams", "loading:loaders"], "by area"


@pytest.mark.parametrize("text", ["[]", '{"a": []}', '{"a": {"b": {}}}', "{", '{"a": {"b": {"area": 1, "end": "x"}}}'])
def test_a_file_of_other_content_is_an_error_of_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "ends.json").write_text(text)
    with pytest.raises(EndsError, match=r"ends\.json: .*expected a file that `conformance contract` wrote") as raised:
        contract_ends.load(tmp_path / "ends.json")
    assert "\n" not in str(raised.value)

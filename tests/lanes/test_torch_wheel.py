"""The source of torch wheels on invented machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.tags import platform_tags

from conformance.lanes.torch_wheel import Source, choose, lacking_room, local_wheel, of_index, satisfied, uv_environment

PYTHON = (3, 11)


def wheel(directory: Path, version: str = "2.13.0+cpu", tag: str = "cp311-cp311") -> dict[str, str]:
    """Put an empty wheel in a directory. Return the environment variables with which it is found."""
    (directory / f"torch-{version}-{tag}-{next(iter(platform_tags()))}.whl").touch()
    return {"PIP_FIND_LINKS": str(directory)}


def never() -> bool:
    raise AssertionError("the network was asked although something nearer is known")


def test_a_local_wheel_comes_before_everything(tmp_path: Path) -> None:
    environment = {**wheel(tmp_path), "PIP_INDEX_URL": "https://example.org"}
    source = choose("torch==2.13.0", PYTHON, environment, never)
    assert source.first == ("--no-index", "--no-deps", "--find-links", str(tmp_path))


@pytest.mark.parametrize(
    ("version", "tag"), [("2.8.0", "cp311-cp311"), ("2.13.0", "cp312-cp312"), ("2.13.0", "py3-none")]
)
def test_a_local_wheel_of_another_version_or_python_is_left_alone(tmp_path: Path, version: str, tag: str) -> None:
    assert local_wheel("torch==2.13.0", PYTHON, wheel(tmp_path, version, tag)) is None


def test_find_links_may_be_several_and_a_file_url(tmp_path: Path) -> None:
    wheel(tmp_path)
    assert local_wheel("torch==2.13.0", PYTHON, {"UV_FIND_LINKS": f"/nowhere,{tmp_path.as_uri()}"}) == tmp_path


def test_an_index_that_the_user_names_is_not_gone_past() -> None:
    source = choose("torch==2.13.0", PYTHON, {"UV_INDEX": "https://example.org"}, never)
    assert (source.pip, source.uv, source.first) == ((), (), ())
    assert "UV_INDEX" in source.name


def test_the_cpu_index_is_taken_when_it_answers_and_takes_less_room() -> None:
    cpu = choose("torch==2.13.0", PYTHON, {}, lambda: True, "linux")
    default = choose("torch==2.13.0", PYTHON, {}, lambda: False, "linux")
    assert cpu.uv == ("--torch-backend=cpu",)
    assert default.uv == ()
    assert cpu.disk_gib < default.disk_gib


def test_a_torch_version_of_one_index_is_installed_only_from_that_index() -> None:
    assert of_index("https://example.org/nightly", lambda _: True).uv == (
        "--prerelease=allow", "--index", "https://example.org/nightly",
    )  # fmt: skip
    with pytest.raises(LookupError, match="the only index with this version, does not respond"):
        of_index("https://example.org/nightly", lambda _: False)


def test_where_default_wheels_hold_no_cuda_nobody_is_asked() -> None:
    assert choose("torch==2.13.0", PYTHON, {}, never, "darwin").uv == ()


def test_a_cpu_build_satisfies_its_version() -> None:
    assert satisfied("torch==2.13.0", ["2.13.0+cpu"])
    assert not satisfied("torch==2.13.0", ["2.8.0"])
    assert not satisfied("torch==2.13.0", [])


def test_a_full_disk_is_told_with_what_is_needed_and_what_to_do() -> None:
    source = Source("the default index", 9.0)
    said = lacking_room(source, Path("/checkout"), 3 * 2**30)
    assert said.startswith("/checkout: 3.0 GiB free on this disk, 9 GiB needed to install torch from the default index")
    assert lacking_room(source, Path("/checkout"), 10 * 2**30) == ""


def test_uv_gets_what_pip_is_configured_with_unless_it_has_its_own() -> None:
    pip = {"PIP_FIND_LINKS": "/a /b", "PIP_INDEX_URL": "https://i", "PIP_EXTRA_INDEX_URL": "https://x https://y"}
    pip["PIP_CERT"] = "/etc/bundle.pem"
    assert uv_environment({**pip, "UV_INDEX": "https://mine"}) == {
        "UV_FIND_LINKS": "/a,/b",
        "UV_DEFAULT_INDEX": "https://i",
        "SSL_CERT_FILE": "/etc/bundle.pem",
    }

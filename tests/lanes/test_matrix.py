"""The matrix file: its lanes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.lanes import matrix
from conformance.support.toml_table import TomlError

GOOD = """
backend = "demo"
project = "backend"
module = "demo"

[builds.release]

[builds.asan]
on_demand = true
sanitizers = ["address", "undefined"]
suppressions = "backend/leaks.supp"

[builds.asan.settings]
"cmake.define.SANITIZE" = "address,undefined"

[[torch]]
version = "2.8"

[[torch]]
version = "2.13"
requirement = "torch==2.13.1"
tier = "smoke"

[environments.malloc]
DEMO_ALLOCATOR = "malloc"

[environments.guard]
on_demand = true
DEMO_ALLOCATOR = "guard"
DEMO_CHECK = "1"
"""


def write(directory: Path, text: str) -> Path:
    file = directory / "demo.toml"
    file.write_text(text)
    return file


def test_lanes_are_the_product_of_the_axes_in_the_file_s_order(tmp_path: Path) -> None:
    lanes = matrix.load(write(tmp_path, GOOD)).lanes()
    assert [lane.name for lane in lanes] == [
        "demo-torch2.8-malloc-release",
        "demo-torch2.8-malloc-asan",
        "demo-torch2.8-guard-release",
        "demo-torch2.8-guard-asan",
        "demo-torch2.13-malloc-release",
        "demo-torch2.13-malloc-asan",
        "demo-torch2.13-guard-release",
        "demo-torch2.13-guard-asan",
    ]


def test_the_name_of_a_lane_tells_its_torch_version(tmp_path: Path) -> None:
    lanes = matrix.load(write(tmp_path, GOOD)).lanes()
    assert [matrix.torch_of(lane.name) for lane in lanes] == [lane.torch.version for lane in lanes]
    assert matrix.torch_of("mylane") is None


def test_a_requirement_follows_from_the_version_unless_it_is_given(tmp_path: Path) -> None:
    torches = matrix.load(write(tmp_path, GOOD)).torches
    assert [(t.requirement, t.tier) for t in torches] == [("torch==2.8.0", "full"), ("torch==2.13.1", "smoke")]


def test_the_main_version_is_the_last_unless_it_is_named(tmp_path: Path) -> None:
    assert matrix.load(write(tmp_path, GOOD)).main_torch.version == "2.13"
    assert matrix.load(write(tmp_path, 'main = "2.8"\n' + GOOD)).main_torch.version == "2.8"


def test_a_version_may_name_the_only_index_that_offers_it(tmp_path: Path) -> None:
    text = GOOD.replace('version = "2.8"', 'version = "2.8"\nindex = "https://example.org/nightly"')
    assert [t.index for t in matrix.load(write(tmp_path, text)).torches] == ["https://example.org/nightly", ""]


def test_an_environment_is_a_set_of_variables(tmp_path: Path) -> None:
    guard = matrix.load(write(tmp_path, GOOD)).environments[1]
    assert dict(guard.variables) == {"DEMO_ALLOCATOR": "guard", "DEMO_CHECK": "1"}


def test_an_environment_runs_always_unless_it_says_on_demand(tmp_path: Path) -> None:
    environments = matrix.load(write(tmp_path, GOOD)).environments
    assert [(e.name, e.on_demand) for e in environments] == [("malloc", False), ("guard", True)]


def test_an_exclusion_leaves_out_the_lanes_that_it_names(tmp_path: Path) -> None:
    text = GOOD + '[[exclude]]\ntorch = "2.8"\nenvironment = "guard"\nreason = "no such mode there"\n'
    lanes = matrix.load(write(tmp_path, text)).lanes()
    assert "demo-torch2.8-guard-release" not in [lane.name for lane in lanes]
    assert len(lanes) == 6


def test_a_build_says_how_it_is_made_and_what_it_needs(tmp_path: Path) -> None:
    release, asan = matrix.load(write(tmp_path, GOOD)).builds
    assert release == matrix.Build("release")
    assert asan.on_demand
    assert asan.sanitizers == ("address", "undefined")
    assert dict(asan.settings) == {"cmake.define.SANITIZE": "address,undefined"}


def test_a_lane_with_an_on_demand_environment_or_build_is_on_demand(tmp_path: Path) -> None:
    always = [lane.name for lane in matrix.load(write(tmp_path, GOOD)).lanes() if not lane.on_demand]
    assert always == ["demo-torch2.8-malloc-release", "demo-torch2.13-malloc-release"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[builds.release]", "[build.release]", "build: unknown key (near: builds); valid keys: backend, builds, "),
        ('module = "demo"', 'module = "demo"\nbuilds = ["release"]', "not valid TOML"),
        ('"address", ', '"adress", ', "builds.asan.sanitizers[0]: 'adress' is not one of address, thread, undefined"),
        ("suppressions", "supressions", "builds.asan.supressions: unknown key (near: suppressions)"),
        ('version = "2.8"', "version = 2.8", "torch[0].version: expected a string, got float 2.8"),
        ('version = "2.8"', 'version = "2.8"\npyhton = "3.11"', "torch[0].pyhton: unknown key (near: python)"),
        ('version = "2.8"', 'version = "2.13"', "torch: '2.13' is listed twice"),
        ('version = "2.8"', 'version = "2-8"', "torch[0].version: '2-8' cannot be part of a lane's name"),
        ('tier = "smoke"', 'tier = "smok"', "torch[1].tier: 'smok' is not one of wide, full, smoke (near: smoke)"),
        ('backend = "demo"', "", "backend: missing; expected a string"),
        (
            'DEMO_CHECK = "1"',
            "DEMO_CHECK = true",
            "environments.guard.DEMO_CHECK: expected a string, got true or false",
        ),
        (
            "[environments.guard]\non_demand = true",
            "[environments.guard]\non_deman = true",
            "environments.guard.on_deman: unknown key (near: on_demand); valid keys: DEMO_ALLOCATOR, DEMO_CHECK, ",
        ),
        ("on_demand = true", 'on_demand = "yes"', "builds.asan.on_demand: expected true or false, got a string"),
        ("[[torch]]", "[[torch", "not valid TOML"),
        (GOOD[GOOD.index("[builds") : GOOD.index("[[torch")], "[builds]\n", "builds: is empty; a lane needs at least"),
        ('module = "demo"', 'module = "demo"\nmain = "2.9"', "main: '2.9' is not one of 2.8, 2.13 (near: 2.8)"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    file = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(TomlError) as e:
        matrix.load(file)
    assert str(e.value).startswith(f"{file}: ")
    assert message in str(e.value)
    assert "\n" not in str(e.value) or "not valid TOML" in str(e.value)


@pytest.mark.parametrize(
    ("exclusion", "message"),
    [
        ('reason = "all of it"', "exclude[0]: excludes every lane"),
        ('torch = "2.8"\nreason = " "', "exclude[0].reason: is empty"),
        ('torch = "2.9"\nreason = "x"', "exclude[0].torch: '2.9' is not one of 2.8, 2.13"),
        ('build = "release"\nreason = "x"\n[[exclude]]\nbuild = "asan"\nreason = "y"', "exclude: leaves no lane"),
    ],
)
def test_an_exclusion_that_says_nothing_useful_is_refused(tmp_path: Path, exclusion: str, message: str) -> None:
    with pytest.raises(TomlError) as e:
        matrix.load(write(tmp_path, f"{GOOD}[[exclude]]\n{exclusion}\n"))
    assert message in str(e.value)


def test_every_matrix_in_the_repository_can_be_read() -> None:
    root = Path(__file__).parents[2]
    for found in matrix.load_all(root / "matrices"):
        assert (root / "matrices" / "expected" / f"{found.backend}.toml").is_file()
        assert (root / found.project).is_dir()

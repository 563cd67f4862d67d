"""`conformance run`: errors of the user, without a cluster."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.cluster import ray_cluster
from conformance.cluster.model import ClusterError

MATRIX = 'backend = "demo"\nproject = "p"\nmodule = "m"\n[[torch]]\nversion = "2.8"\n[environments.malloc]\n'


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/demo.toml").write_text(MATRIX)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)  # as if Ray were not installed


def refused(*arguments: str) -> str:
    ended = CliRunner().invoke(commands, ["run", *arguments])
    assert ended.exit_code == 2
    assert "Traceback" not in ended.output
    return ended.output


def test_without_ray_the_error_says_what_to_install() -> None:
    assert "install it here and on each node with: pip install 'op-conformance[cluster]'" in refused(
        "--cluster", "local"
    )


@pytest.mark.parametrize("address", ["ray", "ray://", "ray://host", "ray://host:99999", "host:x"])
def test_an_address_that_is_none_is_refused_with_the_forms_of_one(address: str) -> None:
    assert "expected ray://HOST:PORT, HOST:PORT or 'local'" in refused("--cluster", address)


def test_an_unknown_lane_lists_near_names() -> None:
    told = refused("--cluster", "local", "--lanes", "demo-torch2.8-maloc-release")
    assert "near: demo-torch2.8-malloc-release" in told


def test_an_address_where_nothing_answers_is_refused_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but does not listen
        address = f"ray://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray answers at {address}: .*is a head node running"):
            ray_cluster.check_answers(address)


def test_a_version_mismatch_says_what_to_do() -> None:
    told = ray_cluster.refusal("Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.11.7")
    assert told.endswith("Ray: 2.40.0 Python: 3.11.7; use the same Ray and Python here as on the cluster")

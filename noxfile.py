"""The nox sessions for people and for CI. Lanes come from matrices/. ``nox -l`` lists the sessions."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from conformance.lanes import matrix, process  # noqa: E402 - found only once the checkout is on the path
from tools import browser  # noqa: E402 - as above
from tools.installing import (  # noqa: E402 - as above
    CPUS,
    backend_of,
    compile_imports,
    index_variables,
    install_backend,
    install_build_tools,
    install_torch,
    interpreter_of,
    lay_over,
    leave_interpreter,
)
from tools.kill_rate.options import peers_of  # noqa: E402 - as above
from tools.kill_rate.peers import PEERS, Peer, environment_of, lane_of  # noqa: E402 - as above
from tools.kill_rate.session import measured  # noqa: E402 - as above
from tools.new_user import use_as_a_new_user, use_beside_another  # noqa: E402 - as above

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
# If an environment were skipped, its lanes would run in the environment of an earlier command.
nox.options.error_on_missing_interpreters = True
nox.options.sessions = ["lint", "docs-check", "tests"]

MATRICES = matrix.load_all(ROOT / "matrices")
# With more workers, the imports of torch take longer than the tests.
WORKERS = min(CPUS, 8)
CLOSING_S = 60.0  # seconds that an interrupted run has to close its results, before nox kills it


def environment_name(m: matrix.Matrix, torch: matrix.Torch, build: matrix.Build) -> str:
    """Return the session that creates the environment of a torch version and a build."""
    return process.environment_name(m, torch, build, alone=len(MATRICES) == 1)


def add_environment(m: matrix.Matrix, torch: matrix.Torch) -> None:
    """Add a session that installs torch, the suite and the backend for all lanes of a torch version."""
    build = m.builds[0]
    name = environment_name(m, torch, build)

    @nox.session(name=name, python=torch.python or None, reuse_venv=True, default=False)
    def environment(session: nox.Session) -> None:
        install_torch(session, torch)
        install_build_tools(session, ROOT / m.project)
        install_backend(session, m, torch, build)
        session.install("-e", ".[tests]", env=index_variables(session))
        compile_imports(session)
        leave_interpreter(session, name)

    environment.__doc__ = f"Create the environment of conformance-{torch.version}: {torch.requirement}, backend."


def add_build(m: matrix.Matrix, torch: matrix.Torch, build: matrix.Build) -> None:
    """Add a session for another build of the backend. Its environment contains the backend only."""
    name, below = environment_name(m, torch, build), environment_name(m, torch, m.builds[0])

    @nox.session(name=name, python=torch.python or None, reuse_venv=True, default=False, requires=[below])
    def environment(session: nox.Session) -> None:
        lay_over(session, interpreter_of(below))
        install_backend(session, m, torch, build)
        leave_interpreter(session, name)

    environment.__doc__ = f"Create the environment of the {build.name} lanes of conformance-{torch.version}."


def add_conformance(m: matrix.Matrix, torch: matrix.Torch) -> None:
    """Add the sessions that run the cells on a torch version, one for each of the backend's environments.

    ``conformance-2.13`` means all of them except lanes on demand, which have sessions with similar names.
    """
    name = process.sessions_name(m, torch, alone=len(MATRICES) == 1)
    lanes = [lane for lane in m.lanes() if lane.torch == torch]
    always = [lane for lane in lanes if not lane.on_demand]
    doc = f"Compare {m.backend} with CPU on {torch.requirement}; what follows -- goes to pytest."

    def settings(of: list[matrix.Lane]) -> dict[str, Any]:
        needed = list(dict.fromkeys(environment_name(m, torch, lane.build) for lane in of))
        return {"venv_backend": "none", "requires": needed, "default": False}

    if always:

        @nox.session(name=name, **settings(always))
        @nox.parametrize("lane", [nox.param(lane, id=process.label(m, lane)) for lane in always])
        def conformance(session: nox.Session, lane: matrix.Lane) -> None:
            run_lane(session, lane)

        conformance.__doc__ = doc

    for lane in lanes:
        if lane.on_demand:

            @nox.session(name=f"{name}({process.label(m, lane)})", **settings([lane]))
            def on_demand(session: nox.Session, lane: matrix.Lane = lane) -> None:
                run_lane(session, lane)

            on_demand.__doc__ = doc


def run_lane(session: nox.Session, lane: matrix.Lane) -> None:
    """Run the cells of one lane in the environment of another session."""
    start = start_of(session, lane)
    arguments = ["--backend", lane.backend, "--lane-name", lane.name, "--lane-tier", lane.torch.tier]
    # The plugin of Hypothesis loads all of Hypothesis at the end of a session, and only the tests need it.
    arguments += ["-rN", "-p", "no:hypothesispytest", *session.posargs]
    session.run(
        start.python, "-m", "pytest", "conformance", *arguments, env=start.variables, external=True,
        interrupt_timeout=CLOSING_S, terminate_timeout=CLOSING_S,
    )  # fmt: skip


def start_of(session: nox.Session, lane: matrix.Lane) -> process.Start:
    """Return the interpreter and the environment variables of a process of the lane."""
    try:
        return process.start(ROOT, lane.name)
    except LookupError as e:
        session.error(str(e))


for found in MATRICES:
    for version in found.torches:
        add_environment(found, version)
        for other in found.builds[1:]:
            add_build(found, version, other)
        add_conformance(found, version)

TEST_PATHS = nox.project.load_toml(ROOT / "pyproject.toml")["tool"]["pytest"]["ini_options"]["testpaths"]
MAIN_ENVIRONMENT = environment_name(MATRICES[0], MATRICES[0].main_torch, MATRICES[0].builds[0])


@nox.session(venv_backend="none", requires=[MAIN_ENVIRONMENT])
def tests(session: nox.Session) -> None:
    """Run the tests of the suite and of the backend, on the matrix's main torch; what follows -- goes to pytest.

    The backend's tests have processes of their own, because a process that has used the device cannot fork children
    that use it, as tests of the suite do. A test that hangs ends its worker, which names it.
    """
    hangs = ["-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=true"]
    slowest = ["--durations", "40", "--durations-min", "5"]
    command = ["-m", "pytest", "-n", str(WORKERS), "--dist", "worksteal", *hangs, *slowest, *session.posargs]
    named = any((ROOT / word.partition("::")[0]).exists() for word in session.posargs)
    for paths in [[]] if named else [[path] for path in TEST_PATHS]:
        session.run(interpreter_of(MAIN_ENVIRONMENT), *command, *paths, external=True)


def add_peer(m: matrix.Matrix, name: str, peer: Peer) -> None:
    """Add a session for the environment of another project's suite. It contains that suite only."""
    lane = lane_of(peer, m, measured(m)[0])
    below = environment_name(m, lane.torch, lane.build)

    @nox.session(
        name=environment_of(name), python=lane.torch.python or None, reuse_venv=True, default=False, requires=[below]
    )
    def environment(session: nox.Session) -> None:
        lay_over(session, interpreter_of(below))
        # Without dependencies, which the environment below has: pip would install another torch.
        session.install("--no-deps", *peer.packages, env=index_variables(session))
        leave_interpreter(session, environment_of(name))

    environment.__doc__ = f"Create the environment of {' and '.join(peer.packages)}, on {lane.torch.requirement}."


MEASURED = [environment_name(MATRICES[0], lane.torch, lane.build) for lane in measured(MATRICES[0])]
ASKED_PEERS = peers_of(sys.argv[sys.argv.index("--") + 1 :] if "kill-rate" in sys.argv and "--" in sys.argv else [])
for named, other_suite in PEERS.items():
    if other_suite.packages:
        add_peer(MATRICES[0], named, other_suite)
        MEASURED += [environment_of(named)] if named in ASKED_PEERS else []


@nox.session(name="kill-rate", venv_backend="none", requires=[*dict.fromkeys(MEASURED)], default=False)
def kill_rate(session: nox.Session) -> None:
    """Measure which planted faults each lane and the checks of other projects find. Continues an interrupted run."""
    arguments = ["--workers", str(WORKERS), *session.posargs]
    session.run(interpreter_of(MAIN_ENVIRONMENT), "-m", "tools.kill_rate", *arguments, external=True)


@nox.session(venv_backend="none", requires=[MAIN_ENVIRONMENT], default=False)
def causes(session: nox.Session) -> None:
    """Measure how often the first cause is the kernel with a planted fault; goes on where it was stopped."""
    session.run(interpreter_of(MAIN_ENVIRONMENT), "-m", "tools.causes", *session.posargs, external=True)


@nox.session(venv_backend="none", requires=[MAIN_ENVIRONMENT], default=False)
def settings(session: nox.Session) -> None:
    """Run lanes and tests as on other machines: other CPU kernels, compilers, Pythons. Continues an interrupted run."""
    arguments = ["--nox", str(Path(sys.argv[0]).resolve()), *session.posargs]
    session.run(interpreter_of(MAIN_ENVIRONMENT), "-m", "tools.settings", *arguments, external=True)


@nox.session(reuse_venv=True, default=False)
def models(session: nox.Session) -> None:
    """Record the calls of public architectures, built from their configurations, into conformance/models/data."""
    session.install("-r", "tools/models/requirements.txt", env=index_variables(session))
    session.install("-e", ".", env=index_variables(session))
    session.run("python", "-m", "tools.models", *session.posargs)


def add_command(name: str, words: list[str], doc: str) -> None:
    """Add a session for a command that needs torch. It uses the matrix' main torch."""

    @nox.session(name=name, venv_backend="none", requires=[MAIN_ENVIRONMENT], default=False)
    def command(session: nox.Session) -> None:
        arguments = [*words, *session.posargs]
        session.run(interpreter_of(MAIN_ENVIRONMENT), "-m", "conformance.cli", *arguments, external=True)

    command.__doc__ = doc


add_command("bisect", ["bisect"], "Find the version or the commit that broke a CASE, which follows --, or a script.")
add_command("triage", ["triage"], "Find the first op of a failing CASE or program, which follows --, that goes wrong.")
add_command("nightly-search", ["nightly", "search"], "Bisect the new failures of the last night's results.")


@nox.session(name="adapter-cpu", venv_backend="none", requires=[MAIN_ENVIRONMENT], default=False)
@nox.parametrize("threads, onednn", [nox.param(1, 1, id="threads1"), nox.param(2, 0, id="threads2_no_onednn")])
def adapter_cpu(session: nox.Session, threads: int, onednn: int) -> None:
    """Compare CPU with itself in the smoke tier: a failure is a false alarm. What follows -- goes to pytest."""
    variables = {"CONFORMANCE_CPU_THREADS": str(threads), "CONFORMANCE_CPU_ONEDNN": str(onednn)}
    suite = ["-m", "pytest", "conformance", "--backend", "cpu", "--tier", "smoke", "-rN", *session.posargs]
    session.run(interpreter_of(MAIN_ENVIRONMENT), *suite, env=variables, external=True)


@nox.session(name="adapter-torch_xla", reuse_venv=True, default=False)
def adapter_torch_xla(session: nox.Session) -> None:
    """Run the hazards on torch_xla, on its runtime for CPU. What follows -- goes to `conformance hazard`."""
    install_torch(session, replace(MATRICES[0].main_torch, version="2.9", requirement="torch==2.9.0", index=""))
    session.install("torch_xla==2.9.0", "-e", ".", env=index_variables(session))
    session.run("conformance", "hazard", "--backend", "torch_xla", *session.posargs, env={"PJRT_DEVICE": "CPU"})


@nox.session(reuse_venv=True, default=False)
def report(session: nox.Session) -> None:
    """Write the results as a site, by default to site/. Arguments of `conformance report` follow --."""
    session.install("-e", ".", env=index_variables(session))
    session.run("conformance", "report", *(session.posargs or ["site"]))


@nox.session(name="report-tests", reuse_venv=True, default=False)
def report_tests(session: nox.Session) -> None:
    """Test the report's site in a headless Chromium, and measure it. Fails if Chromium is missing."""
    if missing := browser.lacking():
        session.error(missing)
    session.install("-e", ".[report-tests]", env=index_variables(session))
    session.run("python", "-m", "pytest", "browser_tests", *session.posargs)


@nox.session(name="cluster-tests", reuse_venv=True, default=False, requires=[MAIN_ENVIRONMENT])
def cluster_tests(session: nox.Session) -> None:
    """Test `conformance run` on a Ray cluster of two nodes, one of which is killed; arguments of pytest follow --."""
    session.install("-e", ".[cluster,tests]", env=index_variables(session))
    session.run("python", "-m", "pytest", "tests/cluster", *session.posargs)


@nox.session(reuse_venv=True, default=False)
def conformance(session: nox.Session) -> None:
    """Run a command of ``conformance`` that needs no torch, for example ``-- matrix`` or ``-- summary``."""
    session.install("-e", ".", env=index_variables(session))
    session.run("conformance", *session.posargs)


@nox.session(reuse_venv=True, default=False)
def package(session: nox.Session) -> None:
    """Build the wheel and the sdist of the suite into dist/, and check what they say of themselves."""
    session.install("build", "twine", env=index_variables(session))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", "dist")
    session.run("twine", "check", "--strict", *files("dist/*"))


@nox.session(
    name="package-tests", python=MATRICES[0].main_torch.python or None, reuse_venv=False, default=False,
    requires=["package", MAIN_ENVIRONMENT],
)  # fmt: skip
def package_tests(session: nox.Session) -> None:
    """Install the wheel, then the sdist, beside torch and the backend alone, and use each as a new user would.

    The tag of a release may follow --; it must be that of the version in pyproject.toml.
    """
    m = MATRICES[0]
    tag = "v" + nox.project.load_toml(ROOT / "pyproject.toml")["project"]["version"]
    if session.posargs not in ([], [tag]):
        session.error(f"the tag of this version is {tag}; got {' '.join(session.posargs)}")
    install_torch(session, m.main_torch)
    session.install(str(backend_of(session, m, MAIN_ENVIRONMENT)), env=index_variables(session))
    again = ["--reinstall-package", "op-conformance"] if session.venv_backend == "uv" else ["--force-reinstall"]
    for name in [*files("dist/*.whl"), *files("dist/*.tar.gz")]:
        session.install(*again, str(ROOT / name), env=index_variables(session))
        # Outside of the checkout, so that neither Python nor pytest's configuration finds the checkout.
        with tempfile.TemporaryDirectory() as place, session.chdir(place):
            use_as_a_new_user(session, m.backend)
            use_beside_another(session, Path(place))


@nox.session(reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check style, types and the schemas of workflows: ruff, mypy, clang-format, check-jsonschema."""
    session.install("-e", ".[lint]", env=index_variables(session))
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files(".github/workflows/*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")
    cxx = [f for m in MATRICES for pattern in ("h", "cpp") for f in files(f"{m.project}/**/*.{pattern}")]
    session.run("clang-format", "--dry-run", "-Werror", *(f for f in cxx if "/build/" not in f))


@nox.session(name="docs-check", reuse_venv=True)
def docs_check(session: nox.Session) -> None:
    """Check that the generated tables in the docs are up to date; ``-- --write`` updates them."""
    session.install("-e", ".", env=index_variables(session))
    session.run("python", "-m", "tools.docs", *session.posargs)


def files(pattern: str) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(pattern))]

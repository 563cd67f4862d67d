"""The nox sessions for people and for CI. Lanes come from matrices/. ``nox -l`` lists the sessions."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from conformance.lanes import matrix, process, torch_wheel  # noqa: E402 - found only once the checkout is on the path
from tools import browser, build_cache, other_package  # noqa: E402 - as above
from tools.kill_rate.session import measured  # noqa: E402 - as above

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "docs-check", "tests"]

MATRICES = matrix.load_all(ROOT / "matrices")
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# With more workers, the imports of torch take longer than the tests.
WORKERS = min(CPUS, 8)
BUILDS = ROOT / ".nox" / "cache"
BUILT_WITH = (
    "import json, sys, sysconfig; from importlib.metadata import distributions;"
    "names = ('torch', 'pybind11', 'scikit-build-core', 'cmake', 'ninja');"
    "found = {d.name.lower(): [d.version, str(d.locate_file(''))] for d in distributions() if d.name.lower() in names};"
    "print(json.dumps([sys.version, sysconfig.get_platform(), sorted(found.items())]))"
)
IMPORTED = (
    "import hypothesis, pytest, torch\n"
    "from conformance.torch_versions import compilers\n"
    "compilers.load_decompositions()\n"
)
LIST_TORCH = (
    "import sys; from importlib.metadata import distributions as found;"
    "print(*sys.version_info[:2], *(d.version for d in found(name='torch')))"
)


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
    arguments += ["-rN", *session.posargs]
    session.run(start.python, "-m", "pytest", "conformance", *arguments, env=start.variables, external=True)


def start_of(session: nox.Session, lane: matrix.Lane) -> process.Start:
    """Return the interpreter and the environment variables of a process of the lane."""
    try:
        return process.start(ROOT, lane.name)
    except LookupError as e:
        session.error(str(e))


def compile_imports(session: nox.Session) -> None:
    """Write the bytecode of what most processes import, if PYTHONDONTWRITEBYTECODE keeps imports from writing it.

    uv, unlike pip, does not write it. Without it each of some hundred processes compiles torch, which takes seconds.
    """
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        session.run_install("python", "-c", IMPORTED, env={"PYTHONDONTWRITEBYTECODE": ""})


def leave_interpreter(session: nox.Session, environment: str) -> None:
    """Write the path of this session's interpreter to a file, for the sessions that use its environment."""
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True)
    process.interpreter_file(ROOT, environment).write_text(str(python).strip().splitlines()[-1])


def interpreter_of(environment: str) -> str:
    """Return the interpreter of an environment's session."""
    return process.interpreter_file(ROOT, environment).read_text()


def lay_over(session: nox.Session, below: str) -> None:
    """Let the session's environment also find the packages of another environment."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = str(session.run(below, "-c", where, silent=True, external=True)).strip()
    own = Path(str(session.run("python", "-c", where, silent=True)).strip())
    (own / "_below.pth").write_text(f"import site; site.addsitedir({packages!r})\n", encoding="utf-8")


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
    that use it, as tests of the suite do.
    """
    command = ["-m", "pytest", "-n", str(WORKERS), "--dist", "worksteal", *session.posargs]
    named = any((ROOT / word.partition("::")[0]).exists() for word in session.posargs)
    for paths in [[]] if named else [[path] for path in TEST_PATHS]:
        session.run(interpreter_of(MAIN_ENVIRONMENT), *command, *paths, external=True)


MEASURED = [environment_name(MATRICES[0], lane.torch, lane.build) for lane in measured(MATRICES[0])]


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
    session.install(str(backend_of(session, m, interpreter_of(MAIN_ENVIRONMENT))), env=index_variables(session))
    again = ["--reinstall-package", "op-conformance"] if session.venv_backend == "uv" else ["--force-reinstall"]
    for name in [*files("dist/*.whl"), *files("dist/*.tar.gz")]:
        session.install(*again, str(ROOT / name), env=index_variables(session))
        # Outside of the checkout, where neither Python nor pytest's configuration finds it.
        with tempfile.TemporaryDirectory() as place, session.chdir(place):
            use_as_a_new_user(session, m.backend)
            use_beside_another(session, Path(place))


def use_as_a_new_user(session: nox.Session, backend: str) -> None:
    """Run the command and the suite. Ends the session if another suite is imported than the installed one."""
    suite = ["pytest", "--pyargs", "conformance", "--backend", backend, "-k", "masked_fill and float32-contiguous"]
    where = session.run(*suite, "--collect-only", "--trace-config", silent=True)
    environment = Path(session.virtualenv.location).resolve()
    found = re.findall(r"<module 'conformance\.plugin' from '(.+?)'>", str(where))
    if not found or not Path(found[0]).resolve().is_relative_to(environment):
        session.error(f"pytest loads the suite from {found or 'nowhere'}; expected a file in {environment}")
    session.run("python", "-m", *suite, "--results", "results")
    session.run("conformance", "summary")
    session.run("conformance", "corpus", "show", "masked_fill_.Scalar", silent=True)
    session.run("conformance", "inventory", "--backend", backend, silent=True)
    session.run("conformance", "expect", "export", backend, "known_failures.py")
    session.run("python", "-c", f"import {backend}, known_failures; known_failures.apply()")


def use_beside_another(session: nox.Session, place: Path) -> None:
    """Put another package of the same name before the suite, then install one over it; each is a clear error."""
    hiding = other_package.write_source(place / "hiding")
    refused(session, "but Python finds", 2, "conformance", "summary", env={"PYTHONPATH": str(hiding)})
    suite = ["pytest", "--pyargs", "conformance", "--backend", "cpu"]
    refused(session, "but Python finds", 4, *suite, env={"PYTHONPATH": str(hiding)})
    session.install("--no-deps", str(other_package.write_wheel(place)))
    refused(session, f"{other_package.NAME} has installed a package", 2, "conformance", "summary")
    uninstall = ["uv", "pip", "uninstall"] if session.venv_backend == "uv" else ["pip", "uninstall", "-y"]
    session.run_install(*uninstall, other_package.NAME, external=True)


def refused(session: nox.Session, problem: str, code: int, *command: str, **given: Any) -> None:
    """Run a command that must end with this code, and name the problem in place of a traceback."""
    said = str(session.run(*command, success_codes=[code], silent=True, **given))
    if problem not in said or "Traceback" in said:
        session.error(f"{' '.join(command)}: expected an error with {problem!r}; got: {said}")


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


def index_variables(session: nox.Session) -> dict[str, str]:
    return torch_wheel.uv_environment(os.environ) if session.venv_backend == "uv" else {}


def install_torch(session: nox.Session, torch: matrix.Torch) -> None:
    """Install torch from the smallest source, unless the environment has it already."""
    requirement = torch.requirement
    major, minor, *installed = str(session.run("python", "-c", LIST_TORCH, silent=True)).split()
    if torch_wheel.satisfied(requirement, installed):
        session.log(f"torch {installed[0]} is installed already")
        return
    try:
        source = torch_source(torch, (int(major), int(minor)))
    except LookupError as e:
        session.error(str(e))
    session.log(f"installing {requirement} from {source.name}")
    lacking = torch_wheel.lacking_room(source, ROOT, shutil.disk_usage(ROOT).free)
    if lacking:
        session.error(lacking)
    if source.first:
        session.install(*source.first, requirement)
    extra = source.uv if session.venv_backend == "uv" else source.pip
    session.install(*extra, requirement, env=index_variables(session))


def torch_source(torch: matrix.Torch, python: tuple[int, int]) -> torch_wheel.Source:
    """Return the source of this version. Raises LookupError if there is none."""
    if torch.index:
        return torch_wheel.of_index(torch.index, torch_wheel.index_answers)
    return torch_wheel.choose(torch.requirement, python, os.environ, torch_wheel.cpu_index_answers)


def install_build_tools(session: nox.Session, project: Path) -> None:
    """Install the backend's build requirements, and CMake."""
    requires = nox.project.load_toml(project / "pyproject.toml")["build-system"]["requires"]
    session.install(*requires, "cmake>=3.26", "ninja", env=index_variables(session))


def install_backend(session: nox.Session, m: matrix.Matrix, torch: matrix.Torch, build: matrix.Build) -> None:
    """Install the backend for the environment's torch: a wheel from .nox/cache, or a new build."""
    project = ROOT / m.project
    if not any(map(shutil.which, [os.environ.get("CXX") or "c++", "g++", "clang++"])):
        session.error("no C++ compiler found (c++, g++, clang++); install one, or set CXX")
    name = build_cache.key(project, build_facts(session, project, build, "python"), os.environ)
    wheel = build_cache.find(BUILDS, name) or build_wheel(session, m, torch, build, name)
    if wheel is None:
        return  # nothing is installed in this call
    # A changed source has the same version as before, so the wheel is always installed again.
    again = ["--reinstall-package", nox.project.load_toml(project / "pyproject.toml")["project"]["name"]]
    pip = ["--force-reinstall", "--no-deps"]
    alone = (
        [] if build == m.builds[0] else ["--no-deps"]
    )  # the environments of other builds find them in that of the first
    if session.venv_backend != "uv":
        session.install(*alone, str(wheel))
    session.install(*alone, *(again if session.venv_backend == "uv" else pip), str(wheel), env=index_variables(session))


def backend_of(session: nox.Session, m: matrix.Matrix, python: str) -> Path:
    """Return the wheel of the backend that was made for the environment of an interpreter."""
    project = ROOT / m.project
    facts = build_facts(session, project, m.builds[0], python)
    wheel = build_cache.find(BUILDS, build_cache.key(project, facts, os.environ))
    if wheel is None:
        session.error(f"no wheel of {m.backend} for {python}; run: nox -s {MAIN_ENVIRONMENT}")
    return wheel


def build_facts(session: nox.Session, project: Path, build: matrix.Build, python: str) -> dict[str, str]:
    """Return the facts that a wheel depends on besides the source and the compiler's variables."""
    compiler = shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++") or shutil.which("clang++") or ""
    said = session.run(compiler, "--version", silent=True, external=True)
    return {
        "compiler": f"{compiler} {said}", "settings": repr(build.settings), "build": build.name,
        "environment": str(session.run(python, "-c", BUILT_WITH, silent=True, external=True)), "project": str(project),
    }  # fmt: skip


def build_wheel(
    session: nox.Session, m: matrix.Matrix, torch: matrix.Torch, build: matrix.Build, name: str
) -> Path | None:
    """Build a wheel and store it in the cache. Reuses objects of earlier builds. Return None with -R."""
    project, uv = ROOT / m.project, session.venv_backend == "uv"
    parts = [f"torch{torch.version}", sys.implementation.cache_tag, "uv" if uv else "pip"]
    tag = "-".join([*parts, *([] if build == m.builds[0] else [build.name])])
    variables = {"CMAKE_BUILD_PARALLEL_LEVEL": str(CPUS), **index_variables(session)}
    if shutil.which("ccache") and "CMAKE_CXX_COMPILER_LAUNCHER" not in os.environ:
        variables["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    settings = [f"build-dir={project / 'build' / tag}", *(f"{key}={value}" for key, value in build.settings)]
    given = ["--no-build-isolation", *(word for setting in settings for word in ("-C", setting)), str(project)]
    out = Path(session.create_tmp()) / "wheel"
    shutil.rmtree(out, ignore_errors=True)
    if uv:
        python = str(Path(session.bin) / "python")
        session.run_install(
            "uv", "build", "-q", "--wheel", "-p", python, "-o", str(out), *given, env=variables, external=True
        )
    else:
        session.run_install("python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), *given, env=variables)
    built = list(out.glob("*.whl"))
    return build_cache.keep(BUILDS, name, built[0]) if built else None

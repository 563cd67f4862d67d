"""The installation of the sessions' environments: torch, the build tools and the wheel of the backend."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import nox

from conformance.lanes import matrix, process, torch_wheel
from conformance.support.machine import cores
from tools import build_cache

ROOT = Path(__file__).parents[1]
CPUS = cores()
BUILDS = ROOT / ".nox" / "cache"
# Programs for an environment's interpreter.
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


def index_variables(session: nox.Session) -> dict[str, str]:
    """Return the package indexes of the user's pip under uv's names, {} if the session uses pip itself."""
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
    facts = build_facts(session, project, build, "python")
    name = build_cache.key(project, facts, os.environ)
    wheel = build_cache.find(BUILDS, name)
    if wheel is None:
        built = build_wheel(session, m, torch, build, facts["compiler"])
        if built is None:
            return  # nothing is installed in this call
        if build_cache.key(project, facts, os.environ) != name:
            session.error(f"{m.project} changed while it was built; run the session again")
        wheel = build_cache.keep(BUILDS, name, built)
    # A changed source has the same version as before, so the wheel is always installed again.
    again = ["--reinstall-package", nox.project.load_toml(project / "pyproject.toml")["project"]["name"]]
    pip = ["--force-reinstall", "--no-deps"]
    # The environments of other builds find the dependencies in the environment of the first build.
    alone = [] if build == m.builds[0] else ["--no-deps"]
    if session.venv_backend != "uv":
        session.install(*alone, str(wheel))
    session.install(*alone, *(again if session.venv_backend == "uv" else pip), str(wheel), env=index_variables(session))


def backend_of(session: nox.Session, m: matrix.Matrix, environment: str) -> Path:
    """Return the wheel of the backend that was made for an environment."""
    project, python = ROOT / m.project, interpreter_of(environment)
    facts = build_facts(session, project, m.builds[0], python)
    wheel = build_cache.find(BUILDS, build_cache.key(project, facts, os.environ))
    if wheel is None:
        session.error(f"no wheel of {m.backend} for {python}; run: nox -s {environment}")
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
    session: nox.Session, m: matrix.Matrix, torch: matrix.Torch, build: matrix.Build, compiler: str
) -> Path | None:
    """Build a wheel. Reuses objects of earlier builds with the same compiler. Return None with -R."""
    project, uv = ROOT / m.project, session.venv_backend == "uv"
    # CMake keeps the compiler with which a build directory was created, whatever CXX is later.
    by = hashlib.sha256(compiler.encode()).hexdigest()[:8]
    parts = [f"torch{torch.version}", sys.implementation.cache_tag, "uv" if uv else "pip", by]
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
        command = ["uv", "build", "--wheel", "-p", python, "-o", str(out)]
    else:
        command = ["python", "-m", "pip", "wheel", "--no-deps", "-w", str(out)]
    # The output of the compiler is shown if the build fails.
    session.run_install(*command, *given, env=variables, external=uv, silent=True)
    return next(out.glob("*.whl"), None)


def compile_imports(session: nox.Session) -> None:
    """Write the bytecode of the modules that most processes import, if PYTHONDONTWRITEBYTECODE is set.

    uv, unlike pip, does not write bytecode. Without bytecode, each of some hundred processes compiles torch, which
    takes seconds, and the suite.
    """
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        session.run_install("python", "-c", IMPORTED, env={"PYTHONDONTWRITEBYTECODE": ""})
        session.run_install("python", "-m", "compileall", "-q", str(ROOT / "conformance"))


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

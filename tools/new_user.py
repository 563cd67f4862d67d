"""Checks of the installed package: the commands of a new user, and the errors beside another package of its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nox

from tools import other_package


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
    """Put another package of the same name before the suite, then install it over the suite. Both are clear errors."""
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

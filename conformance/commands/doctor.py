"""`doctor`: the missing registrations of a PrivateUse1 backend, and the lines to add."""

from __future__ import annotations

import sys

import click

from conformance.commands.edge import Mistake, backend_option, mistakes
from conformance.support.exit_codes import Exit


@click.command("doctor")
@backend_option
def doctor_(backend: str) -> None:
    """List the registrations that a PrivateUse1 backend should have and lacks, with the lines to add.

    The exit code is 1 if a registration is missing that is not optional.
    """
    import torch
    from packaging.version import Version

    from conformance import backends, torch_versions
    from conformance.doctor import examination
    from conformance.doctor.registrations import Need

    with mistakes(backends.BackendNotFound):
        found = backends.find(backend or backends.default())
    if torch_versions.dispatch_key_of(found.device) != "PrivateUse1":
        raise Mistake(f"{found.asked}: {found.kind!r} is a device of torch itself; expected a PrivateUse1 device")
    version = Version(Version(torch.__version__).base_version)
    findings = list(examination.examine(found, version))
    click.echo(examination.text(findings, found, version))
    lacking = any(finding.missing and finding.registration.need is not Need.OPTIONAL for finding in findings)
    sys.exit(Exit.CELLS_FAILED if lacking else Exit.OK)

"""The command line: arguments in, text and exit codes out; what it prints, other modules know.

torch is loaded only by the commands that need it: summaries and expectations can be read where it is not installed.
"""

from __future__ import annotations

import sys

import click

from conformance.commands.edge import Commands, Mistake

# Where each command is. A command's module is loaded when it is asked for: what they stand on takes half a second.
COMMANDS = {
    "bisect": "bisect:bisect_",
    "corpus": "samples:corpus",
    "diff": "compare:diff_",
    "expect": "results:expect",
    "inventory": "overloads:inventory_",
    "lane": "lanes:lane_",
    "matrix": "jobs:matrix_jobs",
    "merge": "merging:merge_",
    "nightly": "nightly:nightly",
    "record": "programs:record_",
    "replay": "programs:replay_",
    "report": "report:report_",
    "repro": "programs:repro_",
    "scenario": "programs:scenario_",
    "summary": "results:summary_",
    "triage": "programs:triage_",
}


def main() -> None:
    """The ``conformance`` command."""
    try:
        commands()
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        click.echo("Error: torch is not installed in this environment; this command needs it, and a backend", err=True)
        sys.exit(Mistake.exit_code)


@click.group(cls=Commands, where=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Op conformance of a PyTorch device backend. The matrix itself runs as: pytest --pyargs conformance."""


if __name__ == "__main__":
    main()

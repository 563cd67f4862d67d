"""The command line: arguments in, text and exit codes out; what it prints, other modules know.

torch is loaded only by the commands that need it: summaries and expectations can be read where it is not installed.
"""

from __future__ import annotations

import sys

import click

from conformance.commands import bisect, compare, jobs, lanes, merging, overloads, programs, report, results, samples
from conformance.commands.edge import Commands, Mistake


def main() -> None:
    """The ``conformance`` command."""
    try:
        commands()
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        click.echo("Error: torch is not installed in this environment; this command needs it, and a backend", err=True)
        sys.exit(Mistake.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Op conformance of a PyTorch device backend. The matrix itself runs as: pytest --pyargs conformance."""


for command in (
    overloads.inventory_,
    samples.corpus,
    programs.repro_,
    programs.scenario_,
    programs.record_,
    programs.replay_,
    programs.triage_,
    lanes.lane_,
    results.expect,
    results.summary_,
    bisect.bisect_,
    compare.diff_,
    report.report_,
    merging.merge_,
    jobs.matrix_jobs,
):
    commands.add_command(command)


if __name__ == "__main__":
    main()

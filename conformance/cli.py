"""The ``conformance`` command.

Only the commands that need torch import it: summaries and known failures can be read without it.
"""

from __future__ import annotations

import sys

import click

from conformance.commands.edge import Commands, Mistake

# The module and the function of each command. The module is imported on use, since all of them take half a second.
COMMANDS = {
    "aoti": "aoti:aoti_",
    "bisect": "bisect:bisect_",
    "contract": "contract:contract_",
    "corpus": "samples:corpus",
    "diff": "compare:diff_",
    "doctor": "doctor:doctor_",
    "expect": "results:expect",
    "hazard": "programs:hazard_",
    "huge": "programs:huge_",
    "inventory": "overloads:inventory_",
    "lane": "lanes:lane_",
    "matrix": "jobs:matrix_jobs",
    "merge": "merging:merge_",
    "next": "next_steps:next_",
    "nightly": "nightly:nightly",
    "perf": "perf:perf_",
    "record": "programs:record_",
    "replay": "programs:replay_",
    "report": "report:report_",
    "repro": "programs:repro_",
    "run": "cluster:run_",
    "summary": "results:summary_",
    "triage": "triage:triage_",
}


def main() -> None:
    """Run the ``conformance`` command."""
    try:
        commands()
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        click.echo("Error: this command needs torch and a backend; torch is not installed", err=True)
        sys.exit(Mistake.exit_code)


@click.group(cls=Commands, where=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Op conformance of a PyTorch device backend. To run the cells: pytest --pyargs conformance."""


if __name__ == "__main__":
    main()

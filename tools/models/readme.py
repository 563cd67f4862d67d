"""The README beside the recorded models: how each was made."""

from __future__ import annotations

import json
from collections.abc import Iterable

from conformance.models.model import Recording

_HEAD = """# Recorded models

The ATen calls of programs of public architectures: for each distinct call its arguments with sizes, dtypes and strides,
the bytes of its new results, and how often each program makes it. There are no weights, and no values of tensors.

`nox -s models` makes these files and this page. The models are built from their configurations on the device `meta`,
with all layers, and run twice: inference, and one training step with AdamW. No file of a model is downloaded. The calls
are those that a backend of PrivateUse1 gets below autograd. Attention is the one that torch takes for a device without
a fused kernel.

`below.json.gz` has the overloads that torch's kernels for all devices call, e.g. `add.out` for `add.Tensor`.
"""


def text(recordings: Iterable[Recording]) -> str:
    """Return the page in Markdown."""
    ordered = sorted(recordings, key=lambda r: r.name)
    rows = ["| name | model | calls | distinct | made with |", "| --- | --- | --- | --- | --- |", *map(_row, ordered)]
    configs = [line for r in ordered for line in _config(r)]
    return "\n".join([_HEAD, *rows, "", "## Configurations", *configs, ""])


def _row(recording: Recording) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in recording.facts["versions"].items())
    return f"| `{recording.name}` | {recording.title} | {recording.count:,} | {len(recording.calls)} | {versions} |"


def _config(recording: Recording) -> list[str]:
    config = recording.facts.get("config")
    what = f"`{json.dumps(config)}`" if config else "the defaults of the package"
    lost = "".join(f"; not stored: `{op}` ({why})" for op, why in recording.facts["lost"].items())
    return [f"- `{recording.name}` in {recording.facts['dtype']}: {what}{lost}"]

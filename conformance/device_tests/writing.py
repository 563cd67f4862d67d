"""Lists as files: a Python module that a backend's tests import, or JSON."""

from __future__ import annotations

import json
import pprint

from conformance.device_tests.kinds import TESTS_OF_KIND
from conformance.device_tests.model import NAME, DeviceTestList
from conformance.torch_versions.device_tests import source_of_application

_HEAD = '''"""Known failures of {backend}, for PyTorch's device-type tests.

Written by `conformance expect export`; run {run}.
In a test file, after the import of the backend and before instantiate_device_type_tests:

    import {module}
    {module}.apply()

`apply(xfail=True)` expects the tests to fail instead of skipping them; a failure that PyTorch's samples do not show is
then an unexpected success. "unmapped" lists the failing cells that these tests do not try, by the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

'''

_TAIL = f'''
def apply(base: Any = None, *, xfail: bool = False) -> None:
    """Leave the tests out for a test base, by default PrivateUse1TestBase."""
    apply_known_failures({NAME}, TESTS_OF_KIND, base, xfail)
'''


def as_python(found: DeviceTestList, module: str) -> str:
    """Return the text of a Python file that needs only torch. ``module``: its name without the suffix."""
    head = _HEAD.format(backend=found.backend, run=found.run, torch=found.torch, module=module)
    literals = {NAME: found.to_json(), "TESTS_OF_KIND": TESTS_OF_KIND}
    shown = (f"{name}: dict[str, Any] = {_literal(value)}\n" for name, value in literals.items())
    return f"{head}{''.join(shown)}\n\n{source_of_application()}\n{_TAIL}"


def as_json(found: DeviceTestList) -> str:
    """Return the list as JSON, with the tests of each kind."""
    return json.dumps({**found.to_json(), "tests_of_kind": TESTS_OF_KIND}, indent=1) + "\n"


def _literal(value: object) -> str:
    return pprint.pformat(value, width=118, sort_dicts=False)

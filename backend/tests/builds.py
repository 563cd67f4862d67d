"""The parts that a build of the backend may lack."""

from __future__ import annotations

import pytest
import refnpu.testing

needs_faults = pytest.mark.skipif(not refnpu.testing.faults(), reason="this build has no faults: REFNPU_FAULTS=OFF")

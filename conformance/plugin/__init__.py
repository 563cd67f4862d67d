"""The pytest plugin: options, cells as items, and the ledger of the run.

Without xdist one process does everything. Under xdist the workers run cells, and only the controller keeps the ledger.
torch and the backend are imported only if the session selects cells of the suite.
"""

from conformance.plugin.collection import pytest_collect_file, pytest_collection, pytest_collection_modifyitems
from conformance.plugin.ledger import (
    pytest_collection_finish,
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_xdist_node_collection_finished,
)
from conformance.plugin.request import pytest_addoption
from conformance.plugin.resuming import pytest_cmdline_main, pytest_configure_node
from conformance.plugin.running import (
    pytest_report_teststatus,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
    pytest_runtestloop,
    pytest_sessionstart,
)

__all__ = [
    "pytest_addoption", "pytest_cmdline_main", "pytest_collect_file", "pytest_collection", "pytest_collection_finish",
    "pytest_collection_modifyitems", "pytest_configure", "pytest_configure_node", "pytest_report_teststatus",
    "pytest_runtest_makereport", "pytest_runtest_protocol", "pytest_runtestloop", "pytest_sessionfinish",
    "pytest_sessionstart", "pytest_terminal_summary", "pytest_xdist_node_collection_finished",
]  # fmt: skip

"""What every test starts from: Ctrl-C works in the processes that tests start, however the tests were started."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

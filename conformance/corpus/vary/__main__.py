"""``python -m conformance.corpus.vary``: generates samples from those of the corpus, and writes them beside it."""

from __future__ import annotations

import sys

from conformance.corpus.vary.build import build

if __name__ == "__main__":
    print(build(progress=lambda text: print(text, file=sys.stderr, flush=True)))

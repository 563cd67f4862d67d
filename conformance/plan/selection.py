"""The part of the matrix that a run takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from conformance.plan.tiers import TIERS, Tier


@dataclass(frozen=True)
class Selection:
    """The part of the matrix that a run takes. None takes all."""

    tier: Tier = TIERS["wide"]
    dtypes: frozenset[str] | None = None
    layouts: frozenset[str] | None = None
    routes: frozenset[str] | None = None
    case: str = ""  # this case alone

    def narrowed(self) -> Tier:
        """Return the tier, limited to the requested dtypes and layouts."""
        return replace(
            self.tier,
            dtypes=self.dtypes if self.dtypes is not None else self.tier.dtypes,
            layouts=self.layouts if self.layouts is not None else self.tier.layouts,
            chosen=self.tier.chosen if self.layouts is None else frozenset(),
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict with the tier's name."""
        names = {"dtypes": self.dtypes, "layouts": self.layouts, "routes": self.routes}
        kept = {key: None if value is None else sorted(value) for key, value in names.items()}
        return {"tier": self.tier.name, "case": self.case, **kept}

    @staticmethod
    def from_json(d: dict[str, Any]) -> Selection:
        """Return the selection of a :meth:`to_json` dict."""
        kept = {key: None if d[key] is None else frozenset(d[key]) for key in ("dtypes", "layouts", "routes")}
        return Selection(tier=TIERS[d["tier"]], case=d["case"], **kept)

"""The cells and cases that a run takes from one backend's matrix."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Any

import torch

from conformance import backends, contexts, ops
from conformance.backends import Capabilities
from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.inventory import Overload, inventory
from conformance.layouts import AS_STRIDED, CONTEXTS, OF_GENERATED, OF_NATIVE, is_among
from conformance.ops.family import Accumulation
from conformance.plan import cases as cases_
from conformance.plan import wider
from conformance.plan.case import Case
from conformance.plan.selection import Selection
from conformance.plan.tiers import WIDEST, Share, Tier
from conformance.scenarios import catalogue
from conformance.support.suggestions import unknown
from conformance.vocabulary import CASE_ID, RUN, CaseId, CellId, Route


class Plan:
    """The cells and cases of a run on ``backend``, from the corpus, the inventory and the families of ops.

    ``seed``: the seed of random draws.
    """

    def __init__(self, backend: Capabilities, selection: Selection, seed: int) -> None:
        # Set this before any fork. It also makes the reference's sums independent of the machine.
        torch.set_num_threads(backend.threads)
        self.backend = backend
        self.selection = selection
        self.tier = selection.narrowed()
        wanted = self.tier.layouts
        # Most samples are generated, and reading them takes seconds.
        self.corpus = reader.load(generated=wanted is None or bool(wanted & OF_GENERATED))
        self.inventory: dict[str, Overload] = {o.name: o for o in inventory(backend.device)}
        self.seed = seed
        one = CaseId.parse(selection.case)
        self._only = one.cell if one else None  # the cell of the requested case

    def recipe(self) -> dict[str, Any]:
        """Return JSON-able data from which :meth:`made_from` makes the same plan in another process."""
        return {"backend": self.backend.asked, "selection": self.selection.to_json(), "seed": self.seed}

    @staticmethod
    def made_from(recipe: dict[str, Any]) -> Plan:
        """Return the plan of a :meth:`recipe`. Raises the errors of finding the backend and of loading the corpus."""
        selection = Selection.from_json(recipe["selection"])
        return Plan(backends.find(recipe["backend"]), selection, recipe["seed"])

    def knows(self, case_id: str) -> bool:
        """Return whether the matrix has this case."""
        found = CaseId.parse(case_id)
        if found is not None and found.cell.is_scenario:
            return found.cell in self.scenarios() and case_id in self.case_ids(found.cell)
        if found is None or found.cell.overload not in self.inventory:
            return False
        return found.cell in self.cells(found.cell.overload) and case_id in self.case_ids(found.cell)

    def unknown_case(self, case_id: str) -> str:
        """Return a text about a case that the matrix does not have: the unknown part of its id, and near names."""
        found = CaseId.parse(case_id)
        cell = found.cell if found else CellId.parse(case_id)
        if cell is None:
            return f"{case_id!r} is not a case's id; one looks like {CASE_ID}"
        if cell.is_scenario:
            return unknown("case", case_id, [f"{CellId.of_scenario(name)}#{RUN}" for name in catalogue.names()])
        if cell.overload not in self.corpus.overloads:
            return unknown("overload", cell.overload, self.corpus.overloads, "conformance inventory")
        known = self.cells(cell.overload)
        if cell not in known:
            return unknown("cell", str(cell), map(str, known))
        return unknown("case", case_id, [case.id for case in self.all_cases(cell)])

    def precedes(self, id_: str) -> bool:
        """Return whether an id names a case or a cell that can run before another case."""
        case = CaseId.parse(id_)
        cell = case.cell if case else CellId.parse(id_)
        if cell is None or not (cell.is_scenario or cell.overload in self.inventory):
            return False
        if cell.is_scenario:
            return cell.overload in catalogue.names() and (case is None or case.sample == RUN)
        return cell in self.cells(cell.overload) and (case is None or id_ in [c.id for c in self.all_cases(cell)])

    def family(self, name: str, wanted: Callable[[str], bool] = lambda _: True) -> list[CellId]:
        """Return the cells of one family that the selection takes, by overload. The overloads must be ``wanted``.

        If a case was requested, only its cell is returned.
        """
        if self._only:
            return [self._only] if self._only.family == name and wanted(self._only.overload) else []
        return [cell for o in self.overloads() if ops.facts(o).family == name and wanted(o) for cell in self.cells(o)]

    def load(self) -> None:
        """Load the families of ops and the values of samples, from which cases are made. Raises CorpusError."""
        ops.families()
        self.corpus.load_values()

    def scenarios(self, module: str = "") -> list[CellId]:
        """Return the scenarios that the selection takes, of all modules or of one.

        Scenarios have no dtype, layout or route: unless a case was requested, a selection by any of these takes none.
        """
        selection = self.selection
        if self._only is None and (selection.dtypes, selection.layouts, selection.routes) != (None, None, None):
            return []
        found = (catalogue.find(name) for name in catalogue.names())
        taken = [
            s for s in found if (self._only or self.tier.has_scenario(s.slow, s.compiles)) and module in ("", s.module)
        ]
        cells = [CellId.of_scenario(s.name) for s in taken if module in ("", s.module)]
        return [cell for cell in cells if self._only in (None, cell)]

    def overloads(self) -> list[str]:
        """Return the overloads that have samples, exist in this torch, and are served by a requested route."""
        routes = self.selection.routes
        found = (o for o in self.corpus.overloads if o in self.inventory)
        return [o for o in found if routes is None or self.inventory[o].route.value in routes]

    def cells(self, overload: str) -> list[CellId]:
        """Return the cells of one overload in the requested tier, except those in which CPU's own kernel does harm."""
        facts = ops.facts(overload)
        recorded = self.corpus.recorded(overload)
        generated = self.corpus.generated_cells(overload, own_kernel=not self._is_composite(overload))
        pointwise = "pointwise" in self.inventory[overload].tags
        broadcasts = _form(self.inventory[overload]) in self._broadcasting
        found = cases_.cells(facts.family, overload, recorded, self.tier, generated, pointwise, broadcasts)
        if self.inventory[overload].route is not Route.NATIVE:
            found = [c for c in found if c.layout not in OF_NATIVE]
        if lacking := self.lacking(overload):
            found = wider.cells(found, self.samples(overload), self.tier, lacking)
        found = [c for c in found if c.layout not in CONTEXTS or self._has_context(c)]
        found = [c for c in found if not is_among(c.layout, facts.overruns) and c.dtype not in facts.undefined_in]
        return self.share(overload).of(found)

    @cached_property
    def _broadcasting(self) -> frozenset[str]:
        """The names of ops that have a pointwise overload. Some of their forms lack torch's tag."""
        return frozenset(_form(o) for o in self.inventory.values() if "pointwise" in o.tags)

    def lacking(self, overload: str) -> list[str]:
        """Return the dtypes in which CPU lacks an overload for which the backend has a kernel of its own.

        Random draws, and results that are rounded after each of many sums, do not follow from a wider dtype, so
        overloads with these have no such dtypes. A thinned tier leaves the dtypes out.
        """
        facts = ops.facts(overload)
        follows = facts.random is None and facts.tolerance.accumulation is not Accumulation.REPEATED
        is_native = self.inventory[overload].route is Route.NATIVE
        if not follows or not is_native or self.share(overload).one_at_a_time:
            return []
        found = wider.lacking(self.corpus.recorded(overload), self.corpus.generated_cells(overload))
        return [dtype for dtype in found if wider.WIDER[dtype] not in facts.undefined_in]

    def samples(self, overload: str) -> tuple[Sample, ...]:
        """Return the samples of an overload; those for a backend's own kernel only where the backend has one."""
        return _samples_of_composite(self, overload) if self._is_composite(overload) else self.corpus.samples(overload)

    def _is_composite(self, overload: str) -> bool:
        return self.inventory[overload].route is Route.COMPOSITE

    def share(self, overload: str) -> Share:
        """Return how many of an overload's cells and samples the tier takes."""
        return self._share_in(self.tier, overload)

    def _share_in(self, tier: Tier, overload: str) -> Share:
        return tier.share(self.inventory[overload].route, only_way=ops.facts(overload).only_way)

    def contexts(self) -> list[str]:
        """Return the names of the contexts that the selection takes."""
        wanted = {self._only.layout} if self._only else self.tier.layouts
        chosen = {name for name, _ in self.tier.chosen}
        return [name for name in CONTEXTS if wanted is None or name in wanted | chosen]

    def contexts_left_out(self) -> str:
        """Return a text with the tier's contexts without cells, and their requirements; "" if all have cells."""
        lacking = [(name, contexts.of(name).lacks(self.backend)) for name in self.contexts()]
        texts = [f"{name} (needs {what})" for name, what in lacking if what]
        return f"contexts that are not tried: {', '.join(texts)}" if texts else ""

    def _has_context(self, cell: CellId) -> bool:
        """Return whether the backend meets the needs of a cell's context, which applies to the cell's overload."""
        context = contexts.of(cell.layout)
        if context.per_family and cell.overload not in self._few_of_families(context.name):
            return False
        return context.applies(self.inventory[cell.overload]) and not context.lacks(self.backend)

    @cache  # noqa: B019 - a process has few plans, and each lives as long as the process
    def _few_of_families(self, name: str) -> frozenset[str]:
        """Return the overloads with cells of a context that takes few of each family.

        Their names have the smallest checksums, so that the choice does not depend on the rest of a selection.
        """
        context = contexts.of(name)
        families: dict[str, list[str]] = {}
        for overload in sorted(self.corpus.overloads, key=lambda o: (zlib.crc32(o.encode()), o)):
            if overload in self.inventory and context.applies(self.inventory[overload]):
                families.setdefault(ops.facts(overload).family, []).append(overload)
        return frozenset(o for found in families.values() for o in found[: context.per_family])

    def cases(self, cell: CellId) -> list[Case]:
        """Return the cases of one cell; only the requested case if there is one."""
        wanted, found = self.selection.case, self.all_cases(cell)
        return [c for c in found if c.id == wanted] if wanted else found

    def all_cases(self, cell: CellId) -> list[Case]:
        """Return the cases of one cell, even if a single case was requested."""
        return _cases(self, cell, self.share(cell.overload).most(cell.layout))

    def takes_all(self, cell: CellId) -> bool:
        """Return whether :meth:`cases` has all cases of this cell in the widest tier."""
        most, widest = (self._share_in(t, cell.overload).most(cell.layout) for t in (self.tier, WIDEST))
        found = self.all_cases(cell)
        if most != widest and most is not None and len(_cases(self, cell, most + 1)) > len(found):
            return False
        return len(self.cases(cell)) == len(found)

    def case_ids(self, cell: CellId) -> list[str]:
        """Return the ids of a cell's cases, in the order in which they run."""
        if cell.is_scenario:
            return [str(CaseId(cell, RUN))]
        return [case.id for case in self.cases(cell)]

    def route(self, cell: CellId) -> str:
        """Return the route of the cell's overload; "" for a scenario."""
        return "" if cell.is_scenario else str(self.inventory[cell.overload].route)


def _form(overload: Overload) -> str:
    """Return the name that the forms of an op share: ``add`` of ``add_.Tensor`` and of ``add.out``."""
    return overload.base.removesuffix("_")


@lru_cache(maxsize=8)  # since many cells of one overload follow each other
def _samples_of_composite(plan: Plan, overload: str) -> tuple[Sample, ...]:
    return tuple(s for s in plan.corpus.samples(overload) if not s.own_kernel)


@lru_cache(maxsize=8)
def _cases(plan: Plan, cell: CellId, most: int | None) -> list[Case]:
    overload = plan.inventory[cell.overload]
    samples = plan.samples(cell.overload)
    if overload.route is not Route.NATIVE and cell.layout == AS_STRIDED:
        samples = plan.corpus.recorded(cell.overload)
    pointwise = "pointwise" in overload.tags
    found = cases_.cases(cell, samples, most, pointwise)
    if cell.layout in wider.TRIED and cell.dtype in plan.lacking(cell.overload):
        found += wider.cases(cell, samples, most, pointwise)
    return found

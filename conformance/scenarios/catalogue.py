"""The scenarios by name."""

from __future__ import annotations

from conformance.scenarios import (
    after_errors,
    at_once,
    attention_kernels,
    block_masks,
    blocks,
    compiled_calls,
    compiled_models,
    compiled_tensors,
    decoder,
    defaults,
    device_names,
    devices,
    distributed,
    distributions,
    drawn_collectives,
    endings,
    exchange,
    exporting,
    first_uses,
    flat_tensors,
    flex_attention,
    forms,
    generators,
    gradient_calls,
    graphs,
    groups,
    handles,
    hidden_devices,
    importing,
    loading,
    long_draws,
    made_memory,
    masks,
    memory_needed,
    memory_numbers,
    millions,
    model_parallel,
    module_streams,
    modules,
    named_methods,
    not_current,
    operands,
    optimizer_states,
    parallel,
    profiling,
    python_values,
    queries,
    scripted,
    seeding,
    sequences,
    serialization,
    shared_memory,
    sharing,
    storage_objects,
    storages,
    stream_handles,
    streams,
    subclasses,
    subgroups,
    threads,
    training,
    transfers,
    transforms,
    user_kernels,
    user_ops,
    waits,
    walks,
)
from conformance.scenarios.model import SCENARIOS, Scenario
from conformance.support.suggestions import unknown

# Importing the modules fills ``SCENARIOS``.
MODULES = (
    after_errors, at_once, attention_kernels, block_masks, blocks, compiled_calls, compiled_models, compiled_tensors,
    decoder, defaults, device_names, devices, distributed, distributions, drawn_collectives, endings, exchange,
    exporting, first_uses, flat_tensors, flex_attention, forms, generators, gradient_calls, graphs, groups, handles,
    hidden_devices, importing, loading, long_draws, made_memory, masks, memory_needed, memory_numbers, millions,
    model_parallel, module_streams, modules, named_methods, not_current, operands, optimizer_states, parallel,
    profiling, python_values, queries, scripted, seeding, sequences, serialization, shared_memory, sharing,
    storage_objects, storages, stream_handles, streams, subclasses, subgroups, threads, training, transfers,
    transforms, user_kernels, user_ops, waits, walks,
)  # fmt: skip


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(SCENARIOS)


def find(name: str) -> Scenario:
    """Return the scenario of this name. Raises LookupError, which names similar scenarios, if there is none."""
    if name not in SCENARIOS:
        raise LookupError(unknown("scenario", name, names()))
    return SCENARIOS[name]

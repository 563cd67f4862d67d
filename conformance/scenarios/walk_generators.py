"""Steps about generators: seeds, draws and states."""

from __future__ import annotations

from itertools import product

from conformance.scenarios.walk_kinds import device_of, form_of, kind
from conformance.scenarios.walk_state import NotPossible, Source, State, Step
from conformance.torch_versions import seeds

#: The area of the kinds of steps.
GENERATORS = "generators"

# Calls that draw. D stands for a device, n for the number of draws, and g or e for the generator.
_DRAWS = (
    "torch.rand({n}, dtype=torch.float32, device=D{g})", "torch.randn({n}, dtype=torch.float32, device=D{g})",
    "torch.randint(0, 1 << 30, ({n},), device=D{g})", "torch.randperm({n}, device=D{g})",
    "torch.zeros({n}, dtype=torch.float32, device=D).exponential_({e})",
    "torch.zeros({n}, dtype=torch.float64, device=D).normal_({e})",
)  # fmt: skip
_SIZES = (1, 3, 64, 130)
_SEEDS = (5, 6)
_MANY = 64  # numbers: the chance that two streams agree in all of them is negligible


@kind(GENERATORS, weight=6)
def seed_all(s: State, step: Step) -> None:
    """Seed all devices."""
    seed, of_torch = step.pick("seed", _SEEDS), ("torch.manual_seed",) if seeds(s.kind) else ()
    s.write(f"{step.pick('way', (*of_torch, f'torch.{s.kind}.manual_seed_all'))}({seed})")
    s.default_generators = {f"{index}": Source(index, seed) for index in s.devices}


@kind(GENERATORS, "seed_all", weight=3)
def seed_current(s: State, step: Step) -> None:
    """Seed the current device."""
    seed = step.pick("seed", _SEEDS)
    s.write(f"torch.{s.kind}.manual_seed({seed})")
    s.default_generators[f"{s.thread.device}"] = Source(s.thread.device, seed)


@kind(GENERATORS, "seed_all")
def initial_seed(s: State, _: Step) -> None:
    """Ask for the seed of the current device."""
    state = s.default_generators.get(f"{s.thread.device}")
    if state is None:
        raise NotPossible("a seed")
    s.write(f"assert torch.{s.kind}.initial_seed() == {state.seed}")


def _draw(s: State, step: Step, source: Source, generator: str) -> Source:
    """Write a draw, and compare it with earlier ones. Return the state after it."""
    known = [drawn for at, drawn in s.drawn if at == source]
    again = bool(known) and step.pick("again", (True, False))
    call, n = step.pick("draw", known if again else product(_DRAWS, _SIZES))
    name, given = f"r{step.number}", f"generator={generator}" if generator else ""
    current = source.device == s.thread.device
    device = step.pick("form", (s.name(source.device), f'"{s.kind}"')) if current else s.name(source.device)
    text = call.format(n=n, g=f", {given}" if given else "", e=given).replace("D", device, 1)
    s.write(f"{name} = {text}.cpu()")
    s.order.submit(s.current(source.device))
    if (source, (call, n)) in s.drawn:
        s.write(f"assert same({name}, {s.drawn[source, (call, n)]})")
    for (other, drawn), earlier in s.drawn.items() if n >= _MANY else ():
        if drawn == (call, n) and source.differs_from(other):
            s.write(f"assert not same({name}, {earlier})")
    s.drawn.setdefault((source, (call, n)), name)
    return source.behind((call, n))


@kind(GENERATORS, "seed_all", weight=12)
def draw(s: State, step: Step) -> None:
    """Draw from the generator of a device."""
    index = step.pick("device", s.default_generators)
    s.default_generators[index] = _draw(s, step, s.default_generators[index], "")


@kind(GENERATORS, weight=2)
def new_generator(s: State, step: Step) -> None:
    """Make a generator."""
    device, seed, name = device_of(s, step), step.pick("seed", _SEEDS), f"g{step.number}"
    s.write(f"{name} = torch.Generator({s.name(device)}).manual_seed({seed})")
    s.generators[name] = Source(device, seed, own=True)


@kind(GENERATORS, "new_generator", weight=4)
def copy_generator(s: State, step: Step) -> None:
    """Copy a generator with its state."""
    of, name = step.pick("of", s.generators), f"g{step.number}"
    copies = "{}.clone_state()", "copy.deepcopy({})", "pickle.loads(pickle.dumps({}))"
    s.write(f"{name} = {step.pick('copy', copies).format(of)}")
    s.generators[name] = s.generators[of]


@kind(GENERATORS, "new_generator", weight=6)
def draw_from_generator(s: State, step: Step) -> None:
    """Draw from a generator that was made."""
    name = step.pick("generator", s.generators)
    s.generators[name] = _draw(s, step, s.generators[name], name)


@kind(GENERATORS, "seed_all", weight=2)
def save_state(s: State, step: Step) -> None:
    """Save the state of a generator."""
    index, name = step.pick("device", (*s.default_generators, *s.generators)), f"x{step.number}"
    if index in s.generators:
        s.write(f"{name} = {index}.get_state()")
        s.saved[name] = s.generators[index]
    else:
        s.write(f"{name} = torch.{s.kind}.get_rng_state({form_of(s, step, int(index))})")
        s.saved[name] = s.default_generators[index]


@kind(GENERATORS, "seed_all", "save_state", weight=3)
def restore_state(s: State, step: Step) -> None:
    """Restore a saved state in a generator of its device."""
    name = step.pick("state", s.saved)
    source = s.saved[name]
    if source.own:
        generator = step.pick("generator", [g for g, of in s.generators.items() if of.device == source.device])
        s.write(f"{generator}.set_state({name})")
        s.generators[generator] = source
    else:
        s.write(f"torch.{s.kind}.set_rng_state({name}, {form_of(s, step, source.device)})")
        s.default_generators[f"{source.device}"] = source


@kind(GENERATORS, "seed_all", "seed_current")
def save_all_states(s: State, step: Step) -> None:
    """Save the states of all devices."""
    if len(s.default_generators) < len(s.devices):
        raise NotPossible("a seed of each device")
    s.write(f"x{step.number} = torch.{s.kind}.get_rng_state_all()")
    s.saved_of_all[f"x{step.number}"] = dict(s.default_generators)


@kind(GENERATORS, "seed_all", "save_all_states", weight=2)
def restore_all_states(s: State, step: Step) -> None:
    """Restore the states of all devices."""
    name = step.pick("states", s.saved_of_all)
    s.write(f"torch.{s.kind}.set_rng_state_all({name})")
    s.default_generators = dict(s.saved_of_all[name])


@kind(GENERATORS, "seed_all", weight=2)
def in_fork(s: State, _: Step) -> None:
    """Begin a block whose end restores the default generators."""
    devices = list(s.devices)
    block = s.open(f'with torch.random.fork_rng(devices={devices}, device_type="{s.kind}"):')
    block.forked = dict(s.default_generators)

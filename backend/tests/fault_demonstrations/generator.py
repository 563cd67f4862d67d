"""Demonstrations of the faults that show in the state of a random generator."""

DEMONSTRATIONS = {
    "import_draws_on_host": """
import subprocess, sys

program = "import torch; torch.manual_seed(3); import refnpu; print(float(torch.rand(1)))"
torch.manual_seed(3)
result = float(torch.rand(1))
if d == "npu":
    result = float(subprocess.check_output([sys.executable, "-c", program], text=True))""",
    "sampling_leaves_generator": "result = torch.equal(torch.randperm(9, device=d), torch.randperm(9, device=d))",
    "set_state_forgets_position": """
g = torch.Generator(d)
torch.rand(1, device=d, generator=g)
state, drawn = g.get_state(), torch.rand(1, device=d, generator=g)
g.set_state(state)
result = torch.equal(torch.rand(1, device=d, generator=g), drawn)""",
    "get_state_aliases": """
g = torch.Generator(d)
state = g.get_state()
torch.rand(1, device=d, generator=g)
result = torch.equal(state, g.get_state())""",
    "second_device_shares_generator": """
def drawn(index):
    device = torch.device(d, index if d == "npu" else None)
    torch.manual_seed(0) if index == 0 or d == "cpu" else None
    return torch.rand(4, device=device).cpu()
result = torch.equal(drawn(0), drawn(1))""",
    "generator_clone_shares_state": """
g = torch.Generator(d)
clone = g.clone_state()
result = torch.equal(torch.rand(1, device=d, generator=clone), torch.rand(1, device=d, generator=g))""",
    "generator_argument_ignored": """
g = torch.Generator(d).manual_seed(3)
first = torch.rand(4, device=d, generator=g)
result = torch.equal(first, torch.rand(4, device=d, generator=g.manual_seed(3)))""",
    "normal_of_tensors_ignores_generator": """
g, zeros = torch.Generator(d), torch.zeros(2, device=d)
first = torch.normal(zeros, zeros + 1, generator=g.manual_seed(3))
result = torch.equal(first, torch.normal(zeros, zeros + 1, generator=g.manual_seed(3)))""",
    "fallback_ignores_generator": """
g, x = torch.Generator(d), torch.full((8,), -1.0, device=d)
draw = lambda: torch.ops.aten.rrelu_with_noise(x, torch.empty_like(x), 0.1, 0.9, True, g.manual_seed(3))
result = torch.equal(draw(), draw())""",
    "seed_in_32_bits": "result = torch.Generator(d).manual_seed(2**40).initial_seed()",
    "randperm_leaves_last": "result = any(torch.randperm(4, device=d)[3].item() != 3 for _ in range(40))",
    "multinomial_puts_back": """
result = torch.ones(50, device=d).multinomial(50).unique().numel()""",
    "bernoulli_of_first_probability": "result = torch.tensor([0.0, 1.0, 1.0]).to(d).bernoulli()",
    "normal_drawn_in_pairs": "result = torch.full((5,), 9.0, device=d).normal_(3.0, 1.0)[-1].item() == 3.0",
    "strided_rows_drawn_alike": """
x = torch.zeros(2, 80, device=d)[:, ::2].uniform_()
result = torch.equal(x[0], x[1])""",
    "multinomial_rows_alike": """
drawn = torch.ones(6, 1000, device=d).multinomial(20, True)
result = bool((drawn == drawn[:1]).all())""",
    "sampling_from_first_device": """
first, second = (torch.device(d, i if d == "npu" else None) for i in (0, 1))
def drawn(before):
    torch.manual_seed(0)
    torch.randperm(100, device=second) if before else None
    return torch.randperm(100, device=first).cpu()
result = d == "cpu" or torch.equal(drawn(False), drawn(True))""",
    "double_fills_copy_generator": """
g = torch.Generator(d).manual_seed(3)
drawn = [torch.empty(4, dtype=torch.float64, device=d).uniform_(generator=g) for _ in range(2)]
result = torch.equal(*drawn)""",
    "chosen_seed_is_default": "result = len({torch.Generator(d).seed() for _ in range(3)})",
    "new_generator_copies_default": """
torch.manual_seed(3)
result = torch.Generator(d).initial_seed()""",
    "bernoulli_repeats_after_65536": """
x = torch.empty(2 * 65536, device=d).bernoulli_(0.5)
result = torch.equal(*x.split(65536))""",
    "given_generator_moves_default": """
torch.manual_seed(1)
first = torch.rand(4, device=d)
torch.manual_seed(1)
torch.rand(4, device=d, generator=torch.Generator(d))
result = torch.equal(first, torch.rand(4, device=d))""",
    "seed_of_negative_by_magnitude": "result = torch.Generator(d).manual_seed(-3).initial_seed()",
    "normal_without_spread_draws_nothing": """
torch.empty(20, device=d).normal_(1, 0)
drawn = torch.rand(20, device=d)
torch.manual_seed(0)
result = torch.equal(drawn, torch.rand(20, device=d))""",
    "set_rng_state_of_current_device": """
result = True
if d == "npu":
    state, drawn = torch.npu.get_rng_state(1), torch.rand(4, device="npu:1")
    torch.npu.set_rng_state(state, 1)
    result = torch.equal(drawn, torch.rand(4, device="npu:1"))""",
    "generator_made_on_current_device": 'result = d == "cpu" or torch.Generator("npu:1").device.index == 1',
    "random_of_half_past_its_digits": """
result = bool(torch.zeros(99, dtype=torch.float16, device=d).random_().max() <= 2048)""",
    "generator_cloned_on_current_device": """
result = d == "cpu" or torch.Generator("npu:1").clone_state().device.index == 1""",
    "manual_seed_all_from_current_device": """
if d == "npu":
    torch.npu.set_device(1)
    torch.manual_seed(7)
result = d == "cpu" or torch.npu.default_generators[0].initial_seed() == 7""",
    "set_state_keeps_seed": """
g = torch.Generator(d)
g.set_state(torch.Generator(d).manual_seed(5).get_state())
result = g.initial_seed()""",
    "normal_spare_survives_seed": """
drawn = [torch.randn(5, device=d) for _ in range(2) if torch.manual_seed(3)]
result = torch.equal(*drawn)""",
    "seed_before_first_draw_lost": """
drawn = [torch.rand(3, device=d) for _ in range(2) if torch.manual_seed(5)]
result = torch.equal(*drawn)""",
    "set_rng_state_all_from_first": """
result = True
if d == "npu":
    torch.npu.default_generators[1].manual_seed(5)
    states = torch.npu.get_rng_state_all()
    torch.npu.set_rng_state_all(states)
    result = torch.equal(torch.npu.get_rng_state(1), states[1])""",
    "same_seed_after_set_state_ignored": """
g = torch.Generator(d).manual_seed(7)
g.set_state(g.get_state())
drawn = [torch.rand(4, device=d, generator=g) for _ in range(2) if g.manual_seed(7)]
result = torch.equal(*drawn)""",
    "unpickled_generator_starts_anew": """
from copy import deepcopy

g = torch.Generator(d)
torch.rand(4, device=d, generator=g)
copy = deepcopy(g)
result = torch.equal(*(torch.rand(4, device=d, generator=each) for each in (g, copy)))""",
    "fallback_draws_leave_generator": """
x = torch.full((64,), -1.0, device=d)
result = torch.equal(*(F.rrelu(x, training=True) for _ in range(2)))""",
    "random_of_bytes_signed": """
result = bool((torch.empty(4096, dtype=torch.uint8, device=d).random_() > 127).any())""",
    "given_generator_kept_by_device": """
first, second = torch.Generator(d), torch.Generator(d)
torch.rand(1, device=d, generator=first)
before = second.get_state()
torch.rand(1, device=d, generator=second)
result = torch.equal(second.get_state(), before)""",
    "seed_all_of_current_device": """
result = False
if d == "npu":
    torch.npu.manual_seed_all(5)
    torch.npu.seed_all()
    result = torch.npu.default_generators[1].initial_seed() == 5""",
    "later_seed_restarts_first": """
g = torch.Generator(d).manual_seed(1)
result = g.manual_seed(2).initial_seed()""",
    "seed_told_in_32_bits": """
g = torch.Generator(d)
result = all(g.seed() == g.initial_seed() for _ in range(4))""",
}

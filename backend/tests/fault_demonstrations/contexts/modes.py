"""Demonstrations of the faults that show in a mode of torch, or in changed state other than memory."""

DEMONSTRATIONS = {
    "unfold_sets_version_counter": """
with torch.inference_mode():
    x = torch.ones(4, device=d)
    result = raised(lambda: x.unfold(0, 2, 1))""",
    "embedding_asks_version": """
with torch.inference_mode():
    x, i = torch.ones(4, 2, device=d), torch.zeros(1, dtype=torch.int64, device=d)
    result = raised(lambda: F.embedding(i, x))""",
    "deterministic_empty_not_filled": """
torch.use_deterministic_algorithms(True)
result = torch.empty(3, device=d)
torch.use_deterministic_algorithms(False)""",
    "deterministic_integers_filled_with_zero": """
torch.use_deterministic_algorithms(True)
result = torch.empty(3, dtype=torch.int16, device=d)
torch.use_deterministic_algorithms(False)""",
    "deterministic_scatter_add_of_largest": """
i = torch.zeros(2, dtype=torch.int64, device=d)
torch.use_deterministic_algorithms(True)
result = torch.zeros(1, device=d).scatter_add(0, i, torch.ones(2, device=d))
torch.use_deterministic_algorithms(False)""",
    "deterministic_index_add_ignores_alpha": """
i = torch.zeros(1, dtype=torch.int64, device=d)
torch.use_deterministic_algorithms(True)
result = torch.zeros(1, device=d).index_add(0, i, torch.ones(1, device=d), alpha=2)
torch.use_deterministic_algorithms(False)""",
    "integers_computed_in_float32": """
torch.set_default_dtype(torch.float64)
result = (torch.arange(1, 9, device=d).sqrt().square() - torch.arange(1, 9, device=d)).abs() > 1e-12
torch.set_default_dtype(torch.float32)""",
    "deterministic_warning_raised": """
torch.use_deterministic_algorithms(True, warn_only=True)
result = raised(lambda: torch.ones(2, device=d).cumsum(0))
torch.use_deterministic_algorithms(False)""",
    "autocast_norms_lower": """
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(F.group_norm(torch.ones(1, 2, 2, device=d), 1).dtype)""",
    "autocast_promotes_to_lower": """
x = torch.ones(2, device=d)
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(torch.addcmul(x, x, x).dtype)""",
    "autocast_lowers_double": """
x = torch.ones(2, 2, dtype=torch.float64, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "deterministic_index_put_to_copy": """
result = torch.zeros(3, 2, device=d)
torch.use_deterministic_algorithms(True)
result.t().index_put_((torch.tensor([0]).to(d),), torch.tensor([1.0, 2.0, 3.0]).to(d))
torch.use_deterministic_algorithms(False)""",
    "autocast_dtype_of_first_use": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    x @ x
with torch.autocast(d, torch.float16):
    result = str((x @ x).dtype)""",
    "autocast_overrides_dtype": """
x = torch.ones(2, dtype=torch.bfloat16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(x.sum(dtype=torch.float64).dtype)""",
    "autocast_keeps_cast_of_weight": """
x = torch.ones(2, 2, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    x @ x
x.detach().fill_(3)
with torch.autocast(d, torch.bfloat16):
    result = x @ x""",
    "autocast_leaves_lists": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(torch.einsum("ij,jk", x, x).dtype)""",
    "autocast_lowers_float32_alone": """
x = torch.ones(2, 2, dtype=torch.float16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "autocast_forgets_baddbmm": """
x = torch.ones(1, 2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(torch.baddbmm(x, x, x).dtype)""",
    "autocast_off_in_inference_mode": """
x = torch.ones(2, 2, device=d)
with torch.inference_mode(), torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "trunc_leaves_grad_mode_off": """
torch.ones(1, device=d).trunc()
result = torch.is_grad_enabled()""",
    "silu_leaves_subnormals_flushed": """
smallest = 2.0**-1022
F.silu(torch.ones(1, device=d))
result = smallest / 2 > 0""",
    "uniform_advances_host_generator": """
before = torch.get_rng_state()
torch.rand(1, device=d)
result = d == "cpu" or torch.equal(torch.get_rng_state(), before)""",
    "sort_advances_generator": """
state = torch.npu.get_rng_state if d == "npu" else torch.get_rng_state
before = state()
torch.ones(2, device=d).sort()
result = torch.equal(state(), before)""",
    "fallback_leaves_deterministic": """
torch.ones(1, device=d).erfinv()
result = torch.are_deterministic_algorithms_enabled()""",
    "initial_seed_seeds": """
seed = torch.npu.initial_seed if d == "npu" else torch.initial_seed
result = seed() == seed()""",
    "memory_stats_resets_peak": """
result = True
if d == "npu":
    torch.ones(1000, device=d)
    peak = torch.npu.max_memory_allocated()
    torch.npu.memory_stats()
    result = torch.npu.max_memory_allocated() == peak""",
    "autocast_casts_results_back": """
x = torch.ones(2, dtype=torch.bfloat16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(F.mse_loss(x, x).dtype)""",
    "fallback_leaves_one_thread": """
torch.set_num_threads(2)
torch.ones(1, device=d).lgamma()
result = torch.get_num_threads()
torch.set_num_threads(1)""",
    "fallback_results_not_inference": """
with torch.inference_mode():
    result = torch.ones(3, dtype=torch.int64, device=d).bincount().is_inference()""",
    "autocast_casts_bool_masks": """
x = torch.eye(2, device=d)
with torch.autocast(d, torch.bfloat16):
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=x > 0)
result = y.float()""",
    "autocast_detaches_lists": """
x = torch.ones(2, dtype=torch.bfloat16, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    result = torch.cat([x, torch.ones(2, device=d)]).requires_grad""",
    "autocast_reuses_cast_of_no_grad": """
x = torch.ones(2, 2, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    with torch.no_grad():
        x @ x
    result = (x @ x).requires_grad""",
    "autocast_promotes_first_two": """
x = torch.ones(2, device=d)
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(torch.cat([x.bfloat16(), x.bfloat16(), x]).dtype)""",
    "autocast_off_after_error": """
x = torch.ones(2, 3, device=d)
with torch.autocast(d, torch.bfloat16):
    raised(lambda: x @ x)
    result = str((x @ x.t()).dtype)""",
    "autocast_refuses_float16": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.float16):
    result = str((x @ x).dtype)""",
}

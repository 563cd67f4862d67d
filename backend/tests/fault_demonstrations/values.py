"""Demonstrations of the faults that show with some values only: zeros, infinities, NaN, limits, ties, cancellation."""

DEMONSTRATIONS = {
    "abs_keeps_negative_zero": "result = torch.tensor([-0.0]).to(d).abs()",
    "mul_flushes_subnormals": "x = torch.tensor([1e-20]).to(d); result = x * x",
    "bfloat16_copy_truncates": "result = torch.tensor([1.999]).to(d).bfloat16()",
    "half_copy_saturates": "result = torch.tensor([1e6]).to(d).half()",
    "int64_copy_saturates": "result = torch.tensor([2**31]).to(d).int()",
    "complex_to_bool_by_real_part": "result = torch.tensor([1j]).to(d).bool()",
    "integer_minimum_through_float": """
result = torch.tensor([2**24 + 1]).to(d).minimum(torch.tensor([2**24]).to(d))""",
    "integer_abs_saturates": "result = torch.tensor([-(2**63)]).to(d).abs()",
    "sin_reduces_angles_in_float": "result = torch.tensor([1e6]).to(d).sin()",
    "expm1_cancels": "result = torch.tensor([1e-6]).to(d).expm1()",
    "hardshrink_drops_nan": "result = F.hardshrink(torch.tensor([nan]).to(d))",
    "var_naive_moments": "result = torch.tensor([10000.0, 10001.0, 10002.0]).to(d).var()",
    "half_products_in_half": """
x = torch.ones(2100, dtype=torch.float16, device=d)
result = x.view(1, 2100) @ x.view(2100, 1)""",
    "nan_to_num_bfloat16_overflows": "result = torch.tensor([inf], dtype=torch.bfloat16).to(d).nan_to_num()",
    "cat_quiets_nan": """
x = torch.tensor([0x7FC00001], dtype=torch.int32).to(d).view(torch.float32)
result = torch.cat([x, x]).view(torch.int32)""",
    "sort_orders_zeros_by_sign": "result = torch.tensor([0.0, -0.0]).to(d).sort(stable=True).indices",
    "softmax_of_minus_infinity_is_zero": "result = torch.full((2,), -inf, device=d).softmax(0)",
    "complex_abs_overflows": "result = torch.tensor([1e30 + 0j]).to(d).abs()",
    "lerp_from_start": """
start, end, weight = torch.tensor([[1e8], [1.0], [1.0]]).to(d)
result = start.lerp(end, weight)""",
    "prod_integers_in_double": "result = torch.tensor([2**53 + 1, 1]).to(d).prod()",
    "argmax_of_last_nan": "result = torch.tensor([nan, nan]).to(d).argmax()",
    "extreme_of_bytes_signed": "result = torch.tensor([1, 200], dtype=torch.uint8).to(d).amax()",
    "norm_of_infinity_drops_nan": "result = torch.tensor([1.0, nan]).to(d).norm(inf)",
    "var_divides_by_one_at_least": "result = torch.tensor([1.0]).to(d).var()",
    "cummax_of_int64_in_double": "result = torch.tensor([2**53 + 1, 2**53], device=d).cummax(0).values",
    "cummax_forgets_nan": "result = torch.tensor([nan, 1.0]).to(d).cummax(0).values",
    "descending_sort_puts_nan_last": "result = torch.tensor([1.0, nan]).to(d).sort(descending=True).indices",
    "remainder_by_quotient": "result = torch.tensor([-1.0]).to(d).remainder(inf)",
    "atan2_of_zeros_is_zero": "result = torch.tensor([0.0]).to(d).atan2(torch.tensor([-0.0]).to(d))",
    "shift_amount_wraps": "result = torch.tensor([1]).to(d) << torch.tensor([64]).to(d)",
    "eq_compares_bits": "result = torch.tensor([0.0]).to(d) == torch.tensor([-0.0]).to(d)",
    "sign_keeps_nan": "result = torch.tensor([nan]).to(d).sign()",
    "scatter_extreme_drops_nan": """
x, i = torch.ones(1, device=d), torch.tensor([0]).to(d)
result = x.scatter_reduce(0, i, torch.tensor([nan]).to(d), "amax")""",
    "scatter_mean_rounds_to_zero": """
x, i = torch.tensor([0]).to(d), torch.tensor([0]).to(d)
result = x.scatter_reduce(0, i, torch.tensor([-3]).to(d), "mean")""",
    "scan_rounds_to_half": "result = torch.ones(2100, dtype=torch.float16, device=d).mul(0.3).cumsum(0)",
    "lt_of_integers_in_double": "result = torch.tensor([2**53]).to(d) < torch.tensor([2**53 + 1]).to(d)",
    "fallback_number_in_float": "result = torch.isin(torch.tensor([2**24, 2**24 + 1], device=d), 2**24 + 1)",
    "host_scalar_in_float": "result = (torch.ones(1, dtype=torch.float64, device=d) * 0.1).item() == 0.1",
    "log_of_complex_ignores_negative_zero": "result = torch.tensor([complex(-1.0, -0.0)], device=d).log()",
    "sort_of_long_rows_by_48_bits": "result = (torch.arange(70, device=d) * 2**50).flip(0).sort().values",
    "softmax_first_block_masked_gives_nan": """
x = torch.zeros(130, device=d)
x[:128] = -inf
result = x.softmax(0)""",
    "lstm_cell_state_clipped": """
x, cell, weight = torch.zeros(1, 1, device=d), torch.full((1, 1), 500.0, device=d), torch.zeros(4, 1, device=d)
result = torch.lstm_cell(x, (x, cell), weight, weight)[1]""",
    "sort_padding_before_nan": "result = torch.tensor([1.0, nan, 0.0]).to(d).sort().values",
    "round_decimals_half_up": "result = torch.tensor([0.25]).to(d).round(decimals=1)",
    "asinh_squares_overflow": "result = torch.tensor([1e30]).to(d).asinh()",
    "hardtanh_gradient_at_bounds": (
        "result = torch.ops.aten.hardtanh_backward(torch.ones(1, device=d), torch.ones(1, device=d), -1, 1)"
    ),
    "integer_pow_of_minus_one": "result = torch.tensor([-1]).to(d) ** torch.tensor([-3]).to(d)",
    "copysign_of_negative_zero": "result = torch.ones(1, device=d).copysign(torch.tensor([-0.0]).to(d))",
    "float8_copy_flushes_subnormals": "result = torch.tensor([0.01]).to(d).to(torch.float8_e4m3fn).float()",
    "cummax_index_of_first_tie": "result = torch.ones(3, device=d).cummax(0).indices",
    "topk_nan_in_descending_row": "result = torch.tensor([3.0, 2.0, nan]).to(d).topk(1).values",
    "complex_tanh_overflows": "result = torch.tensor([200.0 + 1j]).to(d).tanh()",
    "prod_stops_at_zero": "result = torch.tensor([0.0, nan]).to(d).prod()",
    "le_negates_gt": "result = torch.tensor([nan]).to(d) <= 0",
    "complex_logical_not_by_real_part": "result = torch.tensor([1j]).to(d).logical_not()",
    "complex_sgn_of_zero_is_nan": "result = torch.zeros(1, dtype=torch.complex64, device=d).sgn()",
    "clamp_ignores_bound_of_nan": """
x = torch.ones(1, device=d)
result = x.clamp(nan * x, 2 * x)""",
    "pow_of_zero_to_negative_is_zero": "result = torch.zeros(1, device=d) ** torch.tensor([-1.0]).to(d)",
    "hypot_squares_overflow": "result = torch.tensor([1e30]).to(d).hypot(torch.tensor([1e30]).to(d))",
    "strided_sort_not_stable": """
x = torch.zeros(300, 2, device=d)
result = x.sort(dim=0, stable=True).indices""",
    "sort_of_uint64_signed": "result = torch.tensor([2**63 + 1, 1], dtype=torch.uint64).to(d).sort().indices",
    "floor_division_of_rounded_quotient": "result = torch.ones(1, device=d).floor_divide(0.1)",
    "complex_division_squares_overflow": """
x = torch.tensor([1e30 + 1e30j]).to(d)
result = x / x""",
    "scan_of_long_rows_in_double": """
x = torch.ones(70, dtype=torch.int64, device=d)
x[0] = 2**53
result = x.cumsum(0)""",
    "gemm_of_int64_in_32_bits": """
x = torch.full((1, 1), 2**20, device=d)
result = x @ x""",
    "round_ties_away": "result = torch.tensor([0.5]).to(d).round()",
    "pow_of_negative_base_is_nan": "result = torch.tensor([-2.0]).to(d) ** 4",
    "clamp_min_drops_nan": "result = torch.tensor([nan]).to(d).relu()",
    "float_to_uint8_saturates": "result = torch.tensor([-1.0]).to(d).to(torch.uint8)",
    "nan_to_bool_is_false": "result = torch.tensor([nan]).to(d).bool()",
    "half_copy_ties_away": "result = torch.tensor([1 + 2**-11]).to(d).half()",
    "complex_pow_of_zero_is_nan": "result = torch.zeros(1, dtype=torch.complex64, device=d) ** 2.5",
    "sum_compensates_infinity": "result = torch.tensor([1.0, inf]).to(d).sum()",
    "right_shift_of_bytes_signed": "result = torch.tensor([200], dtype=torch.uint8).to(d) >> 2",
    "sigmoid_gradient_not_conjugated": """
x = torch.tensor([1j]).to(d)
result = torch.ops.aten.sigmoid_backward(x, x)""",
    "logit_gradient_outside_eps_is_nan": """
x = torch.ones(1, device=d)
result = torch.ops.aten.logit_backward(x, x, 0.1)""",
    "norm_of_order_three_signed": "result = torch.tensor([-2.0]).to(d).norm(3)",
    "var_of_complex_drops_imaginary": "result = torch.tensor([1j, 3j]).to(d).var()",
    "log_softmax_logs_softmax": "result = torch.tensor([0.0, 1000.0]).to(d).log_softmax(0)",
    "integer_to_bool_by_lowest_byte": "result = torch.tensor([256]).to(d).bool()",
    "gemm_bfloat16_rounds_before_self": """
x, one = torch.tensor([[256.0], [1.0]]).bfloat16().to(d), torch.ones(1, 2, dtype=torch.bfloat16, device=d)
result = d == "cpu" or torch.addmm(one[:, :1], one, x).item() == 258""",
    "nll_loss_of_ignored_rows_is_zero": "result = F.nll_loss(torch.zeros(1, 2, device=d), torch.tensor([-100]).to(d))",
    "bools_added_modulo_two": """
x = torch.ones(1, dtype=torch.bool, device=d)
result = x.index_put((torch.tensor([0]).to(d),), x, accumulate=True)""",
    "masked_fill_of_tensor_in_double": """
x = torch.zeros(1, dtype=torch.int64, device=d)
result = x.masked_fill(x == 0, torch.tensor(2**53 + 1).to(d))""",
    "where_of_bytes_by_lowest_bit": """
x = torch.ones(1, device=d)
result = torch.where(torch.tensor([2], dtype=torch.uint8).to(d), x, -x)""",
    "upload_to_double_through_float": """
result = torch.zeros(1, dtype=torch.float64, device=d).copy_(torch.tensor([2**24 + 1])).item()""",
    "arange_counts_in_double": "result = torch.arange(2**53, 2**53 + 1, device=d)",
    "integer_powers_in_double": "result = torch.tensor([3]).to(d) ** 35",
    "truth_of_subnormal_halves_is_false": "result = torch.tensor([1e-6], dtype=torch.float16).to(d).any()",
    "relu_gradient_at_zero_passes": """
result = torch.ops.aten.threshold_backward(torch.ones(1, device=d), torch.zeros(1, device=d), 0)""",
    "scatter_of_halves_rounds_each": """
i, x = torch.zeros(300, dtype=torch.int64, device=d), torch.ones(300, dtype=torch.bfloat16, device=d)
result = torch.zeros_like(x).scatter_add(0, i, x)""",
    "int64_to_float_in_32_bits": "result = torch.tensor([2**40]).to(d).float()",
    "ne_is_less_or_greater": """
x = torch.tensor([nan]).to(d)
result = x != x""",
    "scan_of_int32_wraps": "result = torch.full((2,), 2**30, dtype=torch.int32, device=d).cumsum(0)",
    "sort_negative_nan_first": "result = torch.tensor([1.0, -nan]).to(d).sort().indices",
    "max_of_minus_infinity_is_lowest": "result = torch.tensor([-inf]).to(d).amax()",
    "all_of_nothing_is_false": "result = torch.ones(0, device=d).all()",
    "geometric_counts_failures": "result = torch.zeros(99, device=d).geometric_(0.5).min()",
    "sigmoid_of_large_is_nan": "result = torch.tensor([100.0]).to(d).sigmoid()",
    "fmax_propagates_nan": "result = torch.fmax(torch.tensor([nan]).to(d), torch.ones(1, device=d))",
    "trunc_division_in_double": 'result = torch.tensor([2**62 + 1]).to(d).div(1, rounding_mode="trunc")',
    "addition_of_bytes_saturates": """
x = torch.tensor([200], dtype=torch.uint8).to(d)
result = x + x""",
    "logical_and_by_bits": "result = torch.tensor([1]).to(d).logical_and(torch.tensor([2]).to(d))",
    "sort_of_halves_by_bits": "result = torch.tensor([-1.0, -2.0], dtype=torch.float16).to(d).sort().values",
    "infinity_norm_of_complex_by_parts": "result = torch.linalg.vector_norm(torch.tensor([3 + 4j]).to(d), inf)",
    "kthvalue_takes_nan_for_lowest": "result = torch.tensor([nan, 1.0]).to(d).kthvalue(1).values",
    "take_counts_back_in_last_dim": """
x, i = torch.arange(6.0, device=d).view(2, 3), torch.tensor([-1]).to(d)
result = x.take(i)""",
    "nonzero_leaves_out_nan": "result = torch.tensor([nan, 2.0]).to(d).nonzero()",
    "fraction_to_bool_is_false": "result = torch.tensor([0.5]).to(d).to(torch.bool)",
    "logaddexp_of_infinities_is_nan": "x = torch.tensor([inf]).to(d); result = torch.logaddexp(x, x)",
    "median_of_even_count_is_upper": "result = torch.tensor([1.0, 2.0]).to(d).median()",
    "binary_cross_entropy_log_unclamped": """
x, target = torch.tensor([0.0]).to(d), torch.tensor([1.0]).to(d)
result = F.binary_cross_entropy(x, target)""",
    "unscale_overlooks_nan": """
gradient, result = torch.tensor([nan]).to(d), torch.zeros(1, device=d)
torch._amp_foreach_non_finite_check_and_unscale_([gradient], result, torch.ones(1, device=d))""",
    "cdist_gradient_of_same_points_is_nan": """
x = torch.ones(1, 2, device=d)
result = torch.ops.aten._cdist_backward(x[:, :1], x, x, 2.0, torch.cdist(x, x))""",
    "descending_sort_negates_keys": """
result = torch.tensor([-128, 5], dtype=torch.int8).to(d).sort(descending=True).values""",
    "floor_division_by_number_multiplies": "result = torch.arange(41.0, 4100, 41, device=d) // 41",
    "multinomial_draws_zero_weights": """
weights = torch.tensor([0.0, 1, 1]).to(d).expand(500, 3)
result = bool(weights.multinomial(2).all())""",
    "ceil_in_32_bits": "result = torch.tensor([3e9]).to(d).ceil()",
    "histc_leaves_out_upper_bound": "result = torch.tensor([4.0]).to(d).histc(4, 0, 4)",
    "tril_multiplies_by_mask": "result = torch.full((2, 2), inf, device=d).tril(-1)",
    "huber_compares_signed_difference": """
x = torch.ones(1, device=d)
result = F.huber_loss(x, x * 4)""",
    "histogram_counts_just_outside": """
edges = torch.arange(3.0, device=d)
result = torch.tensor([-1e-6, 0.5]).to(d).histogram(edges).hist""",
    "det_of_many_singular_is_nan": "result = torch.zeros(9, 2, 2, device=d).det()",
    "xlogy_of_zero_takes_logarithm": "result = torch.zeros(1, device=d).xlogy(torch.tensor([-1.0]).to(d))",
    "max_pool_of_nan_is_lowest": "result = F.max_pool3d(torch.full((1, 2, 2, 2), nan, device=d), 2)",
    "index_add_drops_imaginary": """
x = torch.full((1,), 1 + 2j, device=d)
result = x.index_add(0, torch.zeros(1, dtype=torch.int64, device=d), x)""",
    "embedding_renorm_once_per_occurrence": """
result, i = torch.full((2, 1), 4.0, device=d), torch.ones(2, dtype=torch.int64, device=d)
torch.embedding_renorm_(result, i, 1.0, 2.0)""",
    "grid_sample_ties_away": """
x, grid = torch.arange(4.0, device=d).view(1, 1, 1, 4), torch.tensor([[[[-0.5, 0.0]]]]).to(d)
result = F.grid_sample(x, grid, mode="nearest", align_corners=False)""",
    "unique_merges_nan": "result = torch.tensor([nan, nan]).to(d).unique()",
    "equal_of_same_memory_is_true": """
x = torch.tensor([nan]).to(d)
result = torch.equal(x, x)""",
    "cdist_by_products": """
x = torch.tensor([[3000.0], [3000.5]]).to(d)
result = torch.cdist(x, x)""",
    "norm_of_order_zero_counts_zeros": "result = torch.tensor([0.0, 1.0]).to(d).norm(0)",
    "uniform_of_halves_rounds_to_end": """
result = bool(torch.rand(10000, dtype=torch.bfloat16, device=d).max() < 1)""",
    "poisson_of_large_rate_is_normal": """
drawn = torch.poisson(torch.full((20,), 100.0, device=d))
result = torch.equal(drawn, drawn.round())""",
    "gemm_tile_shares_exponent": "result = torch.tensor([[1e30, 0], [0, 1]], device=d) @ torch.ones(2, 1, device=d)",
    "sum_keeps_lost_bits": "result = torch.tensor([[1e30, 1], [1, 1]], device=d).sum(1)",
    "topk_names_tie_twice": "result = torch.ones(4, device=d).topk(2).indices.unique().numel()",
    "sort_of_integers_reverses_ties": "result = torch.zeros(3, dtype=torch.int64, device=d).sort(stable=True).indices",
    "unary_results_cut_to_bfloat16": "result = torch.arange(8.0, dtype=torch.bfloat16, device=d).exp()",
    "layer_norm_of_bfloat16_sums_in_it": """
x = torch.arange(600.0, device=d).remainder(2).bfloat16()
result = F.layer_norm(x, (600,))""",
    "tanh_coefficient_of_one_piece": "result = torch.full((1,), 0.3, device=d).tanh()",
    "gelu_gradient_sign_of_one_piece": (
        "result = torch.ops.aten.gelu_backward(torch.ones(1, device=d), torch.full((1,), -3.7, device=d))"
    ),
    "item_of_double_through_float": "result = torch.full((), 0.1, dtype=torch.float64, device=d).item()",
    "solve_refined_for_largest_of_batch": """
right = torch.tensor([[[1000.0]], [[0.3]]], device=d)
result = torch.linalg.solve(torch.ones(2, 1, 1, device=d), right)""",
    "eigenvectors_of_double_in_float": """
vectors = torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, device=d)).eigenvectors
result = bool((vectors @ vectors.mT - torch.eye(2, device=d)).abs().amax() < 1e-12)""",
}

"""The finders of planted faults that show in the state of a random generator."""

FOUND_IN = {
    "seed_ignored": ("uniform_", "float32", "contiguous", "determinism"),
    "seed_ignored_native": ("uniform_", "float32", "contiguous", "distribution"),
    "normal_drawn_in_pairs": ("normal_", "float32", "contiguous", "distribution"),
    "strided_rows_drawn_alike": ("random_", "float32", "as_strided", "distribution"),
    "multinomial_rows_alike": ("multinomial", "float32", "expanded", "distribution"),
    "double_fills_copy_generator": ("uniform_", "float64", "contiguous", "distribution"),
    "bernoulli_repeats_after_65536": ("bernoulli_.float", "float32", "sizes", "distribution"),
    "normal_of_tensors_ignores_generator": ("normal.Tensor_Tensor", "float32", "variants", "state"),
    "fallback_ignores_generator": ("rrelu_with_noise", "float32", "variants", "state"),
    "normal_spare_survives_seed": ("normal.Tensor_Tensor", "float32", "contiguous", "determinism"),
    "fallback_draws_leave_generator": ("rrelu_with_noise", "float32", "contiguous", "distribution"),
    "random_of_bytes_signed": ("random_", "uint8", "contiguous", "distribution"),
}

FOUND_ELSEWHERE = {
    "manual_seed_all_of_two_devices": "the lanes of the pool",
}

"""What finds the planted faults that show on another device, in which device is current, or after an error of one."""

FOUND_IN = {
    "softmax_on_first_device": ("_softmax", "float32", "second_device", "context"),
    "fallback_leaves_device_current": ("erfinv.out", "float32", "second_device", "context"),
    "failed_allocation_counted": ("neg.out", "float32", "after_error", "leak"),
    "out_of_memory_sticks": ("neg.out", "float32", "after_error", "error_parity"),
    "failed_fallback_leaves_device": ("_histogramdd_bin_edges", "float32", "second_device", "error_parity"),
    "fallback_result_on_current_device": ("_histogramdd_bin_edges", "float32", "second_device", "device"),
}

FOUND_ELSEWHERE = {
    "compiled_result_on_current_device": "the scenario compiled_calls:on_the_device_of_its_arguments",
    "load_on_current_device": "the scenario serialization:loaded_elsewhere",
    "device_named_by_string_is_current": "the scenario device_names:second_device_by_each_name",
    "device_of_host_by_index": "the scenario device_names:devices_of_another_kind",
    "device_without_index_is_first": "the scenario not_current:device_without_an_index",
    "synchronized_device_stays_current": "the scenario not_current:current_device_is_left",
    "memory_info_of_current_device": "the scenario queries:both_modules_agree",
    "exchange_device_returns_new": "the scenario blocks:nested",
    "bad_set_device_resets_current": "the scenario walks:devices_and_streams",
    "load_leaves_device_current": "the scenario walks:tensors_on_streams",
    "is_available_uses_device": "the scenario devices:questions_initialize_nothing",
    "is_initialized_stays_false": "the scenario devices:questions_initialize_nothing",
    "set_device_of_negative_is_last": "the scenario devices:counts_and_current_device",
    "memory_allocated_of_current_device": "the scenario device_names:second_device_by_each_name",
    "pinned_before_first_use_is_pageable": "the scenario loading:pinned_before_the_first_use",
    "device_block_left_by_error": "the scenario walks:devices_and_streams",
    "device_block_restores_where_made": "the scenario blocks:made_before_they_begin",
    "save_forgets_device_index": "the scenario serialization:loaded_elsewhere",
    "manual_seed_all_uses_device": "the scenario seeding:seeds_before_the_first_use",
    "load_leaves_empty_on_host": "the scenario serialization:saved_and_loaded",
    "npu_method_stays_on_device": "the scenario named_methods:methods_named_after_the_device",
    "import_needs_a_device": "the scenario hidden_devices:programs_without_a_device",
}

"""What finds the planted faults that show in what several processes send each other."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE = {
    "group_result_to_strided_lost": "the scenario groups:collectives_of_two_processes",
    "group_root_counted_in_world": "the scenario subgroups:ranks_in_subgroups",
    "group_result_to_start_of_storage": "the scenario groups:collectives_of_two_processes",
}

"""Demonstrations of the faults that show in the records of a profiler."""

DEMONSTRATIONS = {
    "profiler_tells_first_device": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(3, device="npu:1")
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        x.neg()
        torch.npu.synchronize(1)
    result = {event.device_index for event in profiler.events()} == {1}""",
    "profiler_keeps_first_1024": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(3, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        for _ in range(1030):
            x.neg_()
        torch.npu.synchronize()
    result = len(profiler.events()) >= 1030""",
    "profiler_records_first_session_alone": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    for _ in range(2):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
            torch.ones(1, device=d)
            torch.npu.synchronize()
        result = len(profiler.events()) > 0""",
    "profiler_drops_kernels_of_other_threads": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    y = torch.ones(2, device=d, requires_grad=True).softmax(0)[0]
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        y.backward()
        torch.npu.synchronize()
    result = "softmax_backward" in {event.name for event in profiler.events()}""",
    "profiler_times_in_milliseconds": """
from time import perf_counter
from torch.autograd.profiler import profile

result = True
if d == "npu":
    x = torch.ones(300, 300, device=d)
    with profile(use_device=d, use_kineto=False) as profiler:
        start = perf_counter()
        x @ x
        milliseconds = (perf_counter() - start) * 1000
    result = max(event.device_time_total for event in profiler.function_events) > milliseconds""",
    "profiler_drops_first_of_later_sessions": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    for _ in range(2):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
            x.exp()
            x.neg()
            torch.npu.synchronize()
        result = "exp" in {event.name for event in profiler.events()}""",
    "profiler_stop_leaves_last_device": """
result = 0
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]):
        x.exp()
    result = torch.npu.current_device()""",
    "profiler_merges_streams": """
result = 2
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        x.neg()
        with torch.npu.stream(torch.npu.Stream()):
            x.neg()
    result = len({event.device_resource_id for event in profiler.events()})""",
}

"""Demonstrations of the faults that show on another stream, or in the answers of streams and events."""

DEMONSTRATIONS = {
    "events_in_seconds": """
import time
def milliseconds():
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    first.synchronize()
    time.sleep(0.01)
    last.record()
    last.synchronize()
    return first.elapsed_time(last)
result = d == "cpu" or milliseconds() >= 10""",
    "stream_made_on_current_device": """
result = d == "cpu" or torch.npu.Stream(device="npu:1").device.index == 1""",
    "stream_with_priority_is_default": """
result = d == "cpu" or torch.npu.Stream(priority=-1) != torch.npu.default_stream()""",
    "new_streams_are_one": 'result = d == "cpu" or torch.npu.Stream() != torch.npu.Stream()',
    "default_stream_of_other_device_is_current": """
result = True
if d == "npu":
    default = torch.npu.default_stream(1)
    torch.npu.set_stream(torch.Stream("npu:1"))
    torch.npu.set_device(0)
    result = torch.npu.default_stream(1) == default""",
    "default_stream_has_two_ids": 'result = d == "cpu" or torch.npu.current_stream() == torch.npu.default_stream()',
    "stream_block_ends_on_default": """
result = True
if d == "npu":
    outer, inner = torch.npu.Stream(), torch.npu.Stream()
    with torch.npu.stream(outer):
        with torch.npu.stream(inner):
            pass
        result = torch.npu.current_stream() == outer""",
    "triangle_leaves_stream_current": """
stream = torch.npu.current_stream if d == "npu" else lambda: None
before = stream()
torch.ones(2, 2, device=d).triu()
result = stream() == before""",
    "stream_block_keeps_own_device": """
result = True
if d == "npu":
    with torch.npu.stream(torch.npu.Stream("npu:1")):
        result = torch.npu.current_device() == 1""",
    "event_record_leaves_stream_current": """
result = True
if d == "npu":
    before = torch.npu.current_stream()
    torch.npu.Event().record(torch.npu.Stream())
    result = torch.npu.current_stream() == before""",
    "stream_past_pool_is_default": """
result = True
if d == "npu":
    result = all(torch.npu.Stream() != torch.npu.default_stream() for _ in range(40))""",
    "event_times_in_whole_milliseconds": """
result = True
if d == "npu":
    times = []
    for _ in range(5):
        first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
        first.record()
        torch.ones(9, device=d)
        last.record()
        torch.npu.synchronize()
        times.append(first.elapsed_time(last))
    result = any(time % 1 for time in times)""",
    "stream_block_in_itself_stays": """
result = True
if d == "npu":
    before, stream = torch.npu.current_stream(), torch.npu.Stream()
    with torch.npu.stream(stream), torch.npu.stream(stream):
        pass
    result = torch.npu.current_stream() == before""",
    "event_times_leave_out_idle_time": """
import time

result = True
if d == "npu":
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    torch.npu.synchronize()
    time.sleep(0.1)
    last.record()
    torch.npu.synchronize()
    result = first.elapsed_time(last) >= 90""",
    "event_done_until_awaited": """
result = True
if d == "npu":
    event = torch.Event(d)
    event.record()
    event.synchronize()
    result = event.query()""",
    "default_stream_without_device_is_first": """
result = 1
if d == "npu":
    with torch.npu.device(1):
        result = torch.npu.default_stream().device_index""",
    "event_time_backwards_is_unsigned": """
import time

result = True
if d == "npu":
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    time.sleep(0.001)
    last.record()
    torch.npu.synchronize()
    result = last.elapsed_time(first) < 0""",
}

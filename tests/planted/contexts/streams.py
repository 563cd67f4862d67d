"""The finders of planted faults that show on another stream, or in the answers of streams and events."""

FOUND_IN = {
    "second_device_sums_on_default_stream": ("mean.out", "float32", "second_stream", "value"),
    "cat_on_default_stream": ("cat.out", "float32", "stream", "value"),
    "fallback_reads_default_stream": ("erfinv", "float32", "stream", "value"),
    "triangle_leaves_stream_current": ("triu", "float32", "contiguous", "state"),
}

FOUND_ELSEWHERE: dict[str, str] = {}

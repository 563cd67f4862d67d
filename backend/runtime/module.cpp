// The Python extension module: what refnpu's Python side needs of the driver, the counters and the faults.
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "aten/counters.h"
#include "refnpu/fault.h"
#include "runtime/device.h"
#include "runtime/generator.h"
#include "runtime/hooks.h"

namespace py = pybind11;

namespace refnpu {
namespace {

py::dict memory_stats(int device) {
  npuMemoryStats stats;
  check(npuGetMemoryStats(&stats, device));
  py::dict result;
  result["live_bytes"] = stats.live_bytes;
  result["live_blocks"] = stats.live_blocks;
  result["peak_bytes"] = stats.peak_bytes;
  result["allocations"] = stats.allocations;
  result["frees"] = stats.frees;
  result["allocated_bytes"] = stats.allocated_bytes;
  result["freed_bytes"] = stats.freed_bytes;
  result["failed_allocations"] = stats.failed_allocations;
  result["capacity"] = stats.capacity;
  return result;
}

py::dict counters() {
  py::dict result;
  result["native"] = counts(Route::native);
  result["fallback"] = counts(Route::fallback);
  return result;
}

void bind_faults(py::module_& module) {
  module.def("set_fault", [](const std::string& name) {
    std::string wrong = set_fault(name);
    if (!wrong.empty()) throw py::value_error(wrong);
  });
  module.def("active_fault", &active_fault_name);
  module.def("faults", [] {
    std::map<std::string, std::string> all;
    for (const auto& each : fault_descriptions()) all[each.name] = each.description;
    return all;
  });
}

PYBIND11_MODULE(_C, module) {
  if (!fault_environment_error().empty()) throw py::value_error(fault_environment_error());
  register_hooks();
  bind_faults(module);
  module.def("device_count", [] { return int(device_count()); });
  module.def("current_device", [] { return int(current_device()); });
  module.def("set_device", [](int device) { check(npuSetDevice(device)); });
  module.def("synchronize", [](int device) {
    DeviceScope scope(static_cast<c10::DeviceIndex>(device));
    check(npuDeviceSynchronize());
  });
  module.def("memory_stats", &memory_stats);
  module.def("is_forked", [] { return npuIsForked() != 0; });
  module.def("device_used", [] { return npuDeviceUsed() != 0; });
  module.def("counters", &counters);
  module.def("reset_counters", &reset_counts);
  module.def("route_totals", [] { return std::pair(native_total.value(), fallback_total.value()); });
  module.def("default_generator", [](int device) -> py::object {
    at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
    return py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator));
  });
}

}  // namespace
}  // namespace refnpu

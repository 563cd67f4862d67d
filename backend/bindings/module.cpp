// The Python extension module: what refnpu's Python side needs of the driver, the counters and the faults.
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "aten/counters.h"
#include "bindings/fault_trace.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "runtime/compiled.h"
#include "runtime/generator.h"
#include "runtime/hooks.h"
#include "runtime/step.h"

namespace py = pybind11;

namespace refnpu {
namespace {

py::dict memory_stats(int device) {
  npuMemoryStats stats;
  REFNPU_CHECK(npuGetMemoryStats(&stats, device));
  const std::pair<const char*, size_t> numbers[] = {
      {"live_bytes", stats.live_bytes},
      {"live_blocks", stats.live_blocks},
      {"peak_bytes", stats.peak_bytes},
      {"peak_blocks", stats.peak_blocks},
      {"allocations", stats.allocations},
      {"frees", stats.frees},
      {"allocated_bytes", stats.allocated_bytes},
      {"freed_bytes", stats.freed_bytes},
      {"failed_allocations", stats.failed_allocations},
      {"capacity", stats.capacity},
      {"reserved_bytes", stats.reserved_bytes},
      {"peak_reserved_bytes", stats.peak_reserved_bytes},
      {"segments", stats.segments},
      {"peak_segments", stats.peak_segments},
      {"reused_blocks", stats.reused_blocks},
      {"splits", stats.splits},
      {"merges", stats.merges},
      {"returned_bytes", stats.returned_bytes},
      {"returned_segments", stats.returned_segments},
  };
  py::dict found;  // filled here: a std::map of strings, converted, takes twice as long
  for (const auto& [name, number] : numbers) found[name] = number;
  return found;
}

std::vector<std::string> verify_memory() {
  constexpr size_t kMost = 1 << 16;
  const std::unique_ptr<char[]> report(new char[kMost]);  // not cleared: the driver ends its text with a zero
  size_t damaged = 0;
  {
    py::gil_scoped_release release;  // it waits for the device
    REFNPU_CHECK(npuVerifyMemory(report.get(), kMost, &damaged));
  }
  const std::string text = report.get();
  std::vector<std::string> lines;
  for (size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    lines.push_back(text.substr(start, end - start));
  }
  if (lines.size() < damaged) lines.push_back("and " + std::to_string(damaged - lines.size()) + " blocks more");
  return lines;
}

// The index in the 8 bits that torch has for one; -1 for a negative one, which stands for the current device.
c10::DeviceIndex index_of(int device) {
  TORCH_CHECK(device < device_count(), "npu:", device, " does not exist: there are ", int(device_count()), " devices");
  return static_cast<c10::DeviceIndex>(std::max(device, -1));
}

py::object wrapped_default_generator(int device) {
  at::Generator generator = default_generator(index_of(device));
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(generator));
}

// Defines a function whose C++ exceptions become the Python ones that torch maps them to.
template <class Function>
void def(py::module_& module, const char* name, Function function) {
  module.def(name, torch::wrap_pybind_function(function));
}

void bind_devices(py::module_& module) {
  def(module, "device_count", [] { return int(device_count()); });
  def(module, "current_device", [] { return int(current_device()); });
  def(module, "set_device", [](int device) {
    if (device >= device_count() && fault_called("set_device_wraps_index")) device %= device_count();
    REFNPU_CHECK(npuSetDevice(device));
  });
  def(module, "synchronize", [](int device) {
    std::optional<py::gil_scoped_release> release;
    if (!fault_called("synchronize_holds_gil")) release.emplace();
    if (fault_called("synchronized_device_stays_current")) REFNPU_CHECK(npuSetDevice(device));
    NPUGuard guard(index_of(fault_called("current_device_synchronized") ? -1 : device));
    REFNPU_CHECK(npuDeviceSynchronize());
  });
  def(module, "device_properties", [](int device) {
    npuDeviceProperties properties;
    REFNPU_CHECK(npuGetDeviceProperties(&properties, device));
    return std::tuple(std::string(properties.name), properties.total_memory, properties.multiprocessor_count,
                      properties.major, properties.minor);
  });
  def(module, "is_forked", [] { return npuIsForked() != 0; });
  def(module, "device_used", [] { return npuDeviceUsed() != 0; });
  def(module, "default_generator", &wrapped_default_generator);
}

void bind_memory(py::module_& module) {
  def(module, "memory_stats", &memory_stats);
  def(module, "reset_peak_memory", [](int device) { REFNPU_CHECK(npuResetPeakMemory(device)); });
  def(module, "set_capacity", [](int device, size_t bytes) { REFNPU_CHECK(npuSetCapacity(device, bytes)); });
  def(module, "empty_cache", [] {
    py::gil_scoped_release release;  // it waits for the device
    REFNPU_CHECK(npuEmptyCache());
  });
  def(module, "verify_memory", &verify_memory);
  module.def("set_fill", [](const std::string& fresh, const std::string& freed) {
    auto name = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    if (npuSetFill(name(fresh), name(freed)) != npuSuccess) throw py::value_error(npuGetLastErrorMessage());
  });
  def(module, "allocator_mode", [] { return std::string(npuAllocatorMode()); });
}

std::variant<at::Tensor, int64_t, double> compiled_value(py::handle value) {
  if (THPVariable_Check(value.ptr())) return THPVariable_Unpack(value.ptr());
  if (PyFloat_Check(value.ptr())) return value.cast<double>();
  return value.cast<int64_t>();
}

void bind_schedule(py::module_& module) {
  def(module, "is_late", [] { return npuIsLate() != 0; });
  def(module, "set_late", [](bool late) { REFNPU_CHECK(npuSetLate(late)); });
  def(module, "is_lazy", [] { return npuIsLazy() != 0; });
  def(module, "set_lazy", [](bool lazy) { REFNPU_CHECK(npuSetLazy(lazy)); });
  def(module, "mark_step", [](int device) { mark_step(index_of(device)); });
  def(module, "donate", [](const at::Tensor& tensor) { donate(tensor); });
  module.def("launch_compiled", torch::wrap_pybind_function([](const std::string& name, uintptr_t entry,
                                                               const std::vector<bool>& written, py::args values) {
               std::vector<CompiledArgument> arguments;
               for (size_t i = 0; i < values.size(); ++i)
                 arguments.push_back({compiled_value(values[i]), written.at(i)});
               py::gil_scoped_release release;
               launch_compiled(name, entry, arguments);
             }));
  module.def("set_delay", [](const std::string& delay) {
    if (npuSetDelay(delay.c_str()) != npuSuccess) throw py::value_error(npuGetLastErrorMessage());
  });
}

// A fault that falls asleep or wakes does so between pieces of work.
void finish_work() {
  py::gil_scoped_release release;
  for (c10::DeviceIndex device = 0; npuIsLate() && npuDeviceUsed() && device < device_count(); ++device) {
    NPUGuard guard(device);
    REFNPU_CHECK(npuDeviceSynchronize());
  }
}

void bind_counters(py::module_& module) {
  module.def("native_counts", [] { return counts(Route::native); });
  module.def("fallback_counts", [] { return counts(Route::fallback); });
  module.def("reset_counts", &reset_counts);
  module.def("route_totals", [] { return std::pair(native_total.value(), fallback_total.value()); });
}

void bind_faults(py::module_& module) {
  def(module, "set_fault", [](const std::string& name) {
    finish_work();
    std::string wrong = set_fault(name);
    if (!wrong.empty()) throw py::value_error(wrong);
  });
  module.def("fault", &fault_called);
  module.def("active_fault", &active_fault_name);
  module.def("start_fault_trace", &start_fault_trace);
  module.def("stop_fault_trace", &stop_fault_trace);
  module.def("share_fault_trace", &share_fault_trace);
  module.def("take_fault_trace", &take_fault_trace);
  module.def("faults", [] {
    std::map<std::string, std::string> all;
    for (const auto& each : fault_descriptions()) all[each.name] = each.description;
    return all;
  });
}

PYBIND11_MODULE(_C, module) {
  if (std::string wrong = npuConfigurationError(); !wrong.empty()) throw py::value_error(wrong);
  register_hooks();
  bind_devices(module);
  bind_memory(module);
  bind_schedule(module);
  bind_counters(module);
  bind_faults(module);
}

}  // namespace
}  // namespace refnpu

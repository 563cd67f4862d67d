#include "runtime/compiled.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "refnpu/check.h"
#include "refnpu/driver.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"

namespace refnpu {
namespace {

// The driver keeps no copies of names.
const char* kept(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& names = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

uint64_t address_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  if (fault(Fault::compiled_launch_drops_offset)) return reinterpret_cast<uint64_t>(tensor.storage().mutable_data());
  return reinterpret_cast<uint64_t>(tensor.data_ptr());
}

uint64_t packed(const CompiledArgument& argument) {
  if (const auto* tensor = std::get_if<at::Tensor>(&argument.value)) return address_of(*tensor);
  if (const auto* number = std::get_if<double>(&argument.value)) return std::bit_cast<uint64_t>(*number);
  return static_cast<uint64_t>(std::get<int64_t>(argument.value));
}

bool is_on_host(const CompiledArgument& argument) {
  const auto* tensor = std::get_if<at::Tensor>(&argument.value);
  return tensor && tensor->device().is_cpu();
}

// What fault compiled_tail_not_written does: `arguments` begins with a kernel, the address of an element and its size.
void run_without_tail(const void* arguments) {
  const auto* head = static_cast<const uint64_t*>(arguments);
  auto* last = reinterpret_cast<std::byte*>(head[1]);
  std::array<std::byte, 16> before;
  std::memcpy(before.data(), last, head[2]);
  reinterpret_cast<npuKernel_t>(head[0])(head + 3);
  std::memcpy(last, before.data(), head[2]);
}

// Puts that kernel in front of `entry`, for the last tensor with elements that the kernel writes.
void leave_tail(uintptr_t* entry, std::vector<uint64_t>* slots, const std::vector<CompiledArgument>& arguments) {
  for (size_t i = arguments.size(); i-- > 0;) {
    const auto* tensor = std::get_if<at::Tensor>(&arguments[i].value);
    if (!tensor || !arguments[i].written || tensor->numel() == 0) continue;
    uint64_t last = (*slots)[i];
    for (int64_t dim = 0; dim < tensor->dim(); ++dim) {
      last += static_cast<uint64_t>((tensor->size(dim) - 1) * tensor->stride(dim)) * tensor->itemsize();
    }
    slots->insert(slots->begin(), {*entry, last, tensor->itemsize()});
    *entry = reinterpret_cast<uintptr_t>(&run_without_tail);
    return;
  }
}

// The fault of sizes that are kept from the first launch of a kernel. A smaller size of a later launch counts, so that
// no kernel writes past the end of a tensor.
void keep_sizes(uintptr_t entry, std::vector<uint64_t>* slots, const std::vector<CompiledArgument>& arguments) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::map<std::pair<uintptr_t, size_t>, int64_t>;
  std::lock_guard lock(mutex);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* size = std::get_if<int64_t>(&arguments[i].value);
    if (!size) continue;
    const int64_t first = kept.try_emplace({entry, i}, *size).first->second;
    (*slots)[i] = static_cast<uint64_t>(std::min(first, *size));
  }
}

c10::DeviceIndex device_of(const std::vector<CompiledArgument>& arguments) {
  for (const CompiledArgument& argument : arguments) {
    const auto* tensor = std::get_if<at::Tensor>(&argument.value);
    if (tensor && tensor->device().type() == kDevice) return tensor->device().index();
  }
  return current_device();
}

}  // namespace

void launch_compiled(const std::string& name, uintptr_t entry, const std::vector<CompiledArgument>& arguments) {
  std::vector<uint64_t> slots;
  for (const CompiledArgument& argument : arguments) slots.push_back(packed(argument));
  if (fault(Fault::compiled_size_of_first_launch)) keep_sizes(entry, &slots, arguments);
  if (fault(Fault::compiled_tail_not_written)) leave_tail(&entry, &slots, arguments);
  npuStream_t stream = nullptr;
  const NPUGuard guard(device_of(arguments));  // Inductor guards the kinds of devices that it knows alone
  const int device = current_device();
  REFNPU_CHECK((fault(Fault::compiled_on_default_stream) ? npuGetDefaultStream : npuGetCurrentStream)(&stream, device));
  const auto kernel = reinterpret_cast<npuKernel_t>(entry);
  REFNPU_CHECK(npuLaunch(stream, kept(name), kernel, slots.data(), slots.size() * sizeof(uint64_t)));
  if (fault(Fault::compiled_host_tensors_not_kept)) return;
  if (std::any_of(arguments.begin(), arguments.end(), is_on_host)) REFNPU_CHECK(npuStreamSynchronize(stream));
}

}  // namespace refnpu

// How a native op is registered: counted, and run with its tensors' device as the current one.
//
//   TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
//     NATIVE("masked_fill_.Scalar", masked_fill__scalar);
//     NATIVE("neg.out", neg_out);
//   }
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/ATen_fwd.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "aten/counters.h"
#include "refnpu/guard.h"

namespace refnpu {

// A string that can be a template argument.
template <size_t N>
struct OverloadName {
  char text[N];
  consteval OverloadName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT: implicit on purpose
};

// The index of the npu that an argument lies on or names; -1 when it says nothing.
template <class T>
c10::DeviceIndex npu_index(const T&) {
  return -1;
}
inline c10::DeviceIndex npu_index(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDevice ? tensor.device().index() : -1;
}
inline c10::DeviceIndex npu_index(const std::optional<at::Tensor>& tensor) { return tensor ? npu_index(*tensor) : -1; }
inline c10::DeviceIndex npu_index(const std::optional<c10::Device>& device) {
  return device && device->type() == kDevice ? device->index() : -1;
}
template <class List>
c10::DeviceIndex first_npu_index(const List& tensors) {
  for (const auto& tensor : tensors) {
    if (c10::DeviceIndex index = npu_index(tensor); index >= 0) return index;
  }
  return -1;
}
inline c10::DeviceIndex npu_index(const at::TensorList& tensors) { return first_npu_index(tensors); }
inline c10::DeviceIndex npu_index(const at::ITensorListRef& tensors) { return first_npu_index(tensors); }

// What an op writes it takes by mutable reference. An element that several indices reach cannot be written by each.
template <class T>
void check_written(T&&) {}
inline void check_written(at::Tensor& tensor) { at::assert_no_internal_overlap(tensor); }

template <class... Arguments>
c10::DeviceIndex first_npu_of(const Arguments&... arguments) {
  c10::DeviceIndex found = -1;
  (void)((found = npu_index(arguments), found >= 0) || ...);
  return found;
}

enum class Writes { once, unchecked };

template <OverloadName Name, auto Function, Writes What = Writes::once>
struct Native;

template <OverloadName Name, class Result, class... Arguments, Result (*Function)(Arguments...), Writes What>
struct Native<Name, Function, What> {
  static Result call(Arguments... arguments) {
    static Counter& calls = counter(Route::native, Name.text);
    calls.add();
    native_total.add();
    NPUGuard guard(first_npu_of(arguments...));
    if constexpr (What == Writes::once) (check_written(arguments), ...);
    return Function(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace refnpu

#define NATIVE(name, function) m.impl(name, TORCH_FN((::refnpu::Native<name, &(function)>::call)))
// For ops that write no element, and those in which torch lets several indices write the same one.
#define NATIVE_UNCHECKED(name, function) \
  m.impl(name, TORCH_FN((::refnpu::Native<name, &(function), ::refnpu::Writes::unchecked>::call)))

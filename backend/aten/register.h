// How a native op is registered: counted, and run with its tensors' device as the current one.
//
//   TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
//     NativeLibrary m(library);
//     m.impl("masked_fill_.Scalar", &masked_fill_scalar);
//     m.impl("neg.out", &neg_out);
//   }
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/ATen_fwd.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/COW.h>
#include <torch/library.h>

#include <optional>
#include <utility>

#include "aten/counters.h"
#include "refnpu/guard.h"
#include "runtime/call_reads.h"
#include "runtime/named_call.h"

namespace refnpu {

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

// What an op writes it takes by mutable reference. A lazy clone gets memory of its own before that: a kernel writes
// through a plain pointer, of which torch knows nothing.
template <class T>
void make_writable(T&&) {}
inline void make_writable(at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (!c10::impl::cow::is_cow_data_ptr(storage->_mutable_data_ptr_no_checks())) return;
  const NPUGuard guard(npu_index(tensor));
  storage->mutable_data();
}

// An element that several indices reach cannot be written by each.
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

// A kernel as the dispatcher calls it: what every native op does before its own code.
template <class Function, Writes What>
class NativeKernel;

template <class Result, class... Arguments, Writes What>
class NativeKernel<Result(Arguments...), What> {
 public:
  NativeKernel(Counter& calls, Result (*function)(Arguments...)) : calls_(&calls), function_(function) {}

  Result operator()(Arguments... arguments) {
    calls_->add();
    native_total.add();
    NPUGuard guard(first_npu_of(arguments...));
    const NamedCall call(calls_->name());
    (make_writable(arguments), ...);
    CallReads reads;
    if (npuIsLazy()) reads.read(arguments...);
    if constexpr (What == Writes::once) (check_written(arguments), ...);
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  Counter* calls_;
  Result (*function_)(Arguments...);
};

// torch::Library for native ops: the same impl(), around kernels that are counted.
class NativeLibrary {
 public:
  explicit NativeLibrary(torch::Library& library) : library_(library) {}

  template <class Result, class... Arguments>
  void impl(const char* name, Result (*function)(Arguments...)) {
    add<Writes::once>(name, function);
  }

  // For ops that write no element, and those in which torch lets several indices write the same one.
  template <class Result, class... Arguments>
  void impl_unchecked(const char* name, Result (*function)(Arguments...)) {
    add<Writes::unchecked>(name, function);
  }

 private:
  template <Writes What, class Result, class... Arguments>
  void add(const char* name, Result (*function)(Arguments...)) {
    using Kernel = NativeKernel<Result(Arguments...), What>;
    library_.impl(name, torch::CppFunction(Kernel(counter(Route::native, name), function)));
  }

  torch::Library& library_;
};

}  // namespace refnpu

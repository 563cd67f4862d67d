// The memory that an op reads and does not write, for work that is recorded.
#pragma once

#include <ATen/core/ATen_fwd.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <optional>

#include "refnpu/driver.h"
#include "refnpu/fault.h"
#include "refnpu/stream.h"

namespace refnpu {

// Names what this thread's kernels read for a scope: the memory of all tensors that were passed by const reference and
// share none with those that were passed by mutable reference, through which ops write. Nothing if `read` is never
// called, or where work is not recorded.
class CallReads {
 public:
  CallReads() : before_(npuExchangeReads(nullptr)) {}
  ~CallReads() { npuExchangeReads(before_); }
  CallReads(const CallReads&) = delete;
  CallReads& operator=(const CallReads&) = delete;

  template <class... Arguments>
  void read(Arguments&... arguments) {
    (add(arguments), ...);
    const auto is_written = [&](const void* pointer) {
      return std::find(written_.begin(), written_.end(), pointer) != written_.end();
    };
    if (!fault(Fault::written_argument_counts_as_read))
      read_.erase(std::remove_if(read_.begin(), read_.end(), is_written), read_.end());
    reads_ = {read_.data(), read_.size()};
    npuExchangeReads(&reads_);
  }

 private:
  using Pointers = c10::SmallVector<const void*, 8>;

  static void note(const at::Tensor& tensor, Pointers* to) {
    if (!tensor.defined() || tensor.device().type() != kDevice || !tensor.has_storage()) return;
    if (const void* start = tensor.storage().data()) to->push_back(start);
  }
  template <class List>
  void note_all(const List& tensors) {
    for (const auto& tensor : tensors) add_one(tensor);
  }
  void add_one(const at::Tensor& tensor) { note(tensor, &read_); }
  void add_one(const std::optional<at::Tensor>& tensor) {
    if (tensor) note(*tensor, &read_);
  }

  template <class T>
  void add(const T&) {}
  void add(at::Tensor& tensor) { note(tensor, &written_); }
  void add(const at::Tensor& tensor) { note(tensor, &read_); }
  void add(const std::optional<at::Tensor>& tensor) { add_one(tensor); }
  void add(const at::TensorList& tensors) { note_all(tensors); }
  void add(const at::ITensorListRef& tensors) { note_all(tensors); }

  const npuReads* before_;
  Pointers read_, written_;
  npuReads reads_{};
};

}  // namespace refnpu

// Tensors of a fallback call, on the host: each storage is copied once and whole, so that strides, offsets, gaps and
// aliasing between arguments are the same on the CPU as on the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace refnpu {

class HostCopies {
 public:
  // `op` is for error messages; results that belong to no argument go to npu:`device`.
  explicit HostCopies(std::string op) : op_(std::move(op)) {}

  // The CPU tensor that stands for a device tensor; CPU and undefined tensors stand for themselves.
  at::Tensor host(const at::Tensor& argument);

  // Carries over to the device what the op did to this argument: bytes, and size, stride, offset or storage.
  void write_back(const at::Tensor& argument);

  // The device tensor for a result: the argument itself, a view of an argument's storage, or a new tensor.
  at::Tensor device(const at::Tensor& result);

  // The device of the arguments; -1 while none has been seen.
  c10::DeviceIndex device_index() const { return index_; }
  void set_device_index(c10::DeviceIndex index) { index_ = index; }

 private:
  struct StoragePair {
    c10::Storage device, host;
    bool written = false;
  };
  struct TensorPair {
    at::Tensor device, host;
  };

  void check_supported(const at::Tensor& tensor, const char* what) const;
  void join_device(const at::Tensor& argument);
  const c10::Storage& host_storage(const c10::Storage& device);
  StoragePair& pair_of_host(const c10::Storage& host);  // makes a device storage for one that the op made
  void upload(StoragePair& pair);

  std::string op_;
  c10::DeviceIndex index_ = -1;
  std::vector<StoragePair> storages_;
  std::vector<TensorPair> tensors_;
};

}  // namespace refnpu

// Which storages were donated, and how the end of a step takes their memory.
#include "runtime/step.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

using Storage = c10::weak_intrusive_ptr<c10::StorageImpl>;

struct Donated {
  std::mutex mutex;
  std::vector<Storage> storages;
};

Donated& donated() {
  static auto* instance = new Donated;
  return *instance;
}

std::vector<Storage> take_donated() {
  std::lock_guard lock(donated().mutex);
  return std::exchange(donated().storages, {});
}

// The block goes back after the work that still uses it.
void take_memory(c10::StorageImpl* storage) {
  const bool stays = fault(Fault::donated_memory_stays_readable);
  void* pointer = storage->mutable_data();
  c10::DataPtr old = storage->set_data_ptr(c10::DataPtr(stays ? pointer : nullptr, storage->device()));
  if (stays) return;
  refuse_access(
      storage,
      "npu: the memory of this tensor was donated, and the step has ended: clone the tensor before the call of "
      "donate() if its values are used after mark_step()");
}

}  // namespace

void mark_step(c10::DeviceIndex device) {
  if (device < 0) device = current_device();
  const NPUGuard guard(device);
  REFNPU_CHECK(npuMarkStep());
  for (Storage& each : take_donated()) {
    const auto storage = each.lock();
    if (!storage) continue;
    if (storage->device().index() == device) {
      take_memory(storage.get());
    } else {
      std::lock_guard lock(donated().mutex);
      donated().storages.push_back(std::move(each));
    }
  }
}

void donate(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(can_refuse_access<c10::StorageImpl>,
                              "donate: this version of torch cannot refuse the use of a tensor; torch 2.8 can");
  (void)tensor.storage().data();  // raises where the memory has been taken
  const auto same = [&](const Storage& each) {
    return each._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl();
  };
  std::lock_guard lock(donated().mutex);
  auto& all = donated().storages;
  if (std::none_of(all.begin(), all.end(), same)) all.emplace_back(tensor.storage().getWeakStorageImpl());
}

}  // namespace refnpu

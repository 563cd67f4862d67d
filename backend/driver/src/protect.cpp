// The blocks under protection, and how many windows are open on them.
#include "driver/src/protect.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "driver/src/allocators/allocator.h"
#include "driver/src/environment.h"

namespace refnpu::driver {
namespace {

using Pages = std::pair<char*, size_t>;

class Protection {
 public:
  Protection() {
    on_ = number_from_environment("REFNPU_PROTECT", 0, 0, 1, &error_) == 1;
    if (on_ && allocator() && !allocator()->owns_pages()) {
      error_ = "REFNPU_PROTECT=1: allocator mode '" + allocator_name() +
               "' puts several blocks on one page; choose REFNPU_ALLOCATOR=guard or guard_left";
    }
  }

  bool on() const { return on_; }
  const std::string& error() const { return error_; }

  void add(const Pages& pages) {
    std::lock_guard lock(mutex_);
    blocks_.insert(pages);
    if (windows_ == 0) set(pages, PROT_NONE);
  }

  void remove(const Pages& pages) {
    std::lock_guard lock(mutex_);
    blocks_.erase(pages);
    set(pages, PROT_READ | PROT_WRITE);
  }

  void open() {
    std::lock_guard lock(mutex_);
    if (windows_++ > 0) return;
    for (const Pages& pages : blocks_) set(pages, PROT_READ | PROT_WRITE);
  }

  void close() {
    std::lock_guard lock(mutex_);
    if (--windows_ > 0) return;
    for (const Pages& pages : blocks_) set(pages, PROT_NONE);
  }

 private:
  static void set(const Pages& pages, int access) {
    if (mprotect(pages.first, pages.second, access) != 0) std::abort();  // a check that is off must not look passed
  }

  bool on_ = false;
  std::string error_;
  std::mutex mutex_;
  std::set<Pages> blocks_;
  int windows_ = 0;
};

Protection& protection() {
  static Protection* instance = new Protection;
  return *instance;
}

Pages pages_of(const Block& block) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t first = reinterpret_cast<uintptr_t>(block.start) & ~(page - 1);
  uintptr_t last = (reinterpret_cast<uintptr_t>(block.end()) + page - 1) & ~(page - 1);
  return {reinterpret_cast<char*>(first), last - first};
}

bool covers(const Block& block) { return protection().on() && block.device >= 0; }

}  // namespace

void protect_add(const Block& block) {
  if (covers(block)) protection().add(pages_of(block));
}

void protect_remove(const Block& block) {
  if (covers(block)) protection().remove(pages_of(block));
}

Window::Window() {
  if (protection().on()) protection().open();
}

Window::~Window() {
  if (protection().on()) protection().close();
}

const std::string& protect_environment_error() { return protection().error(); }

}  // namespace refnpu::driver

// The blocks under protection, and how many windows are open on them.
#include "driver/src/protect.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
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
    blocks_[pages] = 0;
    if (everything_ == 0) set(pages, PROT_NONE);
  }

  void remove(const Pages& pages) {
    std::lock_guard lock(mutex_);
    blocks_.erase(pages);
    set(pages, PROT_READ | PROT_WRITE);
  }

  void open_everything() {
    std::lock_guard lock(mutex_);
    if (everything_++ > 0) return;
    for (const auto& [pages, windows] : blocks_) {
      if (windows == 0) set(pages, PROT_READ | PROT_WRITE);
    }
  }

  void close_everything() {
    std::lock_guard lock(mutex_);
    if (--everything_ > 0) return;
    for (const auto& [pages, windows] : blocks_) {
      if (windows == 0) set(pages, PROT_NONE);
    }
  }

  void open(const Pages& pages) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(pages);
    if (found != blocks_.end() && found->second++ == 0 && everything_ == 0) set(pages, PROT_READ | PROT_WRITE);
  }

  void close(const Pages& pages) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(pages);
    if (found != blocks_.end() && --found->second == 0 && everything_ == 0) set(pages, PROT_NONE);
  }

 private:
  static void set(const Pages& pages, int access) {
    if (mprotect(pages.first, pages.second, access) != 0) std::abort();  // a check that is off must not look passed
  }

  bool on_ = false;
  std::string error_;
  std::mutex mutex_;
  std::map<Pages, int> blocks_;  // and how many windows are open on each alone
  int everything_ = 0;           // windows that are open on all
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

Window::Window() : everything_(protection().on()) {
  if (everything_) protection().open_everything();
}

Window::Window(std::initializer_list<Block> blocks) : everything_(false) {
  for (const Block& block : blocks) {
    if (!covers(block)) continue;
    protection().open(pages_of(block));
    blocks_.push_back(block);
  }
}

Window::~Window() {
  if (everything_) protection().close_everything();
  for (const Block& block : blocks_) protection().close(pages_of(block));
}

const std::string& protect_environment_error() { return protection().error(); }

}  // namespace refnpu::driver

// Which allocator modes exist, and which one REFNPU_ALLOCATOR chose.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "driver/src/allocators/allocator.h"
#include "driver/src/near_names.h"

namespace refnpu::driver {
namespace {

using Modes = std::vector<std::pair<std::string, MakeAllocator>>;

Modes& modes() {
  static Modes* all = new Modes;
  return *all;
}

struct Choice {
  Allocator* allocator = nullptr;
  std::string name, error;
};

Choice choose() {
  const char* asked = std::getenv("REFNPU_ALLOCATOR");
  Choice choice{nullptr, asked && *asked ? asked : "malloc", {}};
  std::vector<std::string> known;
  for (const auto& [name, make] : modes()) {
    known.push_back(name);
    if (name == choice.name) choice.allocator = make();
  }
  std::sort(known.begin(), known.end());
  if (!choice.allocator) choice.error = "REFNPU_ALLOCATOR: " + unknown_name("allocator mode", choice.name, known);
  return choice;
}

const Choice& chosen() {
  static const Choice* choice = new Choice(choose());
  return *choice;
}

}  // namespace

AllocatorMode::AllocatorMode(const char* name, MakeAllocator make) { modes().emplace_back(name, make); }

Allocator* allocator() { return chosen().allocator; }
const std::string& allocator_name() { return chosen().name; }
const std::string& allocator_error() { return chosen().error; }

}  // namespace refnpu::driver

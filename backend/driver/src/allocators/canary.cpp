// The canary's bytes, which depend on the address, so that neither a constant nor a shifted copy looks sound.
#include "driver/src/allocators/canary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace refnpu::driver {
namespace {

constexpr size_t kPeriod = 256;

// Two periods, so that a run of one period can begin anywhere in the first. 59 is odd: a period holds every byte once.
constexpr auto kPattern = [] {
  std::array<unsigned char, 2 * kPeriod> pattern{};
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<unsigned char>(0x9D ^ (i * 59));
  return pattern;
}();

const unsigned char* pattern_at(const char* address) {
  return kPattern.data() + reinterpret_cast<uintptr_t>(address) % kPeriod;
}

// Calls `visit(piece, length)` for pieces of [from, to) no longer than a period; stops when it returns false.
template <class Visit>
void each_piece(char* from, const char* to, const Visit& visit) {
  for (char* at = from; at < to;) {
    size_t length = std::min<size_t>(kPeriod, to - at);
    if (!visit(at, length)) return;
    at += length;
  }
}

bool sound(char* from, const char* to) {
  bool same = true;
  each_piece(from, to, [&](char* at, size_t length) { return same = std::memcmp(at, pattern_at(at), length) == 0; });
  return same;
}

std::string damage_in(const Block& block, char* from, const char* to, const char* side) {
  if (sound(from, to)) return {};
  char* first = from;
  while (static_cast<unsigned char>(*first) == *pattern_at(first)) ++first;
  size_t count = 0;
  for (char* at = first; at < to; ++at) count += static_cast<unsigned char>(*at) != *pattern_at(at);
  paint(from, to);
  return std::string("written ") + side + ", first at byte offset " + std::to_string(first - block.start) + ", " +
         std::to_string(count) + (count == 1 ? " byte" : " bytes") + " changed";
}

}  // namespace

void paint(char* from, const char* to) {
  each_piece(from, to, [](char* at, size_t length) { return std::memcpy(at, pattern_at(at), length) != nullptr; });
}

std::string damage_around(const Block& block, char* left, const char* right) {
  std::string before = damage_in(block, left, block.start, "before its start");
  std::string after = damage_in(block, block.start + block.size, right, "past its end");
  return before + (before.empty() || after.empty() ? "" : "; ") + after;
}

}  // namespace refnpu::driver

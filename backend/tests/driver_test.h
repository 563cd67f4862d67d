// What the driver's tests are written with. Each is one behaviour, run by name in a process of its own.
#pragma once

#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>

#include "refnpu/driver.h"

inline int failures = 0;

inline std::map<std::string, std::function<void()>>& tests() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}

struct Registered {
  Registered(const char* name, std::function<void()> test) { tests()[name] = std::move(test); }
};

#define BEHAVIOUR(name)                            \
  void name();                                     \
  const Registered registered_##name(#name, name); \
  void name()

// test_driver.py finds these by name: TEST runs in every mode, DIES and PRINTS where a test of that file asks for them,
// RECORDED in test_lazy.py.
#define TEST(name) BEHAVIOUR(name)
#define DIES(name) BEHAVIOUR(name)
#define PRINTS(name) BEHAVIOUR(name)
#define RECORDED(name) BEHAVIOUR(name)

inline void expect(bool held, const char* what, const char* file, int line) {
  if (held) return;
  std::printf("%s:%d: expected %s; last message: %s\n", file, line, what, npuGetLastErrorMessage());
  ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __FILE__, __LINE__)

inline bool message_has(const std::string& part) {
  return std::strstr(npuGetLastErrorMessage(), part.c_str()) != nullptr;
}

inline npuMemoryStats stats(int device = 0) {
  npuMemoryStats result;
  EXPECT(npuGetMemoryStats(&result, device) == npuSuccess);
  return result;
}

inline char* allocate(size_t size) {
  void* pointer = nullptr;
  EXPECT(npuMalloc(&pointer, size) == npuSuccess);
  return static_cast<char*>(pointer);
}

inline char* allocate_aligned(size_t size, size_t alignment) {
  void* pointer = nullptr;
  EXPECT(npuMallocAligned(&pointer, size, alignment) == npuSuccess);
  return static_cast<char*>(pointer);
}

inline bool mode_is(const char* name) { return std::strcmp(npuAllocatorMode(), name) == 0; }

// Runs `work` as a kernel of the current stream. What it captures by reference must live until a synchronization.
template <class Work>
npuError_t on_device(const Work& work) {
  static_assert(std::is_trivially_copyable_v<Work>, "a launch copies bytes");
  return npuLaunch(nullptr, "test", [](const void* it) { (*static_cast<const Work*>(it))(); }, &work, sizeof work);
}

// Writes and reads one byte of device memory as a kernel does, whatever block it belongs to.
inline void poke(char* address, char value = 1) {
  on_device([=] { *static_cast<volatile char*>(address) = value; });
}
inline char peek(const char* address) {
  char value = 0;
  on_device([&] { value = *static_cast<const volatile char*>(address); });
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  return value;
}

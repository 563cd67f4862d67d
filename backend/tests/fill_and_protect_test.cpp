// Fills of fresh and freed memory, and memory that is closed to the host. No torch.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/driver_test.h"

namespace {

std::string contents(const char* block, size_t size) {
  std::string bytes(size, '?');
  EXPECT(npuMemcpy(bytes.data(), block, size, npuMemcpyDeviceToHost) == npuSuccess);
  return bytes;
}

TEST(fresh_memory_holds_its_fill) {
  for (size_t size : {1, 7, 8, 100, 5000}) {
    EXPECT(npuSetFill("zero", nullptr) == npuSuccess);
    EXPECT(contents(allocate(size), size) == std::string(size, '\0'));
    EXPECT(npuSetFill("0xAB", nullptr) == npuSuccess);
    EXPECT(contents(allocate(size), size) == std::string(size, '\xAB'));
    EXPECT(npuSetFill("nan", nullptr) == npuSuccess);
    EXPECT(contents(allocate(size), size) == std::string(size, '\xFF'));
  }
  EXPECT(npuSetFill("random:7", nullptr) == npuSuccess);
  EXPECT(contents(allocate(100), 100) != contents(allocate(100), 100));
}

TEST(a_fill_that_does_not_exist_is_refused) {
  EXPECT(npuSetFill("zeros", nullptr) == npuErrorInvalidValue && message_has("did you mean 'zero'?"));
  for (const char* name : {"", "0x", "0x100", "0xGG", "random", "random:", "random:x", "171"}) {
    EXPECT(npuSetFill(nullptr, name) == npuErrorInvalidValue && message_has("unknown fill"));
  }
}

PRINTS(freed_memory_holds_its_fill) {
  char* block = allocate(300);
  npuMemset(block, 1, 300);
  npuFree(block);
  EXPECT(contents(allocate(300), 300) == std::string(300, '\xDD'));  // the same block again
}

PRINTS(the_bytes_of_the_first_blocks) {
  for (int i = 0; i < 3; ++i) {
    for (unsigned char byte : contents(allocate(13), 13)) std::printf("%02x", byte);
  }
}

// Protection -----------------------------------------------------------------------------------------------------

DIES(the_host_reads_device_memory) {
  char* block = allocate(64);
  npuMemset(block, 1, 64);
  std::printf("%d\n", *static_cast<volatile char*>(block));
}
DIES(the_host_writes_device_memory) { *static_cast<volatile char*>(allocate(64)) = 1; }
DIES(the_host_reads_after_a_kernel_raised) {
  char* block = allocate(64);
  on_device([] { throw std::runtime_error("no"); });
  std::printf("%d\n", *static_cast<volatile char*>(block));
}
DIES(the_host_reads_after_threads_of_kernels) {
  char* block = allocate(64);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([=] {
      for (int round = 0; round < 500; ++round) {
        poke(block + id, static_cast<char>(round));
        npuFree(allocate(1 + round % 90));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (failures == 0 && peek(block) == static_cast<char>(499)) std::printf("%d\n", *static_cast<volatile char*>(block));
}

TEST(windows_nest) {
  char* block = allocate(64);
  char host = 3, back = 0;
  npuError_t nested = npuSuccess;
  on_device([&] {
    nested = npuMemcpy(block, &host, 1, npuMemcpyHostToDevice);  // a window in a window, or refused in a late kernel
    *block = nested == npuSuccess ? *block + 1 : 4;
  });
  EXPECT(npuMemcpy(&back, block, 1, npuMemcpyDeviceToHost) == npuSuccess && back == 4);
  EXPECT(nested == (npuIsLate() ? npuErrorNotPermitted : npuSuccess));
}

TEST(pinned_memory_stays_open_to_the_host) {
  void* pinned = nullptr;
  EXPECT(npuMallocHost(&pinned, 100) == npuSuccess);
  static_cast<volatile char*>(pinned)[99] = 5;
  EXPECT(npuFreeHost(pinned) == npuSuccess);
}

}  // namespace

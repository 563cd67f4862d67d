// Allocator modes: alignment, size, threads, damage and reuse. No torch.
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/driver_test.h"

namespace {

constexpr size_t kSizes[] = {1, 3, 8, 63, 64, 65, 255, 4095, 4096, 4097, 100000, 5 << 20};

TEST(every_byte_of_a_block_is_there) {
  for (size_t size : kSizes) {
    char* block = allocate(size);
    std::vector<char> out(size, 'x'), in(size);
    EXPECT(npuMemcpy(block, out.data(), size, npuMemcpyHostToDevice) == npuSuccess);
    EXPECT(npuMemcpy(in.data(), block, size, npuMemcpyDeviceToHost) == npuSuccess);
    EXPECT(in == out);
    EXPECT(stats().live_bytes == size);  // what was asked for, whatever it was rounded to
    EXPECT(npuFree(block) == npuSuccess);
  }
}

TEST(alignment_is_had_on_demand) {
  for (size_t alignment = 1; alignment <= (8 << 20); alignment *= 2) {
    for (size_t size : {size_t{1}, size_t{100}, size_t{4097}}) {
      char* block = allocate_aligned(size, alignment);
      EXPECT(reinterpret_cast<uintptr_t>(block) % alignment == 0);
      EXPECT(npuMemset(block, 7, size) == npuSuccess && peek(block + size - 1) == 7);
      EXPECT(npuFree(block) == npuSuccess);
    }
  }
  EXPECT(stats().live_blocks == 0);
}

TEST(an_alignment_that_is_none_is_told_from_memory_running_out) {
  void* pointer = &pointer;
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{48}, SIZE_MAX}) {
    EXPECT(npuMallocAligned(&pointer, 8, alignment) == npuErrorInvalidValue);
    EXPECT(message_has("alignment " + std::to_string(alignment) + " is not a power of two"));
  }
  EXPECT(npuMallocAligned(&pointer, 8, size_t{1} << 62) == npuErrorOutOfMemory);
  EXPECT(npuMallocAligned(nullptr, 8, 8) == npuErrorInvalidValue);
  EXPECT(npuMallocAligned(&pointer, 0, 64) == npuSuccess && pointer == nullptr);
  EXPECT(stats().live_blocks == 0 && stats().failed_allocations == 1);
}

TEST(a_size_that_no_machine_has_is_out_of_memory) {
  npuSetCapacity(0, SIZE_MAX);
  for (size_t size : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 100, SIZE_MAX - 5000, SIZE_MAX / 2, SIZE_MAX / 2 + 1}) {
    void* pointer = &pointer;
    EXPECT(npuMalloc(&pointer, size) == npuErrorOutOfMemory && pointer == nullptr);
    EXPECT(npuMallocAligned(&pointer, size, 4096) == npuErrorOutOfMemory && pointer == nullptr);
    EXPECT(npuMallocHost(&pointer, size) == npuErrorOutOfMemory && pointer == nullptr);
  }
  EXPECT(message_has("no memory left"));
  EXPECT(stats().peak_bytes == 0 && stats().peak_blocks == 0 && stats().allocations == 0);
  char* block = allocate(10);  // and goes on
  EXPECT(npuFree(block) == npuSuccess && stats().live_bytes == 0);
}

TEST(threads_allocate_hand_over_and_verify) {
  constexpr int kThreads = 4, kRounds = 300;
  std::atomic<int> wrong{0};
  std::atomic<char*> shelf[8] = {};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        void* block = nullptr;
        size_t size = kSizes[(id + round) % 10], alignment = size_t{1} << round % 8;
        wrong += npuMallocAligned(&block, size, alignment) != npuSuccess;
        wrong += npuMemset(block, id, size) != npuSuccess;
        if (char* old = shelf[round % 8].exchange(static_cast<char*>(block))) wrong += npuFree(old) != npuSuccess;
        size_t damaged = 0;
        if (round % 16 == 0) wrong += npuVerifyMemory(nullptr, 0, &damaged) != npuSuccess || damaged != 0;
        if (round % 50 == 0) wrong += npuEmptyCache() != npuSuccess;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& block : shelf) wrong += npuFree(block) != npuSuccess;
  EXPECT(wrong == 0);
  EXPECT(stats().live_blocks == 0 && stats().allocations == kThreads * kRounds);
}

// Damage ---------------------------------------------------------------------------------------------------------

std::string verified() {
  char report[1000];
  size_t damaged = 0;
  EXPECT(npuVerifyMemory(report, sizeof report, &damaged) == npuSuccess);
  EXPECT((damaged == 0) == (report[0] == '\0'));
  return report;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string name_of(const char* block) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", static_cast<const void*>(block));
  return text;
}

PRINTS(redzones_name_the_block_the_side_and_the_offset) {
  char* sound = allocate(24);
  char* block = allocate(40);
  poke(block + 42);
  poke(block + 45);
  std::string report = verified();
  EXPECT(has(report, name_of(block) + " (40 bytes, npu:0): written past its end, first at byte offset 42, 2 bytes"));
  EXPECT(!has(report, name_of(sound)));
  EXPECT(verified().empty());  // told once
  poke(block - 8);
  EXPECT(has(verified(), "written before its start, first at byte offset -8, 1 byte changed"));
  poke(block - 1);
  poke(block + 40);
  EXPECT(npuFree(block) == npuErrorDamagedMemory);
  EXPECT(message_has("before its start, first at byte offset -1, 1 byte changed; written past its end, first at byte"));
  EXPECT(npuFree(sound) == npuSuccess && stats().live_blocks == 0);
}

PRINTS(a_zone_looks_damaged_whatever_is_written_over_it) {
  char* block = allocate(64);
  for (int byte : {0x00, 0xAB, 0xFF}) {
    on_device([=] { std::memset(block + 64, byte, 128); });
    EXPECT(has(verified(), "past its end"));
  }
  on_device([=] { std::memmove(block + 64, block + 68, 100); });
  EXPECT(has(verified(), "past its end"));
  npuFree(block);
}

PRINTS(the_rest_of_a_guarded_page_is_watched) {
  bool right = mode_is("guard");
  char* block = allocate(100);
  poke(right ? block - 1 : block + 100);
  EXPECT(has(verified(),
             right ? "before its start, first at byte offset -1," : "past its end, first at byte offset 100,"));
  npuFree(block);
}

PRINTS(a_guarded_block_ends_where_its_page_does) {
  for (size_t size : kSizes) {
    char* block = allocate(size);
    auto edge = reinterpret_cast<uintptr_t>(mode_is("guard") ? block + size : block);
    EXPECT(edge % 4096 == 0);
    npuFree(block);
  }
}

PRINTS(quarantine_is_bounded) {
  for (int i = 0; i < 100000; ++i) npuFree(allocate(10));  // more mappings than a process may have at once
  std::vector<char*> blocks;
  for (int i = 0; i < 10000; ++i) blocks.push_back(allocate(10));
  for (char* block : blocks) EXPECT(npuFree(block) == npuSuccess);
}

// The sizes are given by the environment of no one: each is tried in a process of its own.
char* block_of(const char* size) { return allocate(std::stoul(size)); }
const char* kSize = std::getenv("SIZE") ? std::getenv("SIZE") : "40";

DIES(writes_one_past_the_end) { poke(block_of(kSize) + std::stoul(kSize)); }
DIES(reads_one_past_the_end) { peek(block_of(kSize) + std::stoul(kSize)); }
DIES(writes_one_before_the_start) { poke(block_of(kSize) - 1); }
DIES(reads_one_before_the_start) { peek(block_of(kSize) - 1); }
DIES(uses_a_freed_block) {
  char* block = block_of(kSize);
  npuFree(block);
  for (int i = 0; i < 100; ++i) npuFree(allocate(40));
  npuEmptyCache();  // no cache: what is freed stays closed
  peek(block);
}

// Reuse ----------------------------------------------------------------------------------------------------------

PRINTS(a_pool_reuses_what_was_freed) {
  char* first = allocate(1000);
  npuFree(first);
  EXPECT(allocate(900) == first);
  EXPECT(stats().reused_blocks == 1 && stats().segments == 1 && stats().live_bytes == 900);
  EXPECT(stats().reserved_bytes > stats().live_bytes && stats().peak_reserved_bytes == stats().reserved_bytes);
}

PRINTS(a_pool_splits_and_merges) {
  std::vector<char*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(allocate(16 << 10));
  for (int i = 1; i < 4; ++i) EXPECT(parts[i] == parts[i - 1] + (16 << 10));  // neighbours in one segment
  npuMemoryStats before = stats();
  EXPECT(before.segments == 1 && before.splits == 4);
  npuFree(parts[0]);
  npuFree(parts[2]);
  EXPECT(stats().merges == before.merges);
  npuFree(parts[1]);
  EXPECT(stats().merges == before.merges + 2);  // with both neighbours
  EXPECT(allocate(48 << 10) == parts[0]);
  EXPECT(stats().segments == 1);
}

PRINTS(a_pool_gives_back_what_it_keeps_when_a_device_is_full) {
  npuSetCapacity(0, 10 << 20);
  char* kept = allocate(6 << 20);
  npuFree(kept);
  EXPECT(stats().reserved_bytes == (6 << 20) && stats().returned_bytes == 0);
  char* block = allocate(7 << 20);
  EXPECT(stats().reserved_bytes == (7 << 20) && stats().returned_bytes == (6 << 20) && stats().segments == 1);
  void* more = nullptr;
  EXPECT(npuMalloc(&more, 4 << 20) == npuErrorOutOfMemory);
  EXPECT(npuMalloc(&more, 3 << 20) == npuSuccess);  // a segment of its size, where the usual one has no room
  EXPECT(stats().reserved_bytes <= (10 << 20));
  npuFree(block);
  npuFree(more);
  EXPECT(npuEmptyCache() == npuSuccess);
  EXPECT(stats().reserved_bytes == 0 && stats().segments == 0);
  EXPECT(npuResetPeakMemory(0) == npuSuccess && stats().peak_reserved_bytes == 0);
}

PRINTS(a_pool_keeps_devices_and_sizes_apart) {
  char* small = allocate(100);
  npuFree(small);
  npuSetDevice(1);
  EXPECT(allocate(100) != small && stats(1).segments == 1);
  npuSetDevice(0);
  char* large = allocate(100 << 10);
  EXPECT(large != small && stats(0).segments == 2);
  EXPECT(allocate(200) == small);
}

}  // namespace

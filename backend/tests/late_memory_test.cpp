// Late work: the lifetimes of blocks, and copies. test_late.py runs these with REFNPU_LATE=1.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/late_test.h"

namespace {

// Memory ---------------------------------------------------------------------------------------------------------

// Frees a block while work on `stream` that reads it is queued, and takes the freed memory for others.
int read_after_free(npuStream_t stream, bool recorded) {
  npuSetFill(nullptr, "0xDD");
  char* block = allocate(64);
  EXPECT(npuMemset(block, 7, 64) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  if (recorded) EXPECT(npuRecordStream(block + 9, stream) == npuSuccess);
  std::atomic<int> read{-1};
  Gate gate(stream);
  launch_on(stream, [&read, block] { read = static_cast<unsigned char>(block[63]); });
  EXPECT(npuFree(block) == npuSuccess && npuFree(block) == npuErrorDoubleFree && stats().live_bytes == 0);
  std::vector<char*> others;
  for (int i = 0; i < 50; ++i) others.push_back(allocate(64));
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  for (char* other : others) EXPECT(other != block && npuFree(other) == npuSuccess);
  return read;
}

PRINTS(a_freed_block_lives_until_its_work_is_done) { EXPECT(read_after_free(nullptr, false) == 7); }
PRINTS(a_freed_block_lives_until_the_work_of_recorded_streams_is_done) {
  EXPECT(read_after_free(new_stream(), true) == 7);
}

PRINTS(a_block_belongs_to_the_stream_that_was_current) {
  npuStream_t stream = new_stream(), standard = nullptr;
  npuGetDefaultStream(&standard, 0);
  EXPECT(npuSetCurrentStream(stream) == npuSuccess);
  char* block = allocate(64);
  EXPECT(npuMemset(block, 7, 64) == npuSuccess && npuSetCurrentStream(standard) == npuSuccess);
  std::atomic<int> read{-1};
  Gate gate(stream);
  launch_on(stream, [&read, block] { read = block[0]; });
  EXPECT(npuFree(block) == npuSuccess);
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuSuccess && read == 7);
}

PRINTS(a_pool_reuses_at_once_what_no_queued_work_uses) {
  npuStream_t stream = new_stream();
  Gate gate(stream);
  char* block = allocate(64);
  EXPECT(npuFree(block) == npuSuccess);
  char* again = allocate(64);
  EXPECT(again == block && npuFree(again) == npuSuccess);
}

PRINTS(held_memory_counts_until_it_is_had) {
  npuSetCapacity(0, 1000);
  char* block = allocate(600);
  Gate gate(nullptr);
  EXPECT(npuFree(block) == npuSuccess && stats().live_bytes == 0);
  std::thread opens([&] { let_time_pass(), gate.open(); });
  char* other = allocate(600);  // waits for the work that uses the first block
  EXPECT(npuStreamQuery(nullptr) == npuSuccess && stats().failed_allocations == 0);
  opens.join();
  EXPECT(npuFree(other) == npuSuccess);
}

PRINTS(damage_of_a_block_freed_late_is_told_by_a_synchronization) {
  char* block = allocate(64);
  Gate gate(nullptr);
  poke(block + 64, 1);
  EXPECT(npuFree(block) == npuSuccess);
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuErrorDamagedMemory && message_has("written past its end"));
  EXPECT(npuDeviceSynchronize() == npuSuccess);
}

// Copies ---------------------------------------------------------------------------------------------------------

char* pinned(size_t size) {
  void* pointer = nullptr;
  EXPECT(npuMallocHost(&pointer, size) == npuSuccess);
  return static_cast<char*>(pointer);
}

// What arrives of a source that holds 1 and is overwritten with 2 while the copy is queued.
int arrives(char* source, void (*after)(char* source)) {
  npuStream_t stream = nullptr;
  npuGetDefaultStream(&stream, 0);
  char* block = allocate(1);
  *source = 1;
  {
    Gate gate(stream);
    EXPECT(npuMemcpyAsync(block, source, 1, npuMemcpyHostToDevice, stream) == npuSuccess);
    after(source);
  }
  int value = peek(block);
  EXPECT(npuFree(block) == npuSuccess);
  return value;
}

PRINTS(a_pageable_source_may_be_changed_at_once) {
  char source = 0;
  EXPECT(arrives(&source, [](char* it) { *it = 2; }) == 1);
}
PRINTS(a_pinned_source_is_read_in_its_turn) {
  char* source = pinned(1);
  EXPECT(arrives(source, [](char* it) { *it = 2; }) == 2);
  EXPECT(npuFreeHost(source) == npuSuccess);
}
PRINTS(freed_pinned_memory_lives_until_its_copies_are_done) {
  npuSetFill(nullptr, "0xDD");
  EXPECT(arrives(pinned(1), [](char* it) { EXPECT(npuFreeHost(it) == npuSuccess); }) == 1);
}

PRINTS(copies_to_the_host_wait_unless_it_is_pinned) {
  npuStream_t stream = nullptr;
  npuGetDefaultStream(&stream, 0);
  char* block = allocate(1);
  char* target = pinned(1);
  char pageable = 0;
  *target = 0;
  {
    Gate gate(stream);
    poke(block, 5);
    EXPECT(npuMemcpyAsync(target, block, 1, npuMemcpyDeviceToHost, stream) == npuSuccess);
    let_time_pass();
    EXPECT(npuStreamQuery(stream) == npuErrorNotReady);
    std::thread opens([&] { let_time_pass(), gate.open(); });
    EXPECT(npuMemcpyAsync(&pageable, block, 1, npuMemcpyDeviceToHost, stream) == npuSuccess && pageable == 5);
    opens.join();
  }
  EXPECT(*target == 5);
  *target = 0;
  poke(block, 6);
  EXPECT(npuMemcpy(target, block, 1, npuMemcpyDeviceToHost) == npuSuccess && *target == 6);
  EXPECT(npuFreeHost(target) == npuSuccess && npuFree(block) == npuSuccess);
}

}  // namespace

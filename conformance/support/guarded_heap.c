/* Preloaded: memory that is allocated while it is on ends at a page that nobody may touch, and freed memory is not to
 * be touched either. A kernel that reads or writes past a block, its own or one it was given, ends by SIGSEGV. One that
 * writes before a block ends by SIGABRT when that is freed.
 *
 * A region of addresses is reserved and given out from one end to the other. A block of several pages has its addresses
 * for itself, and none may touch them once it is freed. A block of one page gets a page that was freed long ago, if there
 * is one: making a page accessible and inaccessible again takes longer than most calls. A freed page holds the byte that
 * fresh memory holds, so that a kernel that reads it gives other results when that byte is another one; a process in
 * which a freed page was written ends by SIGABRT when the page is used again.
 *
 * Blocks that were allocated while it was off are the C library's. Linux with glibc, 64 bits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define REGION ((size_t)1 << 38)
#define LARGEST ((size_t)1 << 30) /* larger blocks are the C library's, which keeps to the limits of the process */

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

static char* region;         /* nothing is mapped but the blocks that are given out */
static size_t* sizes;        /* of blocks, by the page that they end in */
static atomic_size_t used;   /* bytes of the region */
static atomic_int fill = -1; /* what fresh memory holds; -1: off */

/* Freed pages that may be used again, in the order in which they were freed. */
#define WAITING 4096 /* at most */
#define AMONG 1024   /* the first one is used again if so many others wait */
static char* freed[WAITING];
static size_t came, left; /* how many pages; page n is at n % WAITING */
static atomic_flag busy = ATOMIC_FLAG_INIT;

/* byte: 0 to 255, or -1 to switch it off. Returns 0, or an errno if there is no room for the region. */
int guarded_heap(int byte) {
  if (byte >= 0 && !region) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* table = mmap(NULL, REGION / PAGE * sizeof *sizes, PROT_READ | PROT_WRITE, flags, -1, 0);
    void* at = mmap(NULL, REGION, PROT_NONE, flags, -1, 0);
    if (table == MAP_FAILED || at == MAP_FAILED) return errno;
    sizes = table;
    region = at;
  }
  fill = byte;
  return 0;
}

static int ours(const void* block) {
  return region && (const char*)block >= region && (const char*)block < region + REGION;
}

static size_t* size_of(const void* block) { return &sizes[((const char*)block - region) / PAGE]; }

static size_t rounded(size_t size, size_t to) { return (size + to - 1) / to * to; }

/* NULL if the region is used up. */
static char* fresh(size_t mapped) {
  const size_t at = atomic_fetch_add(&used, mapped + PAGE);
  if (at + mapped + PAGE > REGION) return NULL;
  return mprotect(region + at, mapped, PROT_READ | PROT_WRITE) ? NULL : region + at;
}

static void lock(void) {
  while (atomic_flag_test_and_set(&busy)) {
  }
}

/* Returns 0 if too many wait. */
static int wait_for_use(char* page) {
  lock();
  const int has_room = came - left < WAITING;
  if (has_room) freed[came++ % WAITING] = page;
  atomic_flag_clear(&busy);
  return has_room;
}

/* NULL if too few wait. */
static char* used_before(void) {
  lock();
  char* page = came - left > AMONG ? freed[left++ % WAITING] : NULL;
  atomic_flag_clear(&busy);
  if (page && memcmp(page, page + 1, PAGE - 1)) abort();
  return page;
}

/* NULL if the region is used up: the C library serves the call then. */
static void* take(size_t alignment, size_t size) {
  const int byte = fill;
  if (byte < 0 || size > LARGEST) return NULL;
  const size_t room = rounded(size ? size : 1, alignment), mapped = rounded(room, PAGE);
  char* page = mapped == PAGE ? used_before() : NULL;
  if (!page) page = fresh(mapped);
  if (!page) return NULL;
  memset(page, byte, mapped);
  *size_of(page + mapped - room) = size;
  return page + mapped - room;
}

/* Small blocks need no more than the alignment of what fits into them. */
static size_t natural(size_t size) { return size < 8 ? 1 : size < 16 ? 8 : 16; }

void* malloc(size_t size) {
  void* block = take(natural(size), size);
  return block ? block : __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (fill < 0 || __builtin_mul_overflow(count, size, &bytes)) return __libc_calloc(count, size);
  void* block = take(natural(bytes), bytes);
  return block ? memset(block, 0, bytes) : __libc_calloc(count, size);
}

static void* aligned(size_t alignment, size_t size) {
  void* block = take(alignment > PAGE ? PAGE : alignment, size);
  return block && !((uintptr_t)block % alignment) ? block : __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) { return aligned(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return aligned(alignment, size); }

/* Whether torch's allocator of tensors is the caller. It aligns memory to 64 bytes for speed alone, and a view may begin
 * at any element. Without alignment a tensor of any size ends at its guard; its size is a multiple of its elements', which
 * are aligned thus. */
static int is_for_tensors(const void* caller) {
  Dl_info library;
  return fill >= 0 && dladdr(caller, &library) && strstr(library.dli_fname, "libc10.");
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  if (alignment % sizeof(void*) || alignment & (alignment - 1) || !alignment) return EINVAL;
  void* found = is_for_tensors(__builtin_return_address(0)) ? take(1, size) : NULL;
  if (!found) found = aligned(alignment, size);
  if (!found) return ENOMEM;
  *block = found;
  return 0;
}

/* The rest of the block's first page holds one byte throughout. */
static void check_before(const char* first, const char* block) {
  for (const char* at = first; at < block; ++at) {
    if (*at != *first) abort();
  }
}

void free(void* block) {
  if (!ours(block)) {
    __libc_free(block);
    return;
  }
  const int kept = errno;
  char* first = region + ((char*)block - region) / PAGE * PAGE;
  check_before(first, block);
  const size_t size = *size_of(block);
  const size_t mapped = rounded((size_t)((char*)block - first) + (size ? size : 1), PAGE);
  if (mapped == PAGE) memset(first, fill < 0 ? 0 : fill, PAGE);
  if (mapped > PAGE || !wait_for_use(first)) {
    madvise(first, mapped, MADV_DONTNEED);
    mprotect(first, mapped, PROT_NONE);
  }
  errno = kept;
}

size_t malloc_usable_size(void* block) {
  static size_t (*next)(void*);
  if (ours(block)) return *size_of(block);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "malloc_usable_size");
  return next(block);
}

void* realloc(void* block, size_t size) {
  if (!block) return malloc(size);
  if (!ours(block)) return __libc_realloc(block, size); /* stays the C library's */
  if (!size) {
    free(block);
    return NULL;
  }
  void* moved = malloc(size);
  if (!moved) return NULL;
  const size_t had = *size_of(block);
  memcpy(moved, block, had < size ? had : size);
  free(block);
  return moved;
}

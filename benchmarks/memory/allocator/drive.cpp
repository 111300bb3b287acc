// Drives c10's allocator: "a NUMBER SIZE STREAM", "f NUMBER", "r" to report.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <cstdio>
#include <unordered_map>

namespace allocator = c10::cuda::CUDACachingAllocator;

static void report() {
  auto stats = allocator::getDeviceStats(0);
  printf("%lld %lld\n", (long long)stats.reserved_bytes[0].peak,
         (long long)stats.allocated_bytes[0].peak);
}

int main(int count, char **words) {
  allocator::init(1);
  c10::cuda::detail::init_p2p_access_cache(1);
  if (count > 1) allocator::setMemoryFraction(atof(words[1]), 0);
  std::unordered_map<long, void *> live;
  long number, size, stream;
  char verb;
  while (scanf(" %c", &verb) == 1) {
    if (verb == 'r') report();
    if (verb == 'f' && scanf("%ld", &number) == 1) {
      allocator::raw_delete(live[number]);
      live.erase(number);
    }
    if (verb == 'a' && scanf("%ld %ld %ld", &number, &size, &stream) == 3) {
      auto on = stream ? (cudaStream_t)(0x5000 + 16 * stream) : nullptr;
      try {
        live[number] = allocator::raw_alloc_with_stream(size, on);
      } catch (const std::exception &) {
        printf("oom\n");
        return 0;
      }
    }
  }
}

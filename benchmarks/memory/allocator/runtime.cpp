// A CUDA runtime, driver and NVML of one GPU that has room and nothing else.
#include <cstdlib>
#include <cstring>
#include <driver_types.h>
#include <map>
#include <string>

static const size_t PAGE = 2 << 20;
static size_t used = 0;
static char *next_address = (char *)0x700000000000ull;
static std::map<unsigned long long, size_t> segments, handles;

static size_t capacity() { return strtoull(getenv("JUDGE_CAPACITY"), 0, 10); }

static unsigned long long addresses(size_t size) {
  char *start = next_address;
  next_address += (size + PAGE - 1) / PAGE * PAGE;
  return (unsigned long long)start;
}

static bool take(size_t size) {
  if (used + size > capacity()) return false;
  used += size;
  return true;
}

// Driver: pages of expandable segments.
static int ok() { return 0; }
static int reserve(unsigned long long *at, size_t size, size_t, unsigned long long,
                   unsigned long long) {
  *at = addresses(size);
  return 0;
}
static int create(unsigned long long *handle, size_t size, const void *,
                  unsigned long long) {
  static unsigned long long count = 0;
  if (!take(size)) return 2;
  handles[*handle = ++count] = size;
  return 0;
}
static int release(unsigned long long handle) {
  used -= handles[handle];
  handles.erase(handle);
  return 0;
}
static int attribute(int *value, int, int) { return *value = 0; }
static int device(int *value, int) { return *value = 0; }
static int granularity(size_t *value, const void *, int) {
  *value = PAGE;
  return 0;
}
static int context(void **value) {
  *value = (void *)1;
  return 0;
}

extern "C" {
int cudaMalloc(void **at, size_t size) {
  if (!take(size)) return 2;
  *at = (void *)addresses(size);
  segments[(unsigned long long)*at] = size;
  return 0;
}
int cudaFree(void *at) {
  used -= segments[(unsigned long long)at];
  segments.erase((unsigned long long)at);
  return 0;
}
int cudaMemGetInfo(size_t *left, size_t *all) {
  *all = capacity();
  *left = *all - used;
  return 0;
}
int cudaGetDevice(int *number) { return *number = 0; }
int cudaGetDeviceCount(int *count) {
  *count = 1;
  return 0;
}
int cudaGetDeviceProperties(cudaDeviceProp *is, int) {
  memset(is, 0, sizeof *is);
  is->totalGlobalMem = capacity();
  is->major = 9;
  return 0;
}
const char *cudaGetErrorString(int) { return "refused"; }
const char *cudaGetErrorName(int) { return "refused"; }
int cudaDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}
int cudaStreamIsCapturing(void *, int *status) { return *status = 0; }
int cudaStreamGetCaptureInfo(void *, int *status, void *) { return *status = 0; }
int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned,
                                     unsigned long long, int *status) {
  static const std::map<std::string, void *> known = {
      {"cuMemAddressReserve", (void *)reserve}, {"cuMemCreate", (void *)create},
      {"cuMemRelease", (void *)release},        {"cuDeviceGet", (void *)device},
      {"cuDeviceGetAttribute", (void *)attribute},
      {"cuMemGetAllocationGranularity", (void *)granularity},
      {"cuCtxGetCurrent", (void *)context}};
  auto at = known.find(name);
  *found = at == known.end() ? (void *)ok : at->second;
  if (status) *status = 0;
  return 0;
}
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *, void **handle) {
  *handle = (void *)1;
  return 0;
}
int nvmlDeviceGetGpuFabricInfoV() { return 0; }
int nvmlDeviceGetComputeRunningProcesses() { return 3; }
int nvmlDeviceGetNvLinkRemoteDeviceType() { return 3; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return 3; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 0; }
}
#include "others.inc"

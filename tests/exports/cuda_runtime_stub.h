/* A few words of CUDA for a compiler without it: the threads of a launch run one after another on the CPU. */
#ifndef CUDA_RUNTIME_STUB_H
#define CUDA_RUNTIME_STUB_H
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define __global__
#define __device__
#define __noinline__
#define __restrict__ __restrict
static inline int __double2loint(double x) { long long bits; memcpy(&bits, &x, 8); return (int)bits; }
struct Place { unsigned x; };
static Place blockIdx, blockDim, threadIdx;
struct dim3 {
    unsigned x;
    explicit dim3(unsigned n) : x(n) {}
};
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
static inline cudaError_t cudaMalloc(void **memory, size_t bytes) { return (*memory = malloc(bytes)) ? 0 : 2; }
static inline cudaError_t cudaFree(void *memory) { free(memory); return 0; }
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int) { memcpy(to, from, bytes); return 0; }
static void stub_thread(void **arguments);
static inline cudaError_t cudaLaunchKernel(const void *, dim3 grid, dim3 block, void **arguments, size_t, cudaStream_t)
{
    blockDim.x = block.x;
    for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
            stub_thread(arguments);
    return 0;
}
#endif

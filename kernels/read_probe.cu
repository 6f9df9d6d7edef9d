// Reads memory as fast as it can, and proves that it did: out[block] = exclusive or of all words the block read.
//
// Launch: any number of blocks of 512 threads. `count` is the number of 16-byte words. -DPATTERN=0: all blocks walk
// through the buffer side by side; 1: each block walks through a piece of its own. Eight loads a thread are under way
// at a time, which is what it takes to keep the memory busy.
#ifndef WALK
#define WALK 0
#endif
#define FLIGHT 8
#define THREADS 512

extern "C" __global__ void __launch_bounds__(THREADS) read_probe(const uint4* data, long long count, unsigned* out) {
    __shared__ unsigned parts[THREADS / LANES];
    const int thread = threadIdx.x;
#if WALK == 0
    long long i = (long long)blockIdx.x * THREADS + thread;
    const long long stride = (long long)gridDim.x * THREADS, end = count;
#else
    const long long piece = (count + gridDim.x - 1) / gridDim.x, begin = piece * blockIdx.x, stride = THREADS;
    const long long end = begin + piece < count ? begin + piece : count;
    long long i = begin + thread;
#endif
    unsigned seen = 0;
    for (; i + (FLIGHT - 1) * stride < end; i += FLIGHT * stride) {
        uint4 v[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) v[k] = LOAD_ONCE(data + i + k * stride);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) seen ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    for (; i < end; i += stride) {
        const uint4 v = LOAD_ONCE(data + i);
        seen ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    for (int mask = 1; mask < LANES; mask *= 2) seen ^= SHUFFLE_XOR(seen, mask);
    if (thread % LANES == 0) parts[thread / LANES] = seen;
    __syncthreads();
    if (thread == 0) {
        for (int k = 1; k < THREADS / LANES; ++k) seen ^= parts[k];
        out[blockIdx.x] = seen;
    }
}

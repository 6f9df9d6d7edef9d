// RMSNorm of rows: y = x / sqrt(mean(x^2) + epsilon) * weight. Zhang and Sennrich, arXiv:1910.07467.
//
// Launch: a block of 256 threads a row. columns: a multiple of WIDE.
#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
rms_norm(const element* x, const element* weight, element* y, int columns, float epsilon) {
    __shared__ float parts[THREADS / LANES];
    const int thread = threadIdx.x, words = columns / WIDE;
    const uint4* row = (const uint4*)(x + (long long)blockIdx.x * columns);
    START_NEXT();
    AWAIT_PREVIOUS();

    float squares = 0.0f, f[WIDE], g[WIDE];
    for (int i = thread; i < words; i += THREADS) {
        unpack(f, row[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) squares += f[k] * f[k];
    }
    for (int mask = 1; mask < LANES; mask *= 2) squares += SHUFFLE_XOR(squares, mask);
    if (thread % LANES == 0) parts[thread / LANES] = squares;
    __syncthreads();
    squares = 0.0f;
    for (int k = 0; k < THREADS / LANES; ++k) squares += parts[k];

    // The row is read again: by now it lies in the first cache.
    const float scale = RSQRT(squares / columns + epsilon);
    uint4* out = (uint4*)(y + (long long)blockIdx.x * columns);
    for (int i = thread; i < words; i += THREADS) {
        unpack(f, row[i]);
        unpack(g, ((const uint4*)weight)[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) f[k] *= scale * g[k];
        out[i] = pack(f);
    }
}

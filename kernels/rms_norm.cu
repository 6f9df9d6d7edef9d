// RMSNorm of rows: y = x / sqrt(mean(x^2) + epsilon) * weight. Zhang and Sennrich, arXiv:1910.07467.
//
// Launch: a block of 256 threads a row. columns: a multiple of WIDE. Comes behind row_norm.h.
extern "C" __global__ void __launch_bounds__(THREADS)
rms_norm(const element* x, const element* weight, element* y, int columns, float epsilon) {
    const int thread = threadIdx.x, words = columns / WIDE;
    const uint4 *row = (const uint4*)(x + (long long)blockIdx.x * columns), *by = (const uint4*)weight;
    uint4 held[HELD], factors[HELD];
#pragma unroll
    for (int n = 0; n < HELD; ++n)  // weights do not depend on the kernel before: ask for them while it drains
        if (thread + n * THREADS < words) factors[n] = by[thread + n * THREADS];
    START_NEXT();
    AWAIT_PREVIOUS();

    float f[WIDE], g[WIDE];
    hold_row(held, row, words);
    const float scale = norm_of_row(held, row, words, epsilon);
    uint4* out = (uint4*)(y + (long long)blockIdx.x * columns);
#pragma unroll
    for (int n = 0; n < HELD; ++n)
        if (thread + n * THREADS < words) {
            unpack(f, held[n]);
            unpack(g, factors[n]);
#pragma unroll
            for (int k = 0; k < WIDE; ++k) f[k] *= scale * g[k];
            out[thread + n * THREADS] = pack(f);
        }
    for (int i = thread + HELD * THREADS; i < words; i += THREADS) {
        unpack(f, row[i]);
        unpack(g, by[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) f[k] *= scale * g[k];
        out[i] = pack(f);
    }
}

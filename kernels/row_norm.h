// What RMSNorm divides a row by. Comes before what norms rows, or takes sums of rows that count as normed.
#ifndef THREADS
#define THREADS 256
#endif

// The sum over the block, the same in all threads.
DEVICE float sum_of_block(float x) {
    __shared__ float parts[THREADS / LANES];
    for (int mask = 1; mask < LANES; mask *= 2) x += SHUFFLE_XOR(x, mask);
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
    __syncthreads();
    x = 0.0f;
#pragma unroll
    for (int k = 0; k < THREADS / LANES; ++k) x += parts[k];
    return x;
}

#define HELD 4  // 16-byte words of a row that a thread keeps; those of longer rows are read where they are needed
DEVICE void hold_row(uint4* held, const uint4* row, int words) {
#pragma unroll
    for (int n = 0; n < HELD; ++n)
        if ((int)threadIdx.x + n * THREADS < words) held[n] = row[threadIdx.x + n * THREADS];
}
// 1 / sqrt(mean(x^2) + epsilon) of a row that is held: what a product of the row is multiplied by if it counts as normed.
DEVICE float norm_of_row(const uint4* held, const uint4* row, int words, float epsilon) {
    float squares = 0.0f, f[WIDE];
#pragma unroll
    for (int n = 0; n < HELD; ++n)
        if ((int)threadIdx.x + n * THREADS < words) {
            unpack(f, held[n]);
#pragma unroll
            for (int k = 0; k < WIDE; ++k) squares += f[k] * f[k];
        }
    for (int i = threadIdx.x + HELD * THREADS; i < words; i += THREADS) {
        unpack(f, row[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) squares += f[k] * f[k];
    }
    return RSQRT(sum_of_block(squares) / (words * WIDE) + epsilon);
}

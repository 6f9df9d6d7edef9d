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

// 1 / sqrt(mean(x^2) + epsilon) of a row: what a product of the row is multiplied by if the row counts as normed.
DEVICE float norm_of_row(const element* row, int columns, float epsilon) {
    float squares = 0.0f, f[WIDE];
    for (int i = threadIdx.x; i < columns / WIDE; i += THREADS) {
        unpack(f, ((const uint4*)row)[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) squares += f[k] * f[k];
    }
    return RSQRT(sum_of_block(squares) / columns + epsilon);
}

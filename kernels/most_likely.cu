// The place of the largest number of each row, the first of those that are equal: the token that greedy decoding takes.
//
// x: [rows][columns]. out: [rows]. Launch: a block of 512 threads a row. columns: a multiple of WIDE. NaN never wins.
#define THREADS 512

extern "C" __global__ void __launch_bounds__(THREADS) most_likely(const element* x, int* out, int columns) {
    __shared__ float tops[THREADS / LANES];
    __shared__ int places[THREADS / LANES];
    const int thread = threadIdx.x, words = columns / WIDE;
    START_NEXT();
    AWAIT_PREVIOUS();
    const uint4* row = (const uint4*)x + (long long)blockIdx.x * words;
    float f[WIDE], top = -3.4028235e38f;  // the lowest number there is
    int place = columns;  // of nothing yet
    for (int i = thread; i < words; i += THREADS) {
        unpack(f, row[i]);
#pragma unroll
        for (int k = 0; k < WIDE; ++k)
            if (f[k] > top || (f[k] == top && i * WIDE + k < place)) top = f[k], place = i * WIDE + k;
    }
    for (int mask = 1; mask < LANES; mask *= 2) {
        const float other = SHUFFLE_XOR(top, mask);
        const int there = SHUFFLE_XOR(place, mask);
        if (other > top || (other == top && there < place)) top = other, place = there;
    }
    if (thread % LANES == 0) tops[thread / LANES] = top, places[thread / LANES] = place;
    __syncthreads();
    if (thread) return;
    for (int k = 1; k < THREADS / LANES; ++k)
        if (tops[k] > top || (tops[k] == top && places[k] < place)) top = tops[k], place = places[k];
    out[blockIdx.x] = place < columns ? place : 0;
}

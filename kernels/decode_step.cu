// One decode step of a toy model: each block stands for one sequence of the batch and computes its next "token".
//
//   out[s] = sum over i < work of the sum over k < 8 of x (x + k),   x = 1.000173 (i + 1) + 0.5 s
//
// Launch: as many blocks as sequences, a power of two of threads (at most 1024), 4 bytes of shared memory a thread.
// All terms are positive, so the float32 result is within (8 ceil(work / threads) + log2(threads) + 8) x 2^-24 of the
// exact sum, whatever the order of additions. `work` is at most 2^24: above it float32 no longer counts in ones.
DEVICE float next_token(int work, int sequence, float* partial) {  // in thread 0
    const int thread = threadIdx.x, threads = blockDim.x;

    // Every thread takes each `threads`-th term. The additions of one thread depend on each other: what the loop
    // measures is the latency of a multiply-add, which only more threads or more blocks can hide.
    float sum = 0.0f;
    for (int i = thread; i < work; i += threads) {
        const float x = 1.000173f * (i + 1) + 0.5f * sequence;
        for (int k = 0; k < 8; ++k) sum = fmaf(x, x + k, sum);
    }

    // The sums of the threads become one: halve their number through shared memory until one group of lanes can hold
    // the rest, then shuffle.
    partial[thread] = sum;
    __syncthreads();
    for (int half = threads / 2; half >= LANES; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();
    }
    if (thread < LANES) {
        sum = partial[thread];
        for (int offset = (threads < LANES ? threads : LANES) / 2; offset > 0; offset /= 2)
            sum += SHUFFLE_DOWN(sum, offset);
    }
    return sum;
}

extern "C" __global__ void decode_step(float* out, int work) {
    SHARED(float, partial);
    const float token = next_token(work, blockIdx.x, partial);
    if (threadIdx.x == 0) out[blockIdx.x] = token;
}

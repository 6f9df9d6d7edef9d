// The decode step of decode_step.cu, `steps` times in one launch: behind each step all blocks wait for each other, as the
// next step of a model must for the tokens of the last one.
//
// Launch: as decode_step, but all blocks must be on the card at the same time: at most one a multiprocessor here. count:
// one number, 0 before the launch. The CPU shim runs block after block, so only one block can wait there.
// With steps = 1 it is decode_step, which may start while the launch before it drains.
extern "C" __global__ void decode_loop(float* out, unsigned* count, int work, int steps) {
    SHARED(float, partial);
    START_NEXT();
    AWAIT_PREVIOUS();
    for (int step = 1; step <= steps; ++step) {
        const float token = next_token(work, blockIdx.x, partial);
        if (threadIdx.x == 0) out[blockIdx.x] = token;
        if (step < steps && threadIdx.x == 0) {
            FENCE();  // the token is there before this block is counted
            ATOMIC_ADD(count, 1u);
            while (*(volatile unsigned*)count < (unsigned)step * gridDim.x) {
            }
            FENCE();
        }
        __syncthreads();
    }
}

// The decode step of decode_step.cu by a kernel that stays on the card: for each step it waits until the program rings, by
// a number in memory of the host that both can see, and answers there. Nothing is launched between two steps.
//
// rung: the number of the step that the program wants, which it raises by one. answered: the last step whose tokens lie
// in `out`; both and `out` are pinned memory of the host. state: two numbers of the device, 0 before the launch: the
// step that the first block has seen rung, and how many blocks have ended steps. patience: looks at the bell after which
// the kernel gives up, and answers 0xffffffff.
//
// Launch: as decode_loop. Only the first block looks at the host's memory, since each look takes a trip over the bus.
extern "C" __global__ void decode_bell(float* out, unsigned* rung, unsigned* answered, unsigned* state, int work, int steps, int patience) {
    SHARED(float, partial);
    __shared__ int over;
    const int thread = threadIdx.x;
    for (unsigned step = 1; step <= (unsigned)steps; ++step) {
        if (thread == 0) {
            unsigned seen = step;
            if (blockIdx.x == 0) {
                int looks = 0;
                while (*(volatile unsigned*)rung < step && looks < patience) ++looks;
                if (looks == patience) seen = 0xffffffffu, *(volatile unsigned*)answered = seen;
                FENCE();
                *(volatile unsigned*)state = seen;
            } else {
                while ((seen = *(volatile unsigned*)state) < step) {
                }
            }
            over = seen == 0xffffffffu;
        }
        __syncthreads();
        if (over) return;
        const float token = next_token(work, blockIdx.x, partial);
        if (thread == 0) {
            out[blockIdx.x] = token;
            FENCE_SYSTEM();  // the token is there before the answer
            if (ATOMIC_ADD(state + 1, 1u) + 1 == step * gridDim.x) *(volatile unsigned*)answered = step;
        }
        __syncthreads();
    }
}

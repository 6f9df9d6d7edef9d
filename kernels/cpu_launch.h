// The entry point of a kernel that was compiled for the CPU; it follows the kernel's source.
// Build with -DKERNEL=name: the compiler itself works out the types of the arguments.
namespace shim {

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), void** values, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(values[I])...);
}

template <class... A>
static constexpr std::size_t count(void (*)(A...)) {
    return sizeof...(A);
}

static void call_kernel(void** values) { call(KERNEL, values, std::make_index_sequence<count(KERNEL)>{}); }

static void run_grid() {
    const Region& shared = regions[region_count - 1];
    for (unsigned z = 0; z < gridDim.z; ++z)
        for (unsigned y = 0; y < gridDim.y; ++y)
            for (unsigned x = 0; x < gridDim.x; ++x) {
                blockIdx.x = x, blockIdx.y = y, blockIdx.z = z;
                std::memset(shared.begin, 0xff, shared.end - shared.begin);  // NaN: nobody may count on zeros
                run_block();
            }
}

}  // namespace shim

// The stacks of the fibers, of which a process has one set for all kernels: with their guard pages they take two
// mappings a thread, and a process may have 65,530. owner: whose fibers stand on them.
struct Stacks {
    unsigned char* space;
    const void* owner;
    int64_t guarded;  // how many have their guard page
};

// Runs the grid and says how it went. values[i] points to argument i; `given` are all the buffers it may touch, the
// shared memory last. Not to be called by two threads at once.
extern "C" void shim_launch(const uint32_t* grid, const uint32_t* block, void** values, shim::Region* given, int count,
                            shim::Report* said, Stacks* common) {
    using namespace shim;
    report = said;
    *report = Report{};
    if (common->space == nullptr) {
        void* space = mmap(nullptr, static_cast<size_t>(MAX_THREADS) * STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANON, -1, 0);
        if (space == MAP_FAILED) {
            report->kind = NO_MEMORY;
            return;
        }
        common->space = static_cast<unsigned char*>(space);
    }
    stacks = common->space;
    if (common->owner != fibers) {  // another kernel ran in between: its fibers stand where ours stood
        for (int t = 0; t < MAX_THREADS; ++t) fibers[t].made = false;
        common->owner = fibers;
    }
    gridDim.x = grid[0], gridDim.y = grid[1], gridDim.z = grid[2];
    blockDim.x = block[0], blockDim.y = block[1], blockDim.z = block[2];
    threads = block[0] * block[1] * block[2];
    body = call_kernel;
    arguments = values;
    regions = given;
    region_count = count;
    launcher = pthread_self();
    for (int t = 0; t < threads; ++t) {
        if (fibers[t].made) continue;
        if (t >= common->guarded) {
            mprotect(stacks + static_cast<size_t>(t) * STACK, STACK_GUARD, PROT_NONE);
            common->guarded = t + 1;
        }
        make(t);
    }
    Watch watch;
    if (sigsetjmp(abandoned, 1) == 0)
        run_grid();
    else
        for (int t = 0; t < MAX_THREADS; ++t) fibers[t].made = false;  // they are stuck in the middle of something
}

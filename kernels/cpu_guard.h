// The watching half of the CPU shim: what a GPU would leave undefined ends the launch, and a Report says what happened.
//
// A buffer ends where a page ends that nobody may touch, and begins after bytes of a known pattern. A write behind it
// faults at once. A write before it, or into the few bytes that alignment leaves behind it, changes the pattern, which
// is looked at whenever a thread hands on its turn. Reads inside the pattern go unnoticed.
namespace shim {

enum Kind {
    OK, WROTE_OUTSIDE, TOUCHED_OUTSIDE, BAD_INDEX, BARRIER, SHUFFLE, STACK_OVERFLOW, BAD_DIVISION, INTERRUPTED, NO_MEMORY, TRAP
};

struct Region {  // [low, begin) and [end, high) hold the pattern; the pages around [low, high) may not be touched
    unsigned char *low, *begin, *end, *high;
};

struct Report {
    int32_t kind, thread, line, other, other_line, other_state, region;
    uint32_t block;
    int64_t at;  // bytes from the beginning of the region, or the index
};

enum { PATTERN = 0xA5, NEAR = 256, FAR = 1 << 24 };

static Region* regions;
static int region_count;
static Report* report;
static sigjmp_buf abandoned;
static pthread_t launcher;

// The last region is the shared memory of the block.
static inline void* shared_memory() { return regions[region_count - 1].begin; }

[[noreturn]] static void fail(int kind, int line) {
    report->kind = kind;
    report->thread = current;
    report->block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    report->line = line;
    siglongjmp(abandoned, 1);
}

[[noreturn]] static void diverged(int thread, int other) {
    current = thread;
    report->other = other;
    report->other_state = fibers[other].state;
    report->other_line = fibers[other].line;
    fail(fibers[thread].state == AT_SHUFFLE ? SHUFFLE : BARRIER, fibers[thread].line);
}

static void check_pattern(const unsigned char* from, const unsigned char* to, int region) {
    static unsigned char pattern[4096];
    if (pattern[0] != PATTERN) std::memset(pattern, PATTERN, sizeof pattern);
    while (from < to) {
        const size_t length = static_cast<size_t>(to - from) < sizeof pattern ? to - from : sizeof pattern;
        if (std::memcmp(from, pattern, length) != 0) {
            while (*from == PATTERN) ++from;
            report->region = region;
            report->at = from - regions[region].begin;
            fail(WROTE_OUTSIDE, 0);
        }
        from += length;
    }
}

// After every turn of a thread, so that the report can name it: the bytes closest to each buffer.
static void check_slice() {
    for (int i = 0; i < region_count; ++i) {
        const Region& r = regions[i];
        check_pattern(r.begin - r.low > NEAR ? r.begin - NEAR : r.low, r.begin, i);
        check_pattern(r.end, r.high, i);
    }
}

// After every block: all of them. The thread that did it is no longer known.
static void check_block() {
    current = -1;
    for (int i = 0; i < region_count; ++i) check_pattern(regions[i].low, regions[i].begin, i);
}

static void on_signal(int number, siginfo_t* info, void*) {
    if (!pthread_equal(pthread_self(), launcher)) {  // Ctrl-C may reach any thread of the process
        if (number == SIGINT) {
            pthread_kill(launcher, number);
            return;
        }
        signal(number, SIG_DFL);  // somebody else's fault: let it be fatal, as it would have been
        return;
    }
    if (number == SIGINT) fail(INTERRUPTED, 0);
    if (number == SIGFPE) fail(BAD_DIVISION, 0);
    if (number == SIGILL || number == SIGTRAP) fail(TRAP, 0);
    unsigned char* at = static_cast<unsigned char*>(info->si_addr);
    if (at >= stacks && at < stacks + static_cast<size_t>(MAX_THREADS) * STACK) fail(STACK_OVERFLOW, 0);
    report->region = -1;
    int64_t nearest = FAR;
    for (int i = 0; i < region_count; ++i) {
        const int64_t away = at < regions[i].begin ? regions[i].begin - at : at - regions[i].end;
        if (away >= nearest) continue;
        nearest = away;
        report->region = i;
        report->at = at - regions[i].begin;
    }
    fail(TOUCHED_OUTSIDE, 0);
}

// Signals are ours during a launch only.
class Watch {
    enum { COUNT = 6 };
    const int numbers[COUNT] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGINT};
    struct sigaction before[COUNT];
    stack_t stack_before;

  public:
    Watch() {
        static unsigned char stack[1 << 16];  // a fiber whose stack is full has no room for a handler
        stack_t ours = {};
        ours.ss_sp = stack;
        ours.ss_size = sizeof stack;
        sigaltstack(&ours, &stack_before);
        struct sigaction action = {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        for (int i = 0; i < COUNT; ++i) sigaction(numbers[i], &action, &before[i]);
    }
    ~Watch() {
        for (int i = 0; i < COUNT; ++i) sigaction(numbers[i], &before[i], nullptr);
        sigaltstack(&stack_before, nullptr);
    }
};

}  // namespace shim

// -fsanitize=bounds calls these; no sanitizer library is linked. `where` starts with file, line and column.
struct Where {
    const char* file;
    uint32_t line, column;
};
extern "C" void __ubsan_handle_out_of_bounds(void* where, void* index) {
    shim::report->at = reinterpret_cast<intptr_t>(index);
    shim::fail(shim::BAD_INDEX, static_cast<int>(static_cast<Where*>(where)->line));
}
extern "C" void __ubsan_handle_out_of_bounds_abort(void* where, void* index) {
    __ubsan_handle_out_of_bounds(where, index);
}

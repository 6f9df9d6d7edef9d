// What becomes of the sums of a product with packed weights: it comes before skinny_gemm.cu and split_gemm.cu.
//
// -DFINISH, on which it depends which rows of W form a tile of 16:
//   0  y[m][16 tile + i], rows as they come: row i of the tile is row 16 tile + i of W
//   1  added to y, packed as x is (the residual stream); tiles as above
//   2  y = silu(gate) * up, packed: rows 0-7 of a tile are gates 8 tile + i, rows 8-15 the same rows of up
//   3  queries, keys and values: RoPE, then queries to y[m][head][HEAD_DIM], keys and values to the cache. A tile is the
//      dimensions d = 8 (tile % (HEAD_DIM / 16)) + i of a head and the d + HEAD_DIM / 2 they turn with. turns, positions,
//      slots: as in rope_append.cu; scales: of keys and of values of each KV head, for a cache of 8-bit numbers (-DE4M3=1)
#ifndef GROUPS
#define GROUPS 1
#endif
#ifndef FINISH
#define FINISH 0
#endif
#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#define BLOCK 16
#define ROWS (8 * GROUPS)

// Where row m, column n of packed activations is.
DEVICE long long packed(int m, int n) {
    return (((long long)(n / 32) * GROUPS + m / 8) * 8 + m % 8) * 32 + n % 32;
}

// The sums of rows i and i + 8 of a tile, for row m of x. Returns the squares of what was added to (1), or nothing of use.
DEVICE float finish(int tile, int i, int m, float first, float second, element* y, int n_columns, cached* k_cache,
                   cached* v_cache, const float2* turns, const int* positions, const int* slots, const float* scales,
                   int heads, int kv_heads) {
#if FINISH == 0
    y[(long long)m * n_columns + 16 * tile + i] = to_element(first);
    y[(long long)m * n_columns + 16 * tile + 8 + i] = to_element(second);
#elif FINISH == 1
    element *to_first = y + packed(m, 16 * tile + i), *to_second = y + packed(m, 16 * tile + 8 + i);
    *to_first = to_element(to_float(*to_first) + first);
    *to_second = to_element(to_float(*to_second) + second);
    first = to_float(*to_first), second = to_float(*to_second);
    return first * first + second * second;
#elif FINISH == 2
    y[packed(m, 8 * tile + i)] = to_element(first / (1.0f + EXP2(-1.44269504f * first)) * second);
#else
    const int head = tile / (HEAD_DIM / 16), d = 8 * (tile % (HEAD_DIM / 16)) + i, slot = slots[m];
    if (head < heads + kv_heads) {
        const float2 turn = turns[(long long)positions[m] * (HEAD_DIM / 2) + d];
        const float turned = first * turn.x - second * turn.y;
        second = second * turn.x + first * turn.y;
        first = turned;
    }
    if (head < heads) {
        element* to = y + ((long long)m * heads + head) * HEAD_DIM;
        to[d] = to_element(first);
        to[d + HEAD_DIM / 2] = to_element(second);
    } else if (slot >= 0) {
        const int kv = (head - heads) % kv_heads;
        cached* to = head < heads + kv_heads ? k_cache : v_cache;
        to += (((long long)(slot / BLOCK) * kv_heads + kv) * BLOCK + slot % BLOCK) * HEAD_DIM;
        const float scale = E4M3 ? scales[head - heads] : 1.0f;
        to[d] = to_cached(first, scale);
        to[d + HEAD_DIM / 2] = to_cached(second, scale);
    }
#endif
#if FINISH != 1
    return 0.0f;
#endif
}

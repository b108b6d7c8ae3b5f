// The C functions that compiled_kernel.py calls. Data pointers come from the caller; nothing is kept after a call.
#include <new>

#include "expert.h"

using namespace hideaway;

namespace {

uint16_t bfloat16_of(float value) {  // nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class Format>
void write_row(const Matrix& matrix, const Output& output, int64_t columns, int is_bfloat16, void* to, int64_t row) {
    thread_local std::vector<float> values;
    values.resize(static_cast<size_t>(round_up(matrix.columns, 32)));
    decode<Format>(matrix, output.index, output.factor, 0, matrix.columns, values.data());
    if (is_bfloat16) {
        auto* out = static_cast<uint16_t*>(to) + row * columns;
        for (int64_t k = 0; k < columns; ++k) out[k] = bfloat16_of(values[static_cast<size_t>(k)]);
    } else {
        std::memcpy(static_cast<float*>(to) + row * columns, values.data(), static_cast<size_t>(columns) * 4);
    }
}

template <class Format>
void write_weights(const ExpertShape& shape, const Expert& expert, int is_bfloat16, void* gate_up, void* down,
                   Pool& pool) {
    constexpr int64_t chunk = 32;
    pool.each(tasks_of(shape.intermediate, chunk), [&](int task) {
        const int64_t last = std::min<int64_t>(shape.intermediate, (task + 1) * chunk);
        for (int64_t i = task * chunk; i < last; ++i) {
            write_row<Format>(expert.gate_up, expert.gate(i), shape.hidden, is_bfloat16, gate_up, i);
            write_row<Format>(expert.gate_up, expert.up(i), shape.hidden, is_bfloat16, gate_up,
                              shape.intermediate + i);
        }
    });
    pool.each(tasks_of(shape.hidden, chunk), [&](int task) {
        const int64_t last = std::min<int64_t>(shape.hidden, (task + 1) * chunk);
        for (int64_t i = task * chunk; i < last; ++i) {
            write_row<Format>(expert.down, expert.out(i), shape.intermediate, is_bfloat16, down, i);
        }
    });
}

template <class Format>
void run_expert(const ExpertShape& shape, const uint8_t* bytes, const float* x, int64_t rows, int any_rows,
                float* out, Pool& pool) {
    const Expert expert(shape, bytes, Format::kBlock);
    if (any_rows) {
        panel_expert<Format>(shape, expert, x, rows, out, pool);
    } else {
        few_rows_expert<Format>(shape, expert, x, rows, out, pool);
    }
}

}  // namespace

#define EXPORT __attribute__((visibility("default")))

// Functions return 0, or 1 where memory or threads ran out.
extern "C" {

EXPORT const char* hideaway_lanes() { return kLanesName; }

// A pool lives as long as the process: its workers sleep in it.
EXPORT void* hideaway_new_pool(int threads) {
    try {
        return new Pool(threads);
    } catch (...) {
        return nullptr;
    }
}

EXPORT int hideaway_expert(const ExpertShape* shape, const uint8_t* bytes, const float* x, int64_t rows, int any_rows,
                    float* out, void* pool) {
    try {
        auto* run = shape->is_nvfp4 ? run_expert<Nvfp4> : run_expert<Mxfp4>;
        run(*shape, bytes, x, rows, any_rows, out, *static_cast<Pool*>(pool));
        return 0;
    } catch (...) {
        return 1;
    }
}

// gate_up becomes (2 * intermediate, hidden), gate rows first; down (hidden, intermediate); float32 or bfloat16.
EXPORT int hideaway_weights(const ExpertShape* shape, const uint8_t* bytes, int is_bfloat16, void* gate_up, void* down,
                     void* pool) {
    try {
        const Expert expert(*shape, bytes, shape->is_nvfp4 ? Nvfp4::kBlock : Mxfp4::kBlock);
        auto* write = shape->is_nvfp4 ? write_weights<Nvfp4> : write_weights<Mxfp4>;
        write(*shape, expert, is_bfloat16, gate_up, down, *static_cast<Pool*>(pool));
        return 0;
    } catch (...) {
        return 1;
    }
}

// The sum of 64-bit words: reads every byte once, for measuring the read bandwidth of the pool's threads.
EXPORT uint64_t hideaway_read(const uint8_t* bytes, int64_t length, void* pool) {
    constexpr int64_t chunk = 1 << 17;
    std::atomic<uint64_t> total{0};
    static_cast<Pool*>(pool)->each(tasks_of(length, chunk), [&](int task) {
        const uint8_t* from = bytes + task * chunk;
        const int64_t words = std::min<int64_t>(chunk, length - task * chunk) / 8;
        uint64_t part = 0;
        for (int64_t i = 0; i < words; ++i) {
            uint64_t word;
            std::memcpy(&word, from + 8 * i, sizeof word);
            part += word;
        }
        total.fetch_add(part, std::memory_order_relaxed);
    });
    return total.load();
}

}  // extern "C"

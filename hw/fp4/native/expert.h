// One SwiGLU expert in the bytes as they are stored: gate and up rows, activation, down.
#pragma once

#include <cmath>

#include "few_rows.h"
#include "panel.h"
#include "pool.h"

namespace hideaway {

// Mirrored by a ctypes structure in compiled_kernel.py. Offsets are in bytes from the expert's first; -1: absent.
struct ExpertShape {
    int64_t hidden, intermediate;
    int64_t gate_up_codes, gate_up_scales, gate_up_bias;
    int64_t down_codes, down_scales, down_bias;
    int64_t tensor_scales;  // float32 of gate, up, down (nvfp4)
    int32_t is_nvfp4;
    int32_t interleaved;  // gate and up rows alternate; otherwise all gate rows come first
    int32_t clamped;      // gpt-oss: (up + 1) gate sigmoid(alpha gate), both clamped; otherwise silu(gate) up
    float limit, alpha;
};

inline float bfloat16_at(const uint8_t* bytes, int64_t index) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * index, sizeof half);
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

class Expert {
  public:
    Expert(const ExpertShape& shape, const uint8_t* bytes, int block) : shape_(shape), bytes_(bytes) {
        gate_up = {bytes + shape.gate_up_codes, bytes + shape.gate_up_scales, round_up(shape.hidden, block)};
        down = {bytes + shape.down_codes, bytes + shape.down_scales, round_up(shape.intermediate, block)};
        if (shape.tensor_scales >= 0) std::memcpy(factors_, bytes + shape.tensor_scales, sizeof factors_);
    }

    Matrix gate_up, down;

    Output gate(int64_t i) const { return {shape_.interleaved ? 2 * i : i, factors_[0]}; }
    Output up(int64_t i) const {
        return {shape_.interleaved ? 2 * i + 1 : shape_.intermediate + i, factors_[1]};
    }
    Output out(int64_t i) const { return {i, factors_[2]}; }

    float gate_up_bias(const Output& output) const { return bias(shape_.gate_up_bias, output.index); }
    float down_bias(const Output& output) const { return bias(shape_.down_bias, output.index); }

    // Comparisons are written so that NaN stays NaN.
    float activate(float gate, float up) const {
        if (!shape_.clamped) return gate * sigmoid(gate) * up;
        const float limit = shape_.limit;
        gate = gate > limit ? limit : gate;
        up = up > limit ? limit : (up < -limit ? -limit : up);
        return (up + 1.0f) * (gate * sigmoid(shape_.alpha * gate));
    }

  private:
    ExpertShape shape_;
    const uint8_t* bytes_;
    float factors_[3] = {1.0f, 1.0f, 1.0f};

    float bias(int64_t offset, int64_t index) const {
        return offset < 0 ? 0.0f : bfloat16_at(bytes_ + offset, index);
    }
    static float sigmoid(float z) { return 1.0f / (1.0f + std::exp(-z)); }
};

inline int tasks_of(int64_t count, int64_t chunk) { return static_cast<int>((count + chunk - 1) / chunk); }

// Call run(first row, rows as a type) for tiles of at most kFewRows rows.
template <class Run>
inline void each_few(int64_t rows, const Run& run) {
    for (int64_t first = 0; first < rows; first += kFewRows) {
        switch (std::min<int64_t>(rows - first, kFewRows)) {
            case 1: run(first, std::integral_constant<int, 1>{}); break;
            case 2: run(first, std::integral_constant<int, 2>{}); break;
            case 3: run(first, std::integral_constant<int, 3>{}); break;
            default: run(first, std::integral_constant<int, 4>{}); break;
        }
    }
}

template <class Format>
void set_rows(IntegerRows<Format>& to, const float* values, int64_t rows, int64_t columns, Pool& pool) {
    to.resize(rows, columns);
    constexpr int chunk = 2;
    pool.each(tasks_of(rows, chunk), [&](int task) {
        const int64_t last = std::min<int64_t>(rows, (task + 1) * chunk);
        for (int64_t row = task * chunk; row < last; ++row) to.set_row(row, values + row * columns, columns);
    });
}

template <class Format>
void few_rows_expert(const ExpertShape& shape, const Expert& expert, const float* x, int64_t rows, float* out,
                     Pool& pool) {
    constexpr int64_t chunk = 32;  // 92 kB of gpt-oss codes a task
    thread_local IntegerRows<Format> integers;
    thread_local std::vector<float> hidden;
    IntegerRows<Format>& in = integers;
    set_rows(in, x, rows, shape.hidden, pool);
    hidden.resize(static_cast<size_t>(rows * shape.intermediate));
    float* act = hidden.data();
    pool.each(tasks_of(shape.intermediate, chunk), [&](int task) {
        const int64_t last = std::min<int64_t>(shape.intermediate, (task + 1) * chunk);
        for (int64_t i = task * chunk; i < last; ++i) {
            const Output gate = expert.gate(i), up = expert.up(i);
            each_few(rows, [&](int64_t first, auto tile) {
                float g[tile()], u[tile()];
                few_products<Format>(expert.gate_up, gate.index, in, first, g);
                few_products<Format>(expert.gate_up, up.index, in, first, u);
                for (int r = 0; r < tile(); ++r) {
                    act[(first + r) * shape.intermediate + i] =
                        expert.activate(g[r] * gate.factor + expert.gate_up_bias(gate),
                                        u[r] * up.factor + expert.gate_up_bias(up));
                }
            });
        }
    });
    set_rows(in, act, rows, shape.intermediate, pool);
    pool.each(tasks_of(shape.hidden, 2 * chunk), [&](int task) {
        const int64_t last = std::min<int64_t>(shape.hidden, (task + 1) * 2 * chunk);
        for (int64_t i = task * 2 * chunk; i < last; ++i) {
            const Output output = expert.out(i);
            each_few(rows, [&](int64_t first, auto tile) {
                float y[tile()];
                few_products<Format>(expert.down, output.index, in, first, y);
                for (int r = 0; r < tile(); ++r) {
                    out[(first + r) * shape.hidden + i] = y[r] * output.factor + expert.down_bias(output);
                }
            });
        }
    });
}

// Rows followed by zeros up to `stride` floats.
inline void pad_rows(const float* values, int64_t rows, int64_t columns, int64_t stride, std::vector<float>& to) {
    to.resize(static_cast<size_t>(rows * stride));
    for (int64_t row = 0; row < rows; ++row) {
        std::memcpy(to.data() + row * stride, values + row * columns, static_cast<size_t>(columns) * sizeof(float));
        std::fill(to.data() + row * stride + columns, to.data() + (row + 1) * stride, 0.0f);
    }
}

template <class Format>
void panel_expert(const ExpertShape& shape, const Expert& expert, const float* x, int64_t rows, float* out,
                  Pool& pool) {
    constexpr int64_t pairs = kPanelOutputs / 2;
    thread_local std::vector<float> padded, hidden;
    const int64_t x_stride = round_up(shape.hidden, 32), act_stride = round_up(shape.intermediate, 32);
    pad_rows(x, rows, shape.hidden, x_stride, padded);
    hidden.assign(static_cast<size_t>(rows * act_stride), 0.0f);
    const float* in = padded.data();
    float* act = hidden.data();
    const int row_tasks = tasks_of(rows, kPanelRows);
    const auto run = [&](int64_t outputs, int64_t chunk, const auto& panel) {
        const int panels = tasks_of(outputs, chunk);
        pool.each(panels * row_tasks, [&](int task) {
            thread_local PanelScratch scratch;
            thread_local std::vector<float> products(kPanelRows * kPanelOutputs);
            const int64_t first = task % panels * chunk, row = task / panels * kPanelRows;
            panel(first, static_cast<int>(std::min(chunk, outputs - first)), row,
                  static_cast<int>(std::min<int64_t>(kPanelRows, rows - row)), scratch, products.data());
        });
    };
    run(shape.intermediate, pairs, [&](int64_t first, int count, int64_t row, int height, PanelScratch& scratch, float* y) {
        Output outputs[kPanelOutputs] = {};
        for (int i = 0; i < count; ++i) {
            outputs[2 * i] = expert.gate(first + i);
            outputs[2 * i + 1] = expert.up(first + i);
        }
        panel_products<Format>(expert.gate_up, outputs, 2 * count, in + row * x_stride, x_stride, height, scratch, y);
        for (int r = 0; r < height; ++r) {
            for (int i = 0; i < count; ++i) {
                act[(row + r) * act_stride + first + i] = expert.activate(
                    y[r * kPanelOutputs + 2 * i] + expert.gate_up_bias(outputs[2 * i]),
                    y[r * kPanelOutputs + 2 * i + 1] + expert.gate_up_bias(outputs[2 * i + 1]));
            }
        }
    });
    run(shape.hidden, kPanelOutputs, [&](int64_t first, int count, int64_t row, int height, PanelScratch& scratch, float* y) {
        Output outputs[kPanelOutputs] = {};
        for (int i = 0; i < count; ++i) outputs[i] = expert.out(first + i);
        panel_products<Format>(expert.down, outputs, count, act + row * act_stride, act_stride, height, scratch, y);
        for (int r = 0; r < height; ++r) {
            for (int i = 0; i < count; ++i) {
                out[(row + r) * shape.hidden + first + i] = y[r * kPanelOutputs + i] + expert.down_bias(outputs[i]);
            }
        }
    });
}

}  // namespace hideaway

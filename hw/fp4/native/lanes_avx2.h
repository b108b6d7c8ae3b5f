// Eight float lanes and the FP4 look-ups on AVX2 + FMA; lanes_generic.h has the same names in plain C++.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace hideaway {

inline constexpr const char* kLanesName = "avx2";

using Float8 = __m256;

inline Float8 load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Float8 a) { _mm256_storeu_ps(to, a); }
inline Float8 broadcast(float a) { return _mm256_set1_ps(a); }
inline Float8 add(Float8 a, Float8 b) { return _mm256_add_ps(a, b); }
inline Float8 mul(Float8 a, Float8 b) { return _mm256_mul_ps(a, b); }
inline Float8 fma(Float8 a, Float8 b, Float8 c) { return _mm256_fmadd_ps(a, b, c); }

// ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
inline float sum(Float8 a) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

inline void prefetch(const uint8_t* at) { _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0); }

// Lanes 0-3 are a[2i], lanes 4-7 are a[2i + 1]: scales of two blocks of 32.
template <int i>
inline Float8 spread4(Float8 a) {
    return _mm256_permutevar8x32_ps(
        a, _mm256_setr_epi32(2 * i, 2 * i, 2 * i, 2 * i, 2 * i + 1, 2 * i + 1, 2 * i + 1, 2 * i + 1));
}

// Two lanes each of a[4i] to a[4i + 3]: scales of four blocks of 16.
template <int i>
inline Float8 spread2(Float8 a) {
    return _mm256_permutevar8x32_ps(
        a, _mm256_setr_epi32(4 * i, 4 * i, 4 * i + 1, 4 * i + 1, 4 * i + 2, 4 * i + 2, 4 * i + 3, 4 * i + 3));
}

// Eight E8M0 bytes, the first lowest in the word: 2^(e - 127), NaN for 255.
inline Float8 e8m0(uint64_t word) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(word)));
    const __m256i nan = _mm256_cmpeq_epi32(e, _mm256_set1_epi32(255));
    const __m256i bits = _mm256_max_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(0x00400000));
    return _mm256_castsi256_ps(_mm256_or_si256(bits, nan));
}

// Eight E4M3 bytes (no infinities, NaN for 0x7f and 0xff).
inline Float8 e4m3(uint64_t word) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(word)));
    const __m256i magnitude = _mm256_and_si256(e, _mm256_set1_epi32(0x7f));
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(e, _mm256_set1_epi32(0x80)), 24);
    // Exponent field 0 means m * 2^-9 = (1 + m / 8) * 2^-6 - 2^-6; this way no float32 subnormal is ever read.
    const __m256i bits = _mm256_slli_epi32(magnitude, 20);
    const __m256 normal = _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(120 << 23)));
    const __m256 small = _mm256_sub_ps(
        _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(121 << 23))), _mm256_set1_ps(0x1p-6f));
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), magnitude);
    const __m256 value = _mm256_blendv_ps(normal, small, _mm256_castsi256_ps(is_small));
    const __m256i nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f));
    return _mm256_or_ps(_mm256_castsi256_ps(_mm256_or_si256(sign, nan)), value);
}

// 64 weights (32 bytes) as unsigned bytes 2 * value + 12: those of low nibbles, those of high nibbles.
struct Shifted {
    __m256i low, high;
};

inline Shifted shifted64(const uint8_t* bytes) {
    const __m256i table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
    return {_mm256_shuffle_epi8(table, _mm256_and_si256(codes, mask)),
            _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), mask))};
}

// Lane j: the sum over bytes 4j to 4j + 3 of weight * (256 * upper + lower), both nibbles. `planes` holds 32 bytes
// each of upper for low nibbles, upper for high nibbles, lower for low, lower for high. Exact: |pairs| <= 12288.
inline Float8 dot64(Shifted weights, const int8_t* planes) {
    const auto* x = reinterpret_cast<const __m256i*>(planes);
    const __m256i upper = _mm256_add_epi16(_mm256_maddubs_epi16(weights.low, _mm256_loadu_si256(x)),
                                           _mm256_maddubs_epi16(weights.high, _mm256_loadu_si256(x + 1)));
    const __m256i lower = _mm256_add_epi16(_mm256_maddubs_epi16(weights.low, _mm256_loadu_si256(x + 2)),
                                           _mm256_maddubs_epi16(weights.high, _mm256_loadu_si256(x + 3)));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(upper, _mm256_set1_epi16(256)),
                                               _mm256_madd_epi16(lower, _mm256_set1_epi16(1))));
}

// 32 weights (16 bytes) as float32 in their order. The two look-ups are the upper and lower byte of a bfloat16.
struct Float32x32 {
    Float8 part[4];
};

inline Float32x32 values32(const uint8_t* bytes) {
    // Unpacking works within 128-bit halves, so the bytes of codes 0-3, 8-11, ... go to the first half.
    const __m128i packed = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)),
                                            _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    const __m256i words = _mm256_cvtepu8_epi16(packed);
    const __m256i codes =
        _mm256_and_si256(_mm256_or_si256(words, _mm256_slli_epi16(words, 4)), _mm256_set1_epi8(15));
    const __m256i upper_table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, char(0x80), char(0xbf), char(0xbf), char(0xbf),
                      char(0xc0), char(0xc0), char(0xc0), char(0xc0)));
    const __m256i lower_table = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, char(0x80), char(0xc0), 0, 0x40, char(0x80), char(0xc0), 0, 0, char(0x80), char(0xc0), 0,
                      0x40, char(0x80), char(0xc0)));
    const __m256i upper = _mm256_shuffle_epi8(upper_table, codes);
    const __m256i lower = _mm256_shuffle_epi8(lower_table, codes);
    const __m256i first = _mm256_unpacklo_epi8(lower, upper);
    const __m256i second = _mm256_unpackhi_epi8(lower, upper);
    const __m256i zero = _mm256_setzero_si256();
    return {{_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, first)),
             _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, first)),
             _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, second)),
             _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, second))}};
}

}  // namespace hideaway

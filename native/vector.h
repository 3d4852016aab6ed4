// Vectors of one register, for any instruction set that gcc and clang know: load, store, exp, sigmoid, tanh.
//
// A level is a compilation of the same sources with other flags:
//   VBYTES  bytes of a register            ROWS, COLS  the tile of a matrix product, in rows and in registers
// Only code that the loader has chosen for this machine is ever run, so nothing here may run at load time: no globals
// with constructors, no allocation, no exceptions.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#ifndef VBYTES
#define VBYTES 16
#define ROWS 4
#define COLS 2
#endif

#define INLINE static inline __attribute__((always_inline))

template <class S>
struct Lanes;  // a register of S, and the integers of the same size
template <>
struct Lanes<float> {
    typedef float V __attribute__((vector_size(VBYTES)));
    typedef int32_t I __attribute__((vector_size(VBYTES)));
};
template <>
struct Lanes<double> {
    typedef double V __attribute__((vector_size(VBYTES)));
    typedef int64_t I __attribute__((vector_size(VBYTES)));
};
template <class S>
using Vec = typename Lanes<S>::V;
template <class S>
using Int = typename Lanes<S>::I;
template <class S>
constexpr int64_t WIDTH = VBYTES / sizeof(S);

template <class S>
INLINE Vec<S> load(const S* p) {
    Vec<S> v;
    std::memcpy(&v, p, VBYTES);
    return v;
}
template <class S>
INLINE void store(S* p, Vec<S> v) {
    std::memcpy(p, &v, VBYTES);
}
// the first n numbers of a register; the others are zero
template <class S>
INLINE Vec<S> load(const S* p, int64_t n) {
    if (__builtin_expect(n >= WIDTH<S>, 1)) return load(p);
    Vec<S> v = {};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
}
template <class S>
INLINE void store(S* p, Vec<S> v, int64_t n) {
    if (__builtin_expect(n >= WIDTH<S>, 1)) return store(p, v);
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
// numbers that are kept in fewer bits than a register works with: the upper half of a float, or a whole number
struct bf16 {
    uint16_t bits;
};
template <class S>
INLINE Vec<S> widened(const S* p) {
    return load(p);
}
template <class S>
INLINE Vec<S> all(S s) {
    return s - Vec<S>{};
}
template <class S>
INLINE Vec<S> pick(Int<S> mask, Vec<S> yes, Vec<S> no) {
    return mask ? yes : no;
}

// What the compiler does not find by itself: numbers of fewer bits to full ones, least and greatest that keep NaN (of x), 1 / x without a division, p 2^n.
#if defined(__AVX512F__)
INLINE Vec<float> within(Vec<float> x, float low, float high) {
    return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
}
INLINE Vec<float> guess_of_reciprocal(Vec<float> x) { return _mm512_rcp14_ps(x); }
INLINE Vec<float> widened(const bf16* p) {
    const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINE Vec<float> widened(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
INLINE Vec<float> times_power(Vec<float> p, Vec<float> n, Vec<float>) { return _mm512_scalef_ps(p, n); }
#else
#if defined(__AVX2__)
INLINE Vec<float> widened(const bf16* p) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINE Vec<float> widened(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
INLINE Vec<float> within(Vec<float> x, float low, float high) {
    return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), x));
}
INLINE Vec<float> guess_of_reciprocal(Vec<float> x) { return _mm256_rcp_ps(x); }
#elif defined(__SSE2__)
INLINE Vec<float> widened(const bf16* p) {
    const __m128i h = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), h));
}
INLINE Vec<float> widened(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, sizeof(four));
    const __m128i q = _mm_cvtsi32_si128(four), twice = _mm_unpacklo_epi8(q, q);
    return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24));
}
INLINE Vec<float> within(Vec<float> x, float low, float high) {
    return _mm_min_ps(_mm_set1_ps(high), _mm_max_ps(_mm_set1_ps(low), x));
}
INLINE Vec<float> guess_of_reciprocal(Vec<float> x) { return _mm_rcp_ps(x); }
#else
INLINE Vec<float> widened(const bf16* p) {
    typedef uint16_t Halves __attribute__((vector_size(VBYTES / 2)));
    Halves h;
    std::memcpy(&h, p, sizeof(h));
    const Int<float> bits = __builtin_convertvector(h, Int<float>) << 16;
    Vec<float> v;
    std::memcpy(&v, &bits, VBYTES);
    return v;
}
INLINE Vec<float> widened(const int8_t* p) {
    typedef int8_t Quarters __attribute__((vector_size(VBYTES / 4)));
    Quarters q;
    std::memcpy(&q, p, sizeof(q));
    return __builtin_convertvector(__builtin_convertvector(q, Int<float>), Vec<float>);
}
INLINE Vec<float> within(Vec<float> x, float low, float high) {
    return pick<float>(x > high, all(high), pick<float>(x < low, all(low), x));
}
#endif
// `shifted` holds n in its lowest digits: as an exponent, whatever stands above falls out; NaN is put back
INLINE Vec<float> times_power(Vec<float> p, Vec<float>, Vec<float> shifted) {
    Int<float> bits, q;
    std::memcpy(&bits, &shifted, VBYTES);
    std::memcpy(&q, &p, VBYTES);
    q += bits << 23;
    Vec<float> y;
    std::memcpy(&y, &q, VBYTES);
    return pick<float>(p == p, y, p);
}
#endif
// 1 / x for 1 <= x <= 2^127: a guess of 12 digits or better, and one step of Newton's; error below 3e-7
INLINE Vec<float> reciprocal(Vec<float> x) {
#if defined(__SSE__)
    const Vec<float> y = guess_of_reciprocal(x);
    return y * (2.0f - x * y);
#else
    return 1.0f / x;
#endif
}
INLINE Vec<double> reciprocal(Vec<double> x) { return 1.0 / x; }

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, by the Taylor polynomial of degree 7; error below 2e-7
INLINE Vec<float> vexp(Vec<float> x) {
    using V = Vec<float>;
    x = within(x, -86.5f, 88.0f);
    const V shifted = x * 1.44269504088896341f + 12582912.0f;  // rounds: 1.5 * 2^23 leaves no digits after the point
    const V n = shifted - 12582912.0f;
    const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    V p = all(1.0f / 5040);
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return times_power(p, n, shifted);
}
// double precision is for checks and small problems: one number after the other
INLINE Vec<double> vexp(Vec<double> x) {
    for (int64_t i = 0; i < WIDTH<double>; ++i) x[i] = std::exp(x[i]);
    return x;
}

// log(x) = e ln 2 + log(m), 1 / sqrt(2) <= m < sqrt(2), and with s = (m - 1) / (m + 1) log(m) = 2 (s + s^3 / 3 + ..) up to
// s^9, x > 0; error below 2e-7 of 1 or of the result
INLINE Vec<float> vlog(Vec<float> x) {
    using V = Vec<float>;
    const Int<float> small = x < 1.17549435e-38f;  // no leading digit: those below the least normal number
    x = pick<float>(small, x * 0x1p64f, x);
    Int<float> bits;
    std::memcpy(&bits, &x, VBYTES);
    const Int<float> e = (bits - 0x3F3504F3) >> 23;  // 1 / sqrt(2) has the exponent 0 then
    bits -= e << 23;
    V m;
    std::memcpy(&m, &bits, VBYTES);
    const V s = (m - 1.0f) / (m + 1.0f), q = s * s;
    V p = all(2.0f / 9);
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    p = p * q + 2.0f;
    const V n = __builtin_convertvector(e, V) - pick<float>(small, all(64.0f), all(0.0f));
    return n * 0.693359375f + (s * p - n * 2.12194440e-4f);
}
INLINE Vec<double> vlog(Vec<double> x) {
    for (int64_t i = 0; i < WIDTH<double>; ++i) x[i] = std::log(x[i]);
    return x;
}

template <class S>
INLINE Vec<S> sigmoid(Vec<S> x) {
    return reciprocal(S(1) + vexp(-x));
}

// tanh(x) = (1 - e) / (1 + e), e = exp(-2x); near zero, where that loses digits, a polynomial
INLINE Vec<float> vtanh(Vec<float> x) {
    using V = Vec<float>;
    const V a = pick<float>(x < 0.0f, -x, x);
    const V e = vexp(-2.0f * a);
    const V far = (1.0f - e) * reciprocal(1.0f + e);
    const V s = x * x;
    V p = all(-6.0017995e-3f);  // (tanh(x) / x - 1) / x^2 as a polynomial of x^2, fitted on |x| < 0.64
    p = p * s + 2.0931423e-2f;
    p = p * s - 5.3837016e-2f;
    p = p * s + 1.3332679e-1f;
    p = p * s - 3.3333328e-1f;
    const V near = x + x * s * p;
    return pick<float>(a < 0.625f, near, pick<float>(x < 0.0f, -far, far));
}
INLINE Vec<double> vtanh(Vec<double> x) {
    for (int64_t i = 0; i < WIDTH<double>; ++i) x[i] = std::tanh(x[i]);
    return x;
}

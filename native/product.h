// C = A W for few rows: W is packed once into panels of COLS registers, and a tile of ROWS rows stays in registers.
// S is the type of the numbers that are worked with, P that in which W is kept.
#pragma once
#include "vector.h"

template <class S>
constexpr int64_t PANEL = COLS * WIDTH<S>;

INLINE int64_t round_up(int64_t n, int64_t m) { return (n + m - 1) / m * m; }

// numbers of a packed [K, n] matrix
template <class S>
INLINE int64_t packed_size(int64_t K, int64_t n) {
    return K * round_up(n, WIDTH<S>);
}

// W(k, j) = w[k * by_k + j * by_j] of [K, n] into panels, each row after row; what is beyond n is zero
template <class S, class P>
static void pack(P* out, const P* w, int64_t K, int64_t n, int64_t by_k, int64_t by_j) {
    for (int64_t j0 = 0; j0 < n; j0 += PANEL<S>) {
        const int64_t left = n - j0 < PANEL<S> ? n - j0 : PANEL<S>, wide = round_up(left, WIDTH<S>);
        for (int64_t k = 0; k < K; ++k, out += wide) {
            for (int64_t j = 0; j < left; ++j) out[j] = w[k * by_k + (j0 + j) * by_j];
            for (int64_t j = left; j < wide; ++j) out[j] = P();
        }
    }
}

template <class S, int M, int N, class P>
static inline void tile(const S* A, int64_t lda, const P* w, int64_t K, S* C, int64_t ldc) {
    constexpr int64_t W = WIDTH<S>;
    constexpr int SETS = M * N < 8 ? 2 : 1;  // few sums wait for each other: sum even and odd k apart
    Vec<S> sum[SETS][M][N] = {};
    int64_t k = 0;
    for (; k + SETS <= K; k += SETS) {
#pragma GCC unroll 2
        for (int s = 0; s < SETS; ++s, w += N * W) {
            Vec<S> b[N];
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) b[j] = widened(w + j * W);
#pragma GCC unroll 8
            for (int i = 0; i < M; ++i) {
                const Vec<S> a = all(A[i * lda + k + s]);
#pragma GCC unroll 8
                for (int j = 0; j < N; ++j) sum[s][i][j] += a * b[j];
            }
        }
    }
    if (SETS == 2 && k < K)
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < N; ++j) sum[0][i][j] += all(A[i * lda + k]) * widened(w + j * W);
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) store(C + i * ldc + j * W, SETS == 2 ? sum[0][i][j] + sum[SETS - 1][i][j] : sum[0][i][j]);
}

template <class S, int N, class P>
static void panel(int64_t rows, const S* A, int64_t lda, const P* w, int64_t K, S* C, int64_t ldc) {
    for (; rows >= ROWS; rows -= ROWS, A += ROWS * lda, C += ROWS * ldc) tile<S, ROWS, N>(A, lda, w, K, C, ldc);
#if ROWS == 8
    if (rows == 7) tile<S, 7, N>(A, lda, w, K, C, ldc);
    if (rows == 6) tile<S, 6, N>(A, lda, w, K, C, ldc);
    if (rows == 5) tile<S, 5, N>(A, lda, w, K, C, ldc);
    if (rows == 4) tile<S, 4, N>(A, lda, w, K, C, ldc);
#endif
#if ROWS > 3
    if (rows == 3) tile<S, 3, N>(A, lda, w, K, C, ldc);
#endif
    if (rows == 2) tile<S, 2, N>(A, lda, w, K, C, ldc);
    if (rows == 1) tile<S, 1, N>(A, lda, w, K, C, ldc);
}

// C [rows, n] = A [rows, K] W; a row of C has room for n rounded up to whole registers
template <class S, class P>
static void product(int64_t rows, int64_t n, int64_t K, const S* A, int64_t lda, const P* w, S* C, int64_t ldc) {
    for (int64_t j = 0; j < n; j += PANEL<S>) {
        const int64_t left = n - j;
        if (left > (COLS - 1) * WIDTH<S>) panel<S, COLS>(rows, A, lda, w, K, C + j, ldc), w += K * PANEL<S>;
#if COLS > 2
        else if (left > 2 * WIDTH<S>) panel<S, 3>(rows, A, lda, w, K, C + j, ldc);
        else if (left > WIDTH<S>) panel<S, 2>(rows, A, lda, w, K, C + j, ldc);
#endif
        else panel<S, 1>(rows, A, lda, w, K, C + j, ldc);
    }
}
